"""What a controller writes first, on logs that are empty, in use, or end inside a transaction."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from kraftline.controller.activation import activate
from kraftline.metadata.bootstrap import bootstrap_of
from kraftline.metadata.features import from_level
from kraftline.metadata.image import EMPTY
from kraftline.raft import EmbeddedLog
from kraftline.schema import metadata as m
from kraftline.schema.metadata.frame import encode_record
from kraftline.schema.types import Message, Uuid
from tests.broker.running import running
from tests.controller.images import image_of
from tests.controller.metadata_log import Plain, in_order, read_batches
from tests.oracle.kafka import KraftCluster

_NO_OP = frozenset({"NO_OP_RECORD"})
_OPEN: Sequence[Message] = (
    m.BeginTransactionRecord(name="left open"),
    m.TopicRecord(name="never", topic_id=Uuid(bytes(15) + b"\x77")),
)


def _types(records: Sequence[tuple[Message, int]]) -> list[str]:
    return [type(record).__name__ for record, _ in records]


def test_a_seed_is_written_in_a_transaction_where_there_are_transactions() -> None:
    old = activate(EMPTY, bootstrap_of(from_level(12), {}))
    assert old.response is True
    assert _types(old.records) == ["FeatureLevelRecord"]
    new = activate(EMPTY, bootstrap_of(from_level(13), {}))
    assert _types(new.records) == [
        "BeginTransactionRecord",
        "FeatureLevelRecord",
        "EndTransactionRecord",
    ]


def test_the_minimum_of_replicas_is_kept_where_eligible_leaders_depend_on_it() -> None:
    features = {"eligible.leader.replicas.version": 1}
    found = activate(EMPTY, bootstrap_of(from_level(30), features), min_isr=2)
    (config,) = [each for each, _ in found.records if isinstance(each, m.ConfigRecord)]
    assert (config.resource_type, config.resource_name) == (4, "")
    assert (config.name, config.value) == ("min.insync.replicas", "2")


def test_a_log_that_is_in_use_gets_nothing() -> None:
    found = activate(image_of(), bootstrap_of(from_level(30), {}))
    assert (found.response, list(found.records)) == (False, [])


@pytest.mark.oracle
@pytest.mark.parametrize("is_seeded", [True, False])
def test_an_open_transaction_is_aborted_as_by_kafka(is_seeded: bool, tmp_path: Path) -> None:
    with KraftCluster(tmp_path / "kafka", dynamic=True) as kafka:
        formatted = kafka.data(1)
        ours_at = tmp_path / "ours"
        if is_seeded:
            with running(formatted):
                pass
        asyncio.run(_leave_open(formatted))
        shutil.copytree(formatted, ours_at)
        kafka.start()
        kafka.stop()
        theirs = _read(formatted)
    with running(ours_at):
        pass
    ours = _read(ours_at)
    assert ours == theirs
    assert any(kind.startswith("ABORT_TRANSACTION") for batch in ours for kind, _ in batch)


async def _leave_open(data: Path) -> None:
    async with await EmbeddedLog.open(data, node_id=1) as log:
        await log.write([encode_record(record, 0) for record in _OPEN])


def _read(data: Path) -> list[list[tuple[str, Plain]]]:
    """Without what says which directories are cordoned: when that is told is a matter of time."""
    batches = (in_order(each) for each in read_batches(data, silent=_NO_OP))
    timeless = ([it for it in each if "cordonedLogDirs" not in it[1]] for each in batches)
    return [each for each in timeless if each]
