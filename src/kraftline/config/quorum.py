"""Where the controllers are: `controller.quorum.voters` and `controller.quorum.bootstrap.servers`,
by Kafka's rules and in its words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from kraftline.config.effective import Config
from kraftline.config.java_numbers import java_integer
from kraftline.config.values import BadConfig

SERVERS: Final = "controller.quorum.bootstrap.servers"
VOTERS: Final = "controller.quorum.voters"
_ADDRESS: Final = re.compile(r"(?:[0-9a-zA-Z\-%._]*://)?\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]+)")
_VOTER: Final = "`{id}@{host}:{port}`"
_FORM: Final = "Each entry should be in the form"


def check_quorum(config: Config, node_id: int, roles: Sequence[str]) -> None:
    """BadConfig unless the node's place in the quorum is clear; listeners are not looked at."""
    voters = static_voters(config)
    for entry in config.texts(SERVERS):
        _address(
            entry,
            SERVERS,
            f'from {entry} for the configuration {SERVERS}. {_FORM} "{{host}}:{{port}}"',
        )
    if not voters and not config.texts(SERVERS):
        raise BadConfig.said(
            SERVERS,
            f"If using process.roles, either {SERVERS} must contain the set of bootstrap "
            f"controllers or {VOTERS} must contain a parseable set of controllers.",
        )
    said = f"the set of voters {VOTERS}=Set({', '.join(map(str, voters))})"
    if "controller" in roles:
        if voters and node_id not in voters:
            raise BadConfig.said(
                VOTERS,
                f"If process.roles contains the 'controller' role, the node id {node_id} must be "
                f"included in {said}",
            )
    elif node_id in voters:
        raise BadConfig.said(
            VOTERS,
            f"If process.roles contains just the 'broker' role, the node id {node_id} must not be "
            f"included in {said}",
        )


def static_voters(config: Config) -> dict[int, tuple[str, int]]:
    """Host and port of each voter."""
    found: dict[int, tuple[str, int]] = {}
    for entry in config.texts(VOTERS):
        parts = _split(entry)
        if len(parts) != 2:
            raise BadConfig.said(
                VOTERS,
                f"Invalid configuration value for {VOTERS}. {_FORM} {_VOTER}.",
            )
        number, address = parts
        voter = java_integer(number)
        if voter is None:
            raise BadConfig.said(
                VOTERS, f"Failed to parse voter ID as an integer from {number} in {VOTERS}"
            )
        found[voter] = _address(
            address,
            VOTERS,
            f"from entry {entry} for the configuration {VOTERS}. {_FORM} {_VOTER}.",
        )
    return found


def _split(entry: str) -> list[str]:
    """As Java splits: what is empty at the end does not count."""
    return entry.rstrip("@").split("@")


def _address(text: str, key: str, where: str) -> tuple[str, int]:
    match = _ADDRESS.fullmatch(text)
    if match is None:
        raise BadConfig.said(key, f"Failed to parse host name {where}")
    port = java_integer(match[2])
    if port is None or port > 65535:
        raise BadConfig.said(key, f"port out of range:{match[2]} in {text} of {key}")
    return match[1], port
