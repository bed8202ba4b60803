"""kill -9 in the middle of transactions: of each, committed readers see all or nothing, in all
partitions and in the offsets of a group; and the next producer goes on."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path
from typing import Any

from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.txn_offset_commit import TxnOffsetCommitResponse
from kraftline.schema.types import Message
from kraftline.schema.uuids import Uuid
from tests.broker.running import create_topic
from tests.broker.stories import produce
from tests.broker.talking import Closed
from tests.broker.transactions.offset_stories import add_offsets, commit, committed
from tests.broker.transactions.telling import Teller, add, end, records
from tests.broker.transactions.test_handed_over import ALONE
from tests.clients.transactional import confluent_committed
from tests.effort import SOAK
from tests.node.running import OurNode
from tests.oracle.driver import wait_until
from tests.oracle.kafka import HOST

ROUNDS = 30 if SOAK else 2
PARTITIONS = 3
EACH = 5


class Load:
    """Writes one transaction after the other, each with records in every partition and an offset;
    every fifth is aborted, every third is of an old client. `known` are those whose end was
    acknowledged. When the broker goes away it stops."""

    def __init__(self, node: OurNode, topic: Uuid, first: int) -> None:
        self.next = first
        self.known: dict[int, bool] = {}
        self._topic = "t", topic
        self._broker = Teller((HOST, node.port))
        self._broker.ready_group("group")
        self._broker.ready("loaded")
        self._who = self._broker.begin("loaded")
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def stop(self) -> None:
        self._thread.join()
        self._broker.close()

    def _write(self) -> None:
        while True:
            number, self.next = self.next, self.next + 1
            is_commit = number % 5 != 4
            try:
                self._one(number, is_commit, is_old=number % 3 == 2)
            except (Closed, OSError):
                return
            self.known[number] = is_commit

    def _one(self, number: int, is_commit: bool, is_old: bool) -> None:
        broker, who = self._broker, self._who
        if is_old:
            partitions = [("t", partition) for partition in range(PARTITIONS)]
            self._ask(add("loaded", who, *partitions), 3)
            self._ask(add_offsets("loaded", who, "group"), 3)
        for partition in range(PARTITIONS):
            data = records(who, 0, EACH, value=b"%d" % number)
            request = produce(self._topic, [(partition, data)], acks=-1, transactional_id="loaded")
            self._ask(request, 11 if is_old else 12)
        offset = commit("loaded", who, "group", ("t", 0, number))
        self._ask_once_loaded(offset, 3 if is_old else 5)
        answer = self._ask(end("loaded", who, is_commit), 4 if is_old else 5)
        if is_old:
            # So that sequences begin again, as with those who get a new epoch.
            self._who = broker.begin("loaded")
        else:
            self._who = answer.producer_id, answer.producer_epoch

    def _ask_once_loaded(self, request: Message, version: int) -> None:
        deadline = time.monotonic() + 30
        while True:
            answer = self._broker.ask_for(TxnOffsetCommitResponse, request, version)
            [partition] = answer.topics[0].partitions
            if partition.error_code == ErrorCode.NONE:
                return
            assert partition.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, answer
            assert time.monotonic() < deadline

    def _ask(self, request: Message, version: int) -> Any:
        answer = self._broker.message(request, version)
        if answer == "closed":
            raise Closed
        assert "error_code=" not in repr(answer).replace("error_code=0", ""), answer
        return answer


def test_no_transaction_is_half_there(tmp_path: Path) -> None:
    node = OurNode(tmp_path, ALONE)
    node.start()
    topic = create_topic((HOST, node.port), "t", partitions=PARTITIONS)
    chance = random.Random(11)
    known: dict[int, bool] = {}
    first = 0
    try:
        for _ in range(ROUNDS):
            load = Load(node, topic, first)
            wait_until(lambda: len(load.known) >= 6, "some transactions", pause=0.01)  # noqa: B023
            time.sleep(chance.random() / 5)
            node.kill()
            load.stop()
            known |= load.known
            first = load.next
            node.start()
        # Whoever begins ends what was left open.
        broker = Teller((HOST, node.port))
        broker.ready("loaded")
        broker.begin("loaded")
        broker.close()
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
