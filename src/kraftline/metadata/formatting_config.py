"""The few settings of `server.properties` that formatting needs, checked as Kafka checks them.

Who the node is, where its directories are and which quorum it belongs to. Of everything else only
the values are looked at: a file that Kafka would not take is no good for a first start.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from kraftline.config.effective import Config
from kraftline.config.properties import read_properties
from kraftline.errors import Corrupt, KraftlineError
from kraftline.storage.files import Path, load

_LIMIT = 16 * 1024 * 1024
_LISTENER = re.compile(r"([^:/\s]+)://(\[[0-9a-fA-F:%.]*\]|[^:\[\]]*):(-?[0-9]{1,5})")
_ADDRESS = re.compile(r"(\[[0-9a-fA-F:%.]+\]|[^:\[\]\s]+):([0-9]{1,5})")
_ANY = ("", "0.0.0.0", "::")


class BadConfig(KraftlineError):
    """A setting that is missing or wrong, with the name under which Kafka documents it."""


class Listener(msgspec.Struct, frozen=True):
    """`host` may be empty, which takes every address."""

    name: str
    host: str
    port: int


class FormatConfig(msgspec.Struct, frozen=True, kw_only=True):
    """`controller_listener` is the first of controller.listener.names; `controller` is where
    others reach this node's controller, None on a mere broker."""

    node_id: int
    roles: tuple[str, ...]
    log_dirs: tuple[str, ...]
    metadata_log_dir: str
    controller_listener: str
    controller: Listener | None
    static_voters: tuple[str, ...] = ()
    unstable_features: bool = False


def read_format_config(path: Path) -> FormatConfig:
    data, file = load(path, _LIMIT)
    try:
        found = read_properties(data)
    except ValueError as error:
        raise Corrupt(f"not a Java properties file: {error}", file=file) from error
    return format_config(found)


def format_config(found: Mapping[str, str]) -> FormatConfig:
    """Check and gather; what is asked first is what Kafka complains of first."""
    Config({name: (text, "") for name, text in found.items()})
    roles = _items(found, "process.roles")
    node_id = _node_id(found)
    names = _items(found, "controller.listener.names")
    listeners = _listeners(found.get("listeners", "PLAINTEXT://:9092"))
    voters = _static_voters(found)
    _check_quorum(found, node_id, roles, voters)
    _check_listeners(roles, names, listeners)
    log_dirs = _items(found, "log.dirs") or _items(found, "log.dir") or ("/tmp/kafka-logs",)
    return FormatConfig(
        node_id=node_id,
        roles=roles,
        log_dirs=log_dirs,
        metadata_log_dir=found.get("metadata.log.dir", "").strip() or log_dirs[0],
        controller_listener=names[0],
        controller=_controller(found, roles, names, listeners),
        static_voters=tuple(voters.values()),
        unstable_features=_flag(found, "unstable.feature.versions.enable"),
    )


def _node_id(found: Mapping[str, str]) -> int:
    given = {found[key].strip() for key in ("node.id", "broker.id") if key in found}
    if len(given) > 1:
        raise BadConfig("You must set `node.id` to the same value as `broker.id`.")
    return int(given.pop())


def _static_voters(found: Mapping[str, str]) -> dict[int, str]:
    key = "controller.quorum.voters"
    voters: dict[int, str] = {}
    for entry in _items(found, key):
        number, at, address = entry.partition("@")
        if not at or "@" in address:
            raise BadConfig(
                f"Invalid configuration value for {key}. Each entry should be in the form "
                f"`{{id}}@{{host}}:{{port}}`. ({entry!r})"
            )
        if not re.fullmatch(r"[-+]?[0-9]{1,10}", number):
            raise BadConfig(f"Failed to parse voter ID as an integer from {number} in {key}")
        if not _ADDRESS.fullmatch(address):
            raise BadConfig(
                f"Failed to parse host name from entry {entry} for the configuration {key}. "
                "Each entry should be in the form `{id}@{host}:{port}`."
            )
        voters[int(number)] = entry
    return voters


def _check_quorum(
    found: Mapping[str, str], node_id: int, roles: tuple[str, ...], voters: Mapping[int, str]
) -> None:
    servers = "controller.quorum.bootstrap.servers"
    for entry in _items(found, servers):
        if not _ADDRESS.fullmatch(entry):
            raise BadConfig(
                f"Failed to parse host name from {entry} for the configuration {servers}. "
                'Each entry should be in the form "{host}:{port}"'
            )
    if not voters and not _items(found, servers):
        raise BadConfig(
            f"If using process.roles, either {servers} must contain the set of bootstrap "
            "controllers or controller.quorum.voters must contain a parseable set of controllers."
        )
    ids = ",".join(str(voter) for voter in voters)
    if voters and "controller" in roles and node_id not in voters:
        raise BadConfig(
            f"If process.roles contains the 'controller' role, the node id {node_id} must be "
            f"included in the set of voters controller.quorum.voters=Set({ids})"
        )
    if "controller" not in roles and node_id in voters:
        raise BadConfig(
            f"If process.roles contains just the 'broker' role, the node id {node_id} must not "
            f"be included in the set of voters controller.quorum.voters=Set({ids})"
        )


def _check_listeners(
    roles: tuple[str, ...], names: tuple[str, ...], listeners: tuple[Listener, ...]
) -> None:
    there = {listener.name for listener in listeners}
    if "controller" not in roles:
        if there.intersection(names):
            raise BadConfig(
                "controller.listener.names must not contain a value appearing in the 'listeners' "
                "configuration when running KRaft with just the broker role"
            )
    elif not there.intersection(names):
        raise BadConfig(
            "controller.listener.names must contain at least one value appearing in the "
            "'listeners' configuration when running the KRaft controller role"
        )
    elif not there.issuperset(names):
        raise BadConfig(
            "controller.listener.names must only contain values appearing in the 'listeners' "
            "configuration when running the KRaft controller role"
        )


def _controller(
    found: Mapping[str, str],
    roles: tuple[str, ...],
    names: tuple[str, ...],
    listeners: tuple[Listener, ...],
) -> Listener | None:
    """The address under which this controller is announced: its first name, looked up in
    advertised.listeners, or else in listeners."""
    if "controller" not in roles:
        return None
    advertised = _listeners(found.get("advertised.listeners", ""))
    controller = {each.name: each for each in (*listeners, *advertised)}[names[0]]
    # Nobody can connect to the address that stands for all.
    return (
        controller
        if controller.host not in _ANY
        else msgspec.structs.replace(controller, host="localhost")
    )


def parse_listener(text: str) -> Listener:
    """`NAME://host:port`, where the host may be missing."""
    match = _LISTENER.fullmatch(text.strip())
    if match is None or int(match[3]) > 65535:
        raise BadConfig(
            f"Unable to parse a listener name from {text}: a listener is NAME://host:port"
        )
    return Listener(match[1].upper(), match[2].strip("[]"), int(match[3]))


def _listeners(text: str) -> tuple[Listener, ...]:
    return tuple(parse_listener(part) for part in text.split(",") if part.strip())


def _items(found: Mapping[str, str], key: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in found.get(key, "").split(",") if part.strip())


def _flag(found: Mapping[str, str], key: str) -> bool:
    return found.get(key, "").strip().lower() == "true"
