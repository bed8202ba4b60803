"""Where a node listens and what it tells others to connect to: `listeners`, `advertised.listeners`
and the map from listener names to security protocols, by Kafka's rules and in its words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from kraftline.config.effective import Config
from kraftline.config.quorum import static_voters
from kraftline.config.values import BadConfig

PLAINTEXT: Final = "PLAINTEXT"
SSL: Final = "SSL"
PROTOCOLS: Final = {PLAINTEXT: 0, SSL: 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}  # Kafka's numbers

_MAP: Final = "listener.security.protocol.map"
_CONTROLLERS: Final = "controller.listener.names"
_INTER_BROKER: Final = "inter.broker.listener.name"
_ENDPOINT: Final = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")
_IPV4: Final = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3}){3}")


class Endpoint(msgspec.Struct, frozen=True):
    """`host` is empty where every address is meant; `protocol` is one of `PROTOCOLS`."""

    name: str
    host: str
    port: int
    protocol: str

    @property
    def is_tls(self) -> bool:
        return self.protocol.endswith(SSL)

    @property
    def is_sasl(self) -> bool:
        return self.protocol.startswith("SASL")


class Listeners(msgspec.Struct, frozen=True, kw_only=True):
    """Of brokers and of controllers: where to listen, and what to tell others."""

    brokers: tuple[Endpoint, ...]
    controllers: tuple[Endpoint, ...]
    advertised: tuple[Endpoint, ...]
    advertised_controllers: tuple[Endpoint, ...]
    inter_broker: str


def read_listeners(config: Config) -> Listeners:
    """BadConfig, in Kafka's words, where Kafka would not start with them."""
    roles = config.texts("process.roles")
    # As Kafka compares them: listeners are upper case, these stay as they are.
    names = set(config.texts(_CONTROLLERS))
    protocols = _protocols(config)
    all_there = _endpoints(config.texts("listeners"), protocols, distinct_ports=True)
    if config.is_given("advertised.listeners"):
        told = _endpoints(config.texts("advertised.listeners"), protocols, distinct_ports=False)
    else:
        told = all_there
    there = Listeners(
        brokers=tuple(each for each in all_there if each.name not in names),
        controllers=tuple(each for each in all_there if each.name in names),
        advertised=tuple(each for each in told if each.name not in names),
        advertised_controllers=_advertised_controllers(config, all_there, told),
        inter_broker=_inter_broker(config, protocols),
    )
    if "controller" in roles:
        _check_controllers(config, all_there)
    else:
        _check_controllers_elsewhere(config, there, protocols)
    if "broker" in roles:
        _check_brokers(there, all_there)
    everybody = there.advertised if told is all_there else told
    if any(each.host == "0.0.0.0" for each in everybody):
        raise _refused(
            "advertised.listeners",
            "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Use a routable "
            "IP address.",
        )
    return there


def _check_controllers(config: Config, all_there: Sequence[Endpoint]) -> None:
    there = {each.name for each in all_there}
    names = set(config.texts(_CONTROLLERS))
    if config.texts("process.roles") == ["controller"]:
        if config.is_given(_INTER_BROKER) and config.text(_INTER_BROKER).upper() in names:
            raise _refused(
                _CONTROLLERS,
                f"{_CONTROLLERS} must not contain an explicitly set {_INTER_BROKER} configuration "
                "value when process.roles=controller",
            )
        if len(there & names) != len(there):
            raise _refused(
                "listeners",
                "The listeners config must only contain KRaft controller listeners from "
                f"{_CONTROLLERS} when process.roles=controller",
            )
    if not there & names:
        raise _refused(
            _CONTROLLERS,
            f"{_CONTROLLERS} must contain at least one value appearing in the 'listeners' "
            "configuration when running the KRaft controller role",
        )
    if not there >= names:
        raise _refused(
            _CONTROLLERS,
            f"{_CONTROLLERS} must only contain values appearing in the 'listeners' configuration "
            "when running the KRaft controller role",
        )


def _check_controllers_elsewhere(
    config: Config, listeners: Listeners, protocols: Mapping[str, str]
) -> None:
    if listeners.controllers:
        raise _refused(
            _CONTROLLERS,
            f"{_CONTROLLERS} must not contain a value appearing in the 'listeners' configuration "
            "when running KRaft with just the broker role",
        )
    for name in config.texts(_CONTROLLERS):
        if name.upper() not in protocols:
            raise _refused(
                _CONTROLLERS,
                f"Controller listener with name {name.upper()} defined in {_CONTROLLERS} not found "
                f"in {_MAP}  (an explicit security mapping for each controller listener is "
                f"required if {_MAP} is non-empty, or if there are security protocols other than "
                "PLAINTEXT in use)",
            )


def _check_brokers(listeners: Listeners, all_there: Sequence[Endpoint]) -> None:
    told = [each.name for each in listeners.advertised]
    there = [each.name for each in all_there]
    if not told:
        raise _refused(
            "advertised.listeners",
            "There must be at least one broker advertised listener. Perhaps all listeners appear "
            f"in {_CONTROLLERS}?",
        )
    if listeners.inter_broker not in told:
        raise _refused(
            _INTER_BROKER,
            f"{_INTER_BROKER} must be a listener name defined in advertised.listeners. The valid "
            f"options based on currently configured listeners are {','.join(told)}",
        )
    if not set(told) <= set(there):
        raise _refused(
            "advertised.listeners",
            "advertised.listeners listener names must be equal to or a subset of the ones defined "
            f"in listeners. Found {','.join(told)}. The valid options based on the current "
            f"configuration are {','.join(there)}",
        )


