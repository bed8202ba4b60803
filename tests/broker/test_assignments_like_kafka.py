"""A node with several log directories tells where its replicas are, as a real one does."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.broker.running import running
from tests.broker.talking import Talk
from tests.controller.metadata_log import LoggedBatch, end_offset, in_order, read_batches
from tests.controller.topic_requests import create, delete, topic
from tests.oracle.kafka import HOST, KraftCluster, NodeSpec


@pytest.mark.oracle
def test_directories_of_replicas_are_told_as_by_kafka(tmp_path: Path) -> None:
    with KraftCluster(tmp_path / "kafka", [NodeSpec(1, log_dirs=2)], dynamic=True) as kafka:
        kafka.start()
        theirs = _tell((HOST, kafka.port(1)), kafka.data(1))
    ours_at = tmp_path / "ours"
    both = f"{ours_at / 'a'},{ours_at / 'b'}"
    with running(ours_at / "a", {"log.dirs": both}) as node:
        ours = _tell(node.address, ours_at / "a")
    assert ours == theirs
    changes = [kind for batch in ours for kind, _ in batch if kind.startswith("PARTITION_CHANGE")]
    assert len(changes) == 5


def _tell(address: tuple[str, int], data: Path) -> list[LoggedBatch]:
    """What is written for topics that are made one after the other."""
    start = end_offset(data)
    with Talk(address) as talk:
        for name, partitions in (("one", 1), ("three", 3), ("again", 1)):
            talk.ask(create(topic(name, partitions)), 7)
            time.sleep(1)
        talk.ask(delete("three"), 5)
    # Several may be told at once or one after the other: that is a matter of time.
    return [
        LoggedBatch([record]) for batch in read_batches(data, start) for record in in_order(batch)
    ]
