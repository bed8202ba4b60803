"""A node's whole life: started, stopped, started again, killed, started again. The metadata log of
ours holds what that of a real combined node holds."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.broker.running import running
from tests.broker.talking import Talk
from tests.controller.metadata_log import LoggedBatch, in_order, read_batches
from tests.controller.topic_requests import create, delete, topic
from tests.oracle.kafka import HOST, KraftCluster

_NO_OP = frozenset({"NO_OP_RECORD"})
_TRIES = 3


@pytest.mark.oracle
@pytest.mark.parametrize(
    "release",
    [None, *(pytest.param(old, marks=pytest.mark.soak) for old in ("3.9-IV0", "3.3-IV3"))],
)
def test_the_log_of_a_life_is_kafkas(release: str | None, tmp_path: Path) -> None:
    # Behind a kill, Kafka fences the broker that is gone; but not if the new one registers just
    # when the old session has ended, as it may on a busy machine.
    for number in range(_TRIES):
        theirs = _by_kafka(tmp_path / f"kafka-{number}", release)
        # Ours starts from what Kafka's tool formatted, so that both begin alike.
        ours = _by_us(tmp_path / f"ours-{number}", tmp_path / f"kafka-{number}-formatted")
        if _without_cordoned(ours) == _without_cordoned(theirs):
            break
    assert _told_of_cordoned(ours) == _told_of_cordoned(theirs)
    assert _without_cordoned(ours) == _without_cordoned(theirs)


def _live(address: tuple[str, int]) -> None:
    with Talk(address) as talk:
        configs = {"min.insync.replicas": "1", "retention.ms": "5"}
        talk.ask(create(topic("t", 3, 1, configs), topic("s")), 7)
        talk.ask(create(topic("gone")), 7)
        talk.ask(delete("gone"), 5)


def _by_kafka(root: Path, release: str | None) -> list[LoggedBatch]:
    args = [] if release is None else ["--release-version", release]
    with KraftCluster(root, dynamic=release is None, format_args=args) as kafka:
        data = kafka.data(1)
        shutil.copytree(data, root.with_name(f"{root.name}-formatted"))
        kafka.start()
        _live((HOST, kafka.port(1)))
        kafka.stop()
        kafka.start()
        kafka.kill()
        kafka.start()
        kafka.stop()
        return [in_order(each) for each in read_batches(data, silent=_NO_OP)]


def _by_us(root: Path, formatted: Path) -> list[LoggedBatch]:
    first, killed = root / "data", root / "killed"
    shutil.copytree(formatted, first)
    with running(first) as node:
        _live(node.address)
    with running(first):
        # What a node leaves that is killed is what it has now.
        shutil.copytree(first, killed)
    with running(killed):
        pass
    return [in_order(each) for each in read_batches(killed, silent=_NO_OP)]


def _is_cordoned(kind: str, data: dict[str, object]) -> bool:
    return kind.startswith("BROKER_REGISTRATION_CHANGE") and "cordonedLogDirs" in data


def _told_of_cordoned(batches: list[LoggedBatch]) -> int:
    return sum(_is_cordoned(*record) for batch in batches for record in batch)


def _without_cordoned(batches: list[LoggedBatch]) -> list[LoggedBatch]:
    """With the heartbeat that unfences or with one before: that is a matter of time."""
    left = [
        LoggedBatch(record for record in batch if not _is_cordoned(*record)) for batch in batches
    ]
    return [batch for batch in left if batch]
