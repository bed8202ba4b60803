"""Log directories are cordoned and opened again while a node runs: answers and records are those of
real Kafka."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

import kraftline
from kraftline.schema.api.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.broker.talking import Talk
from tests.controller.metadata_log import end_offset, read_batches
from tests.oracle.kafka import HOST, KraftCluster, NodeSpec

_SET, _DELETE = 0, 1
_BROKER = 4


def _story(address: tuple[str, int], places: Sequence[Path]) -> tuple[list[Any], list[Any]]:
    """Answers, and what was written of configs and registrations."""
    first = places[0]
    start = end_offset(first)
    answers, told = [], 0
    with Talk(address) as talk:
        for value, operation, is_change in (
            (str(places[0]), _SET, True),
            (str(places[0]), _SET, False),
            (f"{places[1]},{places[0]}", _SET, True),
            ("/nowhere", _SET, False),
            ("*", _SET, False),
            (None, _DELETE, True),
        ):
            config = AlterableConfig(
                name="cordoned.log.dirs", config_operation=operation, value=value
            )
            resource = AlterConfigsResource(
                resource_type=_BROKER, resource_name="1", configs=(config,)
            )
            request = IncrementalAlterConfigsRequest(resources=(resource,))
            answer = talk.ask_for(IncrementalAlterConfigsResponse, request, 1)
            answers.append(_without(places, msgspec.to_builtins(answer)))
            told += is_change
            _wait_for(first, start, told)
    written = [
        (kind, _without(places, data))
        for batch in read_batches(first, start)
        for kind, data in batch
        if kind.startswith(("CONFIG", "BROKER_REGISTRATION_CHANGE"))
    ]
    return answers, written


def _wait_for(data: Path, start: int, told: int) -> None:
    """Until the broker has told so often which directories are cordoned."""
    deadline = time.monotonic() + 60
    while True:
        kinds = [kind for batch in read_batches(data, start) for kind, _ in batch]
        if sum(kind.startswith("BROKER_REGISTRATION_CHANGE") for kind in kinds) >= told:
            return
        assert time.monotonic() < deadline, kinds
        time.sleep(0.1)


def _without(places: Sequence[Path], found: Any) -> Any:
    text = msgspec.json.encode(found).decode()
    # The longer name first: one is the beginning of the other.
    for number, place in sorted(enumerate(places), key=lambda each: -len(str(each[1]))):
        text = text.replace(str(place), f"directory {number}")
    return msgspec.json.decode(text)


@pytest.mark.soak
@pytest.mark.oracle
def test_directories_are_cordoned_while_running_as_by_kafka(tmp_path: Path) -> None:
    with KraftCluster(tmp_path / "kafka", [NodeSpec(1, log_dirs=2)], dynamic=True) as kafka:
        kafka.start()
        places = [kafka.data(1), kafka.data(1, 1)]
        theirs = _story((HOST, kafka.port(1)), places)
    places = [tmp_path / "ours-one", tmp_path / "ours-two"]
    with kraftline.Node({"log.dirs": places}) as node:
        ours = _story((HOST, node.node.addresses[0].port), places)
    assert ours[0] == theirs[0]
    assert ours[1] == theirs[1]
