"""kill -9 in the middle of transactions: of each, committed readers see all or nothing, in all
partitions and in the offsets of a group; and the next producer goes on."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import confluent_kafka

from tests.broker.transactions.offset_stories import committed
from tests.broker.transactions.telling import Teller
from tests.broker.transactions.test_handed_over import ALONE
from tests.clients.adapters import Confluent
from tests.clients.transactional import confluent_committed
from tests.effort import SOAK
from tests.node.running import OurNode
from tests.oracle.driver import wait_until
from tests.oracle.kafka import HOST

ROUNDS = 30 if SOAK else 3
PARTITIONS = 3
EACH = 5


class Load:
    """Writes one transaction after the other, each with records in every partition and an offset;
    every fifth is aborted. `known` are those whose end was acknowledged."""

    def __init__(self, bootstrap: str, first: int) -> None:
        self.next = first
        self.known: dict[int, bool] = {}
        settings: dict[str, str | int | float | bool] = {
            "bootstrap.servers": bootstrap,
            "log_level": 0,
        }
        self._producer = confluent_kafka.Producer(
            {
                **settings,
                "transactional.id": "loaded",
                "linger.ms": 0,
                # Not longer than a test can wait for the one that nobody ends.
                "transaction.timeout.ms": 10_000,
                "message.timeout.ms": 5000,
            }
        )
        self._producer.init_transactions(60)
        self._consumer = confluent_kafka.Consumer({**settings, "group.id": "group"})
        self._metadata = self._consumer.consumer_group_metadata()
        self._go_on = True
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def finish(self) -> None:
        """Begin no more."""
        self._go_on = False

    def stop(self) -> None:
        self.finish()
        self._thread.join()
        self._consumer.close()

    def _write(self) -> None:
        while self._go_on:
            number, self.next = self.next, self.next + 1
            is_commit = number % 5 != 4
            try:
                self._one(number, is_commit)
            except confluent_kafka.KafkaException:
                return
            self.known[number] = is_commit

    def _one(self, number: int, is_commit: bool) -> None:
        producer = self._producer
        producer.begin_transaction()
        for partition in range(PARTITIONS):
            for _ in range(EACH):
                producer.produce("t", b"%d" % number, partition=partition)
        offset = confluent_kafka.TopicPartition("t", 0, number)
        producer.send_offsets_to_transaction([offset], self._metadata, 3)
        if is_commit:
            producer.commit_transaction(3)
        else:
            producer.abort_transaction(3)


def test_no_transaction_is_half_there(tmp_path: Path) -> None:
    node = OurNode(tmp_path, ALONE)
    node.start()
    Confluent(node.bootstrap).create_topic("t", PARTITIONS)
    chance = random.Random(11)
    known: dict[int, bool] = {}
    first = 0
    try:
        for _ in range(ROUNDS):
            load = Load(node.bootstrap, first)
            wait_until(lambda: len(load.known) >= 3, "some transactions", pause=0.02)  # noqa: B023
            time.sleep(chance.random() / 2)
            node.kill()
            # The one that is under way may go on with the node that is started again.
            load.finish()
            node.start()
            load.stop()
            known |= load.known
            first = load.next
        # Whoever begins ends what was left open.
        Load(node.bootstrap, first).stop()
        check(node, known)
        node.stop()
    finally:
        node.kill()


def check(node: OurNode, known: dict[int, bool]) -> None:
    seen = [
        [int(value) for value in confluent_committed(node.bootstrap, "t", partition)]
        for partition in range(PARTITIONS)
    ]
    # All or nothing, each once, in order, and the same everywhere.
    assert all(each == seen[0] for each in seen)
    numbers = list(dict.fromkeys(seen[0]))
    assert seen[0] == [number for number in numbers for _ in range(EACH)]
    assert numbers == sorted(numbers)
    for number, is_commit in known.items():
        assert (number in numbers) == is_commit, number
    broker = Teller((HOST, node.port))
    [partition, _] = broker.message(committed("group", "t"), 8).groups[0].topics[0].partitions  # type: ignore[union-attr]  # its answer
    assert partition.committed_offset == numbers[-1]
    broker.close()
