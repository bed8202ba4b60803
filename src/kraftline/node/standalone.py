"""A node without a file of settings: on the loopback address, its data below the directory that it
was started in, formatted when it is first used."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from kraftline.config.effective import Config, read_config
from kraftline.config.listeners import PROTOCOLS
from kraftline.config.node_settings import node_settings

DIRECTORY: Final = "./kraftline-data"
_CONTROLLER: Final = "CONTROLLER"
_STANDING: Final = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": f"PLAINTEXT://127.0.0.1:9092,{_CONTROLLER}://127.0.0.1:9093",
    "controller.listener.names": _CONTROLLER,
    "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
    "log.dirs": DIRECTORY,
    # One broker can hold no more than one replica.
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # A group's first members come one after another where there are many machines, as here there
    # are not: nobody waits for more of them. Kafka's own file for a single node says so too.
    "group.initial.rebalance.delay.ms": "0",
}


def standalone_config(overrides: Mapping[str, str] | None = None) -> Config:
    """What a node without a file runs with; `overrides` count more. Whoever says where clients
    connect need not say where the controller is."""
    given = dict(overrides or {})
    listeners = given.get("listeners")
    if listeners is not None and "controller.listener.names" not in given:
        names = [each.partition("://")[0].strip().upper() for each in listeners.split(",")]
        if _CONTROLLER not in names:
            # Any free port: nodes on one machine must not meet there.
            given["listeners"] = f"{listeners},{_CONTROLLER}://127.0.0.1:0"
            protocols = given.get("listener.security.protocol.map")
            if protocols is None and not {"SSL", "SASL_SSL", "SASL_PLAINTEXT"}.isdisjoint(names):
                given["listener.security.protocol.map"] = ",".join(
                    (
                        f"{_CONTROLLER}:PLAINTEXT",
                        *(f"{each}:{each}" for each in PROTOCOLS),
                    )
                )
            if not {"inter.broker.listener.name", "security.inter.broker.protocol"} & given.keys():
                given["inter.broker.listener.name"] = names[0]
    return read_config(None, given, _STANDING)


def python_config(settings: Mapping[str, object] | None = None) -> tuple[Config, str | None]:
    """What a node that a Python program makes runs with: a free port, and a directory of its own
    below the system's for temporary files, unless `settings` say otherwise. The directory is not
    made yet; None where one was named."""
    given = {key: _text(value) for key, value in (settings or {}).items()}
    temporary = None
    if not {"log.dirs", "log.dir"} & given.keys():
        import tempfile  # only for these

        temporary = os.path.join(tempfile.gettempdir(), f"kraftline-{os.urandom(8).hex()}")
        given["log.dirs"] = temporary
    given.setdefault("listeners", "PLAINTEXT://127.0.0.1:0")
    return standalone_config(given), temporary


def _text(value: object) -> str:
    """As a file of settings would have it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return str(value)


def format_if_new(config: Config) -> list[str]:
    """Format the node's directories unless one is formatted already; what was done, in lines."""
    settings = node_settings(config)
    places = {*settings.log_dirs, settings.metadata_log_dir}
    if any(os.path.exists(os.path.join(path, "meta.properties")) for path in places):
        return []
    return _format(config)


def _format(config: Config) -> list[str]:
    # Only now: most starts find their directories formatted.
    from kraftline.metadata.formatting import format_directories, plan_format
    from kraftline.metadata.formatting_config import format_config
    from kraftline.metadata.formatting_request import FormatArguments, format_request
    from kraftline.metadata.random_ids import random_uuid

    static = bool(config.texts("controller.quorum.voters"))
    request = format_request(
        format_config(config), str(random_uuid()), FormatArguments(standalone=not static)
    )
    lines: list[str] = []
    format_directories(plan_format(request), lines.append)
    return [*lines, f"The id of the new cluster is {request.cluster_id}."]
