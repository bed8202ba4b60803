"""A directory with finished, open and decided transactions goes from our node to real Kafka and
back: whoever has it goes on where the other one was."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraftline.broker.coordinators.transactions.transaction import (
    Status,
    Transaction,
    change,
)
from kraftline.records import Record, build_batch
from kraftline.schema.api.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kraftline.schema.coordinator.frame import TRANSACTIONS, encode_key, encode_value
from kraftline.schema.uuids import Uuid
from kraftline.storage.log import PartitionLog
from kraftline.storage.log.batch_fields import Origin
from tests.broker.running import create_topic
from tests.broker.transactions.offset_stories import commit, committed
from tests.broker.transactions.telling import Teller, end, initialise, write
from tests.clients.transactional import confluent_committed
from tests.node.running import Broker, OurNode, RealKafka
from tests.oracle.dump import Decoder, dump_text
from tests.oracle.kafka import HOST

pytestmark = pytest.mark.oracle
ALONE = {
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
}
LONG = 600_000
NOW = time.time_ns() // 1_000_000


class Pair:
    """One directory, and both who can have it; one at a time."""

    def __init__(self, root: Path) -> None:
        self.kafka = RealKafka(root / "kafka")
        self.ours = OurNode(root / "ours", ALONE)
        self.ours.log_dirs = [self.kafka.data]
        self.ours.controller_port = self.kafka.cluster.controller_endpoint(1)[1]

    @property
    def data(self) -> Path:
        return self.kafka.data

    def kill(self) -> None:
        self.ours.kill()
        self.kafka.kill()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    found = Pair(tmp_path)
    yield found
    found.kill()


def told_to(node: Broker) -> Teller:
    return Teller((HOST, int(node.bootstrap.rpartition(":")[2])))


class Story:
    """One topic and a group; in each turn a transaction is committed, one aborted, one left open
    with records and an offset, which the next turn ends."""

    def __init__(self) -> None:
        self.topic: tuple[str, Uuid] = ("", Uuid(bytes(16)))
        self.seen: list[int] = []  # records that count, by turn
        self.offset = -1
        self.open: tuple[int, int] | None = None

    def turn(self, node: Broker, number: int) -> None:
        broker = told_to(node)
        if number == 0:
            self.topic = "handed", create_topic(broker.address, "handed")
        broker.ready_group("group")
        broker.ready("open")
        if self.open is not None:
            self._end_what_was_open(broker, number)
        done = broker.begin("done")
        broker.ask(write(self.topic, "done", done), 12)
        _, done = broker.ended("done", done, True, 5)
        self.seen.append(1)
        broker.ask(write(self.topic, "done", done), 12)
        broker.ended("done", done, False, 5)
        self.check(node, broker)
        self.open = broker.begin("open", timeout_ms=LONG)
        broker.ask(write(self.topic, "open", self.open), 12)
        broker.ask(write(self.topic, "open", self.open, 1), 12)
        broker.ask(commit("open", self.open, "group", (self.topic[0], 0, 100 + number)), 5)
        self.check(node, broker)
        broker.close()

    def _end_what_was_open(self, broker: Teller, number: int) -> None:
        assert self.open is not None
        is_commit = number % 2 == 1
        told, then = broker.ended("open", self.open, is_commit, 5)
        assert isinstance(told, dict)
        assert told["error_code"] == 0
        assert then == (self.open[0], self.open[1] + 1)
        if is_commit:
            self.seen.append(2)
            self.offset = 100 + number - 1

    def check(self, node: Broker, broker: Teller) -> None:
        assert len(confluent_committed(node.bootstrap, self.topic[0])) == sum(self.seen)
        asked: OffsetFetchRequest = committed("group", self.topic[0])
        answer = broker.ask_for(OffsetFetchResponse, asked, 8)
        [found, _] = answer.groups[0].topics[0].partitions
        assert found.committed_offset == self.offset


@pytest.mark.parametrize("ending", ["stop", pytest.param("kill", marks=pytest.mark.soak)])
def test_transactions_go_there_and_back(pair: Pair, ending: str) -> None:
    story = Story()
    turns: tuple[Broker, ...] = (pair.ours, pair.kafka, pair.ours)
    for number, node in enumerate(turns):
        node.start()
        story.turn(node, number)
        node.stop() if ending == "stop" else node.kill()
        if number == 0 and ending == "kill":
            [file] = (pair.data / "__transaction_state-0").glob("*.log")
            said = dump_text([file], Decoder.TRANSACTIONS)[file]
            assert said.count('"transactionalId":"open"') == 3
            assert '"transactionStatus":1' in said


def put(data: Path, transaction: Transaction) -> None:
    """A record of `__transaction_state` that nobody else would write just then."""
    log = PartitionLog.open(data / "__transaction_state-0")
    record = change(transaction, 1)
    assert record.value is not None
    key = encode_key(TRANSACTIONS, record.key)
    value = encode_value(TRANSACTIONS, record.value, record.version)
    batch = build_batch([Record(0, transaction.updated_at, key, value)])
    log.append(bytearray(batch), log.epochs.latest or 0, Origin.COORDINATOR)
    log.close()


def with_epoch(epoch: int, id: str, producer_id: int, **fields: object) -> Transaction:
    return Transaction(
        **{  # type: ignore[arg-type]  # its fields
            "id": id,
            "producer_id": producer_id,
            "epoch": epoch,
            "timeout_ms": LONG,
            "status": Status.EMPTY,
            "partitions": frozenset(),
            "started_at": -1,
            "updated_at": NOW,
            **fields,
        }
    )


def the_last_epochs(broker: Teller) -> list[object]:
    """Epochs run out: a new producer id comes instead, at whichever door."""
    topic = "handed", create_topic(broker.address, "handed", unless_there=True)
    broker.ready("init")
    broker.begin(None)
    said: list[object] = [broker.ask(initialise("init"), 5) for _ in range(4)]
    said += [
        broker.ask(initialise("expected", who=(502, 32766)), 5),
        # Once more: it has got a new producer id, and is told of it again.
        broker.ask(initialise("expected", who=(502, 32766)), 5),
        broker.ask(initialise("retried", who=(503, 12)), 5),
    ]
    who = 504, 32765
    for _ in range(3):
        said.append(broker.ask(write(topic, "ends", who), 12))
        before = who
        told, who = broker.ended("ends", who, True, 5)
        said += [told, broker.ended("ends", before, True, 5)[0], broker.settled("ends")]
    told, who = broker.ended("aborts", (505, 32766), False, 5)
    said += [told, broker.settled("aborts")]
    said.append(broker.ask(write(topic, "fenced", (506, 32766)), 12))
    said.append(broker.ask(initialise("fenced"), 5))
    said.append(broker.settled("fenced"))
    said.append(broker.plain(broker.begin("fenced")[1]))
    said.append(broker.ask(end("over", (507, 32767), False), 5))
    said.append(broker.settled("over"))
    # The decided one was carried out without a word.
    said.append(broker.settled("decided"))
    said += broker.look(topic)
    ids = ("init", "expected", "retried", "ends", "aborts", "fenced", "over", "decided")
    return said + [broker.log(TRANSACTIONS, id) for id in ids]


@pytest.mark.soak
def test_what_was_left_goes_on_alike(pair: Pair, tmp_path: Path) -> None:
    """A decision that its partitions do not know of yet, and epochs that are used up: our node and
    real Kafka make the same of the same directory."""
    pair.ours.start()
    broker = told_to(pair.ours)
    topic = "handed", create_topic(broker.address, "handed")
    broker.ready("decided")
    who = broker.begin("decided")
    broker.ask(write(topic, "decided", who), 12)
    broker.close()
    pair.ours.stop()
    status, where = Status.PREPARE_COMMIT, frozenset({("handed", 0)})
    put(
        pair.data,
        with_epoch(
            who[1] + 1,
            "decided",
            who[0],
            status=status,
            partitions=where,
            started_at=NOW,
            client_version=2,
            previous_id=who[0],
        ),
    )
    put(pair.data, with_epoch(32764, "init", 501))
    put(pair.data, with_epoch(32766, "expected", 502))
    put(pair.data, with_epoch(32766, "retried", 503))
    put(pair.data, with_epoch(32765, "ends", 504))
    put(pair.data, with_epoch(32766, "aborts", 505))
    put(pair.data, with_epoch(32766, "fenced", 506))
    put(pair.data, with_epoch(32767, "over", 507))
    shutil.copytree(pair.data, tmp_path / "copy")
    answers = []
    for node in (pair.kafka, pair.ours):
        shutil.rmtree(pair.data)
        shutil.copytree(tmp_path / "copy", pair.data)
        node.start()
        broker = told_to(node)
        answers.append(the_last_epochs(broker))
        broker.close()
        node.stop()
    expected, got = answers
    for number, (theirs, mine) in enumerate(zip(expected, got, strict=True)):
        assert mine == theirs, f"answer {number}"