def _protocols(config: Config) -> dict[str, str]:
    """Name → protocol. Controllers' listeners need no entry as long as nothing is secured."""
    found: dict[str, str] = {}
    for entry in filter(None, (each.strip() for each in config.text(_MAP).split(","))):
        name, colon, protocol = entry.rpartition(":")
        if not colon:
            raise _refused(
                _MAP,
                f"Error parsing configuration property '{_MAP}': {entry} is not NAME:PROTOCOL",
            )
        if protocol.strip().upper() not in PROTOCOLS:
            raise _refused(
                _MAP, f"Invalid security protocol `{protocol.strip()}` defined in {_MAP}"
            )
        found[name.strip().upper()] = protocol.strip().upper()
    names = config.texts(_CONTROLLERS)
    if config.is_given(_MAP) or _are_secured(names):
        return found
    if _are_secured(_listener_name(each) for each in config.texts("listeners")):
        return found
    return found | dict.fromkeys(names, PLAINTEXT)


def _are_secured(names: Iterable[str]) -> bool:
    return any(name in PROTOCOLS and name != PLAINTEXT for name in names)


def _listener_name(text: str) -> str:
    name, colon, _ = text.partition(":")
    if not colon:
        raise _refused("listeners", f"Unable to parse a listener name from {text}")
    return name


def _endpoints(
    texts: Sequence[str], protocols: Mapping[str, str], *, distinct_ports: bool
) -> tuple[Endpoint, ...]:
    listed = f"[{', '.join(texts)}]"
    try:
        found = tuple(_endpoint(each, protocols) for each in texts)
        _check_distinct(found, listed, distinct_ports)
    except BadConfig as problem:
        raise _refused(
            "listeners", f"Error creating broker listeners from '{listed}': {problem}"
        ) from None
    return found


def _endpoint(text: str, protocols: Mapping[str, str]) -> Endpoint:
    match = _ENDPOINT.fullmatch(text)
    if match is None:
        raise _refused("listeners", f"Unable to parse {text} to a broker endpoint")
    name, host, port = match[1].upper(), match[2], int(match[3])
    if not name:
        raise _refused("listeners", "The provided listener name is null or empty string")
    if name not in protocols:
        raise _refused("listeners", f"No security protocol defined for listener {name}")
    if not -1 <= port <= 65535:  # Kafka finds out later, when it binds
        raise _refused("listeners", f"port out of range: {port} in {text}")
    return Endpoint(name, host, port, protocols[name])


def _check_distinct(endpoints: Sequence[Endpoint], listed: str, ports: bool) -> None:
    if len({each.name for each in endpoints}) != len(endpoints):
        raise _refused(
            "listeners", f"Each listener must have a different name, listeners: {listed}"
        )
    if not ports:
        return
    shared = Counter(each.port for each in endpoints if each.port != 0)
    for port in (port for port, count in shared.items() if count > 1):
        _check_shared_port([each for each in endpoints if each.port == port], listed, port)


def _check_shared_port(sharing: Sequence[Endpoint], listed: str, port: int) -> None:
    """Two listeners may have one port only where one is an IPv4 and one an IPv6 address."""
    versions = [_ip_version(each.host) for each in sharing]
    addresses = [version for version in versions if version is not None]
    if not addresses:
        raise _refused(
            "listeners", f"Each listener must have a different port, listeners: {listed}"
        )
    if len(addresses) > 2:
        raise _refused(
            "listeners",
            "Each listener must have a different port unless exactly one listener has an IPv4 "
            f"address and the other IPv6 address, listeners: {listed}, port: {port}",
        )
    if len(sharing) > 2 or sorted(addresses) != [4, 6]:
        raise _refused(
            "listeners",
            "If you have two listeners on the same port then one needs to be IPv4 and the other "
            f"IPv6, listeners: {listed}, port: {port}",
        )


def _ip_version(host: str) -> int | None:
    if ":" in host:
        return 6
    return 4 if _IPV4.fullmatch(host) else None


def _inter_broker(config: Config, protocols: Mapping[str, str]) -> str:
    protocol = "security.inter.broker.protocol"
    if not config.is_given(_INTER_BROKER):
        return config.text(protocol).upper()
    if config.is_given(protocol):
        raise _refused(_INTER_BROKER, f"Only one of {_INTER_BROKER} and {protocol} should be set.")
    name = config.text(_INTER_BROKER).upper()
    if name not in protocols:
        raise _refused(
            _INTER_BROKER,
            f"Listener with name {name} defined in {_INTER_BROKER} not found in {_MAP}.",
        )
    return name


def _advertised_controllers(
    config: Config, there: Iterable[Endpoint], told: Iterable[Endpoint]
) -> tuple[Endpoint, ...]:
    """Each controller listener as it is told: as advertised, or else as it listens; the first one
    where the static voters say that it is, if they do."""
    if "controller" not in config.texts("process.roles"):
        return ()
    by_name = {each.name: each for each in (*there, *told)}
    found = [by_name[name] for name in config.texts(_CONTROLLERS) if name in by_name]
    advertised = {each.name for each in told} if config.is_given("advertised.listeners") else set()
    voter = static_voters(config).get(config.whole("node.id"))
    result = []
    for number, each in enumerate(found):
        if each.name not in advertised:
            if number == 0 and voter is not None:
                each = Endpoint(each.name, *voter, each.protocol)
            elif each.host == "0.0.0.0":
                each = msgspec.structs.replace(each, host="")
        result.append(each)
    return tuple(result)


def _refused(key: str, text: str) -> BadConfig:
    return BadConfig.said(key, text)
