"""The addresses of a node: taken before anything else is opened, told to the cluster, and listened
on once the node serves."""

from __future__ import annotations

import socket
from collections.abc import Sequence

import msgspec

from kraftline.config.effective import Config
from kraftline.config.listeners import PROTOCOLS, Endpoint
from kraftline.config.node_settings import NodeSettings
from kraftline.errors import KraftlineError
from kraftline.schema.api.broker_registration import Listener as RegisteredListener
from kraftline.schema.api.controller_registration import Listener as ControllerListener
from kraftline.schema.control.voters_record import Endpoint as VoterEndpoint
from kraftline.server.server import Limits


class Address(msgspec.Struct, frozen=True):
    """An endpoint whose port is taken: connections are refused until someone listens on it."""

    endpoint: Endpoint
    channel: socket.socket

    @property
    def port(self) -> int:
        """The real one, also where 0 was asked for."""
        return int(self.channel.getsockname()[1])

    def __str__(self) -> str:
        host = self.endpoint.host
        return f"{self.endpoint.name}://{f'[{host}]' if ':' in host else host}:{self.port}"


def take_address(endpoint: Endpoint) -> Address:
    try:
        family, host = _family(endpoint.host)
        channel = socket.socket(family, socket.SOCK_STREAM)
    except OSError as problem:
        raise _unusable(endpoint, problem) from None
    try:
        channel.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            # Every address means those of IPv4 too.
            channel.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(bool(endpoint.host)))
        channel.bind((host, endpoint.port))
    except OSError as problem:
        channel.close()
        raise _unusable(endpoint, problem) from None
    channel.setblocking(False)
    return Address(endpoint, channel)


def limits_of(config: Config, settings: NodeSettings, listener: str) -> Limits:
    """A listener's own limit of connections counts for it alone."""
    most = config.of_listener(listener, "max.connections")
    assert isinstance(most, int)
    idle = config.whole("connections.max.idle.ms")
    return Limits(
        request_bytes=config.whole("socket.request.max.bytes"),
        idle_seconds=idle / 1000 if idle >= 0 else float("inf"),
        connections=most,
        connections_of_address=config.whole("max.connections.per.ip"),
        by_address=settings.overrides_by_address,
    )


def registered_listeners(
    settings: NodeSettings, addresses: Sequence[Address]
) -> tuple[RegisteredListener, ...]:
    """What others are told: as advertised, with the real port where any was taken."""
    ports = {each.endpoint.name: each.port for each in addresses}
    return tuple(
        RegisteredListener(
            name=each.name,
            host=each.host or _own_name(),
            port=each.port or ports[each.name],
            security_protocol=PROTOCOLS[each.protocol],
        )
        for each in settings.listeners.advertised
    )


def endpoints_of_voter(
    settings: NodeSettings, addresses: Sequence[Address]
) -> tuple[VoterEndpoint, ...]:
    """Where the quorum's record says that this controller is."""
    return tuple(
        VoterEndpoint(name=each.name, host=each.host, port=each.port)
        for each in controller_listeners(settings, addresses)
    )


def controller_listeners(
    settings: NodeSettings, addresses: Sequence[Address]
) -> tuple[ControllerListener, ...]:
    """As this controller registers itself: with the real port where any was taken."""
    ports = {each.endpoint.name: each.port for each in addresses}
    return tuple(
        ControllerListener(
            name=each.name,
            host=each.host or _own_name(),
            port=each.port or ports[each.name],
            security_protocol=PROTOCOLS[each.protocol],
        )
        for each in settings.listeners.advertised_controllers
    )


def _family(host: str) -> tuple[int, str]:
    """As Java chooses: IPv4 where a name has both; every address of both where there is none."""
    if not host:
        return (socket.AF_INET6, "::") if socket.has_dualstack_ipv6() else (socket.AF_INET, "")
    if host.replace(".", "").isdecimal():
        return socket.AF_INET, host  # no name to look up
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, _, _, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    return family, str(address[0])


def _own_name() -> str:
    return socket.getfqdn()


def _unusable(endpoint: Endpoint, problem: OSError) -> KraftlineError:
    where = f"{endpoint.host or '*'}:{endpoint.port}"
    hint = "; is another node running?" if "in use" in str(problem.strerror) else ""
    return KraftlineError(
        f"Socket server failed to bind to {where}: {problem.strerror} (listener {endpoint.name}"
        f"{hint})"
    )
