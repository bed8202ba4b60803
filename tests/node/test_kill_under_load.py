"""kill -9 while clients write: what was acknowledged with a flush for every record is there after
the next start, in order, once."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

import confluent_kafka

from tests.clients.adapters import Confluent
from tests.effort import SOAK
from tests.node.conftest import MakeNode
from tests.node.running import OurNode
from tests.oracle.driver import wait_until

ROUNDS = 50 if SOAK else 3
PARTITIONS = 3


class Load:
    """Writes numbered records, and keeps the number and offset of each that was acknowledged."""

    def __init__(self, bootstrap: str, turn: int) -> None:
        self.acknowledged: list[list[tuple[int, bytes]]] = [[] for _ in range(PARTITIONS)]
        self._turn = turn
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 0,
                "message.timeout.ms": 3000,
                "log_level": 0,
            }
        )
        self._go_on = True
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def stop(self) -> None:
        self._go_on = False
        self._thread.join()

    def _write(self) -> None:
        number = 0
        while self._go_on:
            try:
                self._producer.produce(
                    "t",
                    value=b"%d:%d" % (self._turn, number),
                    partition=number % PARTITIONS,
                    on_delivery=self._delivered,
                )
                number += 1
            except BufferError:
                time.sleep(0.01)
            self._producer.poll(0)
        self._producer.purge()
        self._producer.flush(5)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is None:
            self.acknowledged[message.partition()].append((message.offset(), message.value()))


def test_nothing_that_was_acknowledged_is_lost(make_node: MakeNode) -> None:
    node = make_node()
    node.start()
    Confluent(node.bootstrap).create_topic("t", PARTITIONS, {"flush.messages": "1"})
    kept: list[list[tuple[int, bytes]]] = [[] for _ in range(PARTITIONS)]
    ends = [0] * PARTITIONS
    chance = random.Random(7)
    for turn in range(ROUNDS):
        load = Load(node.bootstrap, turn)
        wait_until(lambda: all(load.acknowledged), "the first answers")  # noqa: B023
        time.sleep(chance.random())
        node.kill()
        load.stop()
        node.start()
        for partition in range(PARTITIONS):
            kept[partition] += load.acknowledged[partition]
            ends[partition] = _check(node, partition, load.acknowledged[partition], ends[partition])
    for partition in range(PARTITIONS):
        assert _check(node, partition, kept[partition], 0) == ends[partition]


def _check(node: OurNode, partition: int, acknowledged: list[tuple[int, bytes]], start: int) -> int:
    """Everything from the offset on is there, in order, once; where the log ends."""
    client = Confluent(node.bootstrap)
    low, high = client.watermarks("t", partition)
    assert low == 0
    seen = client.consume("t", start, high - start, partition)
    assert [each.offset for each in seen] == list(range(start, high))
    there = {each.offset: each.value for each in seen}
    assert all(there[offset] == value for offset, value in acknowledged)
    # Numbers of a round only grow.
    numbers = [tuple(map(int, (each.value or b"").split(b":"))) for each in seen]
    assert numbers == sorted(set(numbers))
    return high
