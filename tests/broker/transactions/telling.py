"""One who tells stories of transactions to a broker, real Kafka or ours.

Ids of producers and times differ from broker to broker: they go by names here.
"""

from __future__ import annotations

import time
from typing import Any, TypeVar

import msgspec

from kraftline.records import Record, build_batch
from kraftline.records.framing import batches
from kraftline.schema.api.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kraftline.schema.api.describe_producers import DescribeProducersRequest, TopicRequest
from kraftline.schema.api.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from kraftline.schema.api.end_txn import EndTxnRequest, EndTxnResponse
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.fetch import FetchResponse
from kraftline.schema.api.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kraftline.schema.api.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kraftline.schema.api.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from kraftline.schema.coordinator.frame import CoordinatorTopic, decode_key, decode_value
from kraftline.schema.types import Message
from kraftline.schema.uuids import Uuid
from tests.broker.comparing import Broker
from tests.broker.stories import fetch, offsets, produce, wanted
from tests.broker.talking import Closed

Topic = tuple[str, Uuid]
M = TypeVar("M", bound=Message)

_PRODUCERS = {"producer_id", "previous_producer_id", "next_producer_id"}
_TIMES = {
    "commit_timestamp",
    "last_timestamp",
    "transaction_last_update_timestamp_ms",
    "transaction_start_time_ms",
    "transaction_start_timestamp_ms",
}
_SOON = 30.0


class Teller(Broker):
    """A broker that transactions are told to."""

    def __init__(self, address: tuple[str, int]) -> None:
        super().__init__(address)
        self._producers: dict[int, str] = {}

    def plain(self, value: Any, name: str = "") -> Any:
        # 0 is what answers have that tell of no producer.
        if name in _PRODUCERS and isinstance(value, int) and value > 0:
            return self._producers.setdefault(value, f"producer {len(self._producers)}")
        if name in _TIMES and isinstance(value, int) and value > 0:
            return "then"
        return super().plain(value, name)

    def ask_for(self, kind: type[M], request: Message, version: int) -> M:
        answer = self.message(request, version)
        if answer == "closed":
            raise Closed
        assert isinstance(answer, kind), answer
        return answer

    def name(self, name: str) -> str:
        """A transactional id or a group of its own, which goes by this name."""
        own = f"{name}-{self._suffix}"
        self._names[own] = name
        return own

    def id(self, name: str) -> str:
        """A transactional id whose coordinator is there."""
        own = self.name(name)
        self.ready(own)
        self.begin(None)  # there are producer ids
        return own

    def ready(self, id: str) -> None:
        """Wait for the coordinator of a transactional id."""
        self.coordinator(id, 1)
        deadline = time.monotonic() + _SOON
        asked = DescribeTransactionsRequest(transactional_ids=(id,))
        while True:
            answer = self.ask_for(DescribeTransactionsResponse, asked, 0)
            error = answer.transaction_states[0].error_code
            if error in (ErrorCode.NONE, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND):
                return
            assert time.monotonic() < deadline, ErrorCode(error)

    def group(self, name: str) -> str:
        """A group whose coordinator is there."""
        own = self.name(name)
        self.ready_group(own)
        return own

    def ready_group(self, group: str) -> None:
        self.coordinator(group, 0)
        deadline = time.monotonic() + _SOON
        asked = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=group),))
        while self.ask_for(OffsetFetchResponse, asked, 8).groups[0].error_code != ErrorCode.NONE:
            assert time.monotonic() < deadline

    def coordinator(self, key: str, kind: int) -> None:
        deadline = time.monotonic() + _SOON
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=(key,))
        while True:
            answer = self.ask_for(FindCoordinatorResponse, request, 4)
            if answer.coordinators[0].error_code == ErrorCode.NONE:
                return
            assert time.monotonic() < deadline, answer

    def begin(self, id: str | None, version: int = 5, timeout_ms: int = 60_000) -> tuple[int, int]:
        """A producer id and epoch, asked for until there is one."""
        deadline = time.monotonic() + _SOON
        while True:
            answer = self.ask_for(InitProducerIdResponse, initialise(id, timeout_ms), version)
            if answer.error_code == ErrorCode.NONE:
                if id is not None:
                    self.plain(answer)
                return answer.producer_id, answer.producer_epoch
            assert answer.error_code in (
                ErrorCode.CONCURRENT_TRANSACTIONS,
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                ErrorCode.NOT_COORDINATOR,
            ), answer
            assert time.monotonic() < deadline, answer

    def settled(self, id: str) -> object:
        """What is told of a transaction, once nothing is on its way any more."""
        deadline = time.monotonic() + _SOON
        request = DescribeTransactionsRequest(transactional_ids=(id,))
        while True:
            answer = self.ask_for(DescribeTransactionsResponse, request, 0)
            if not answer.transaction_states[0].transaction_state.startswith("Prepare"):
                return self.plain(answer)
            assert time.monotonic() < deadline, answer

    def ended(
        self, id: str, who: tuple[int, int], commit: bool, version: int
    ) -> tuple[object, tuple[int, int]]:
        """The answer to an end, and who the producer is then; all partitions know of it."""
        answer = self.ask_for(EndTxnResponse, end(id, who, commit), version)
        self.settled(id)
        told = self.plain(answer)
        if version >= 5 and answer.error_code == ErrorCode.NONE:
            return told, (answer.producer_id, answer.producer_epoch)
        return told, who

    def log(self, topic: CoordinatorTopic, *names: str) -> list[object]:
        """The records of a coordinator's topic that name one of these: keys, versions, values."""
        found: list[object] = []
        offset = 0
        while True:
            where = topic.name, Uuid(bytes(16))
            asked = fetch(where, wanted(offset=offset), version=12)
            [data] = self.ask_for(FetchResponse, asked, 12).responses[0].partitions
            assert data.error_code == ErrorCode.NONE, data
            if not data.records:
                return found
            for batch in batches(data.records):
                offset = batch.next_offset
                if batch.is_control:
                    continue
                for record in batch.records():
                    assert record.key is not None
                    key = decode_key(topic, record.key)
                    if not any(name in names for name in msgspec.structs.astuple(key)):
                        continue
                    value, version = None, None
                    if record.value is not None:
                        value, version = decode_value(topic, key.SPEC.key, record.value)
                    writer = self.plain(batch.producer_id, "producer_id"), batch.producer_epoch
                    is_in_transaction = batch.is_transactional
                    found.append(
                        (self.plain(key), version, self.plain(value), writer, is_in_transaction)
                    )

    def look(self, topic: Topic, partition: int = 0) -> list[object]:
        """What can be seen of a partition: offsets of both isolations, producers, records."""
        found: FetchResponse = self.ask_for(
            FetchResponse, fetch(topic, wanted(partition), isolation=1, version=13), 13
        )
        [data] = found.responses[0].partitions
        aborted = [
            (self.plain(each.producer_id, "producer_id"), each.first_offset)
            for each in data.aborted_transactions or ()
        ]
        return [
            self.ask(offsets(topic[0], (partition, -1), isolation_level=0), 7),
            self.ask(offsets(topic[0], (partition, -1), isolation_level=1), 7),
            self.ask(producers(topic[0], partition), 0),
            (data.high_watermark, data.last_stable_offset, sorted(aborted, key=str)),
            len(data.records or b""),
        ]


def initialise(
    id: str | None, timeout_ms: int = 60_000, who: tuple[int, int] = (-1, -1)
) -> InitProducerIdRequest:
    return InitProducerIdRequest(
        transactional_id=id,
        transaction_timeout_ms=timeout_ms,
        producer_id=who[0],
        producer_epoch=who[1],
    )


def end(id: str, who: tuple[int, int], commit: bool) -> EndTxnRequest:
    return EndTxnRequest(
        transactional_id=id, producer_id=who[0], producer_epoch=who[1], committed=commit
    )


def add(id: str, who: tuple[int, int], *partitions: tuple[str, int]) -> AddPartitionsToTxnRequest:
    """As clients ask, up to version 3."""
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=id,
        v3_and_below_producer_id=who[0],
        v3_and_below_producer_epoch=who[1],
        v3_and_below_topics=_topics(partitions),
    )


def added(
    id: str, who: tuple[int, int], *partitions: tuple[str, int], verify_only: bool = False
) -> AddPartitionsToTxnTransaction:
    """One of those that brokers ask for, from version 4 on."""
    return AddPartitionsToTxnTransaction(
        transactional_id=id,
        producer_id=who[0],
        producer_epoch=who[1],
        verify_only=verify_only,
        topics=_topics(partitions),
    )


def _topics(partitions: tuple[tuple[str, int], ...]) -> tuple[AddPartitionsToTxnTopic, ...]:
    names = dict.fromkeys(name for name, _ in partitions)
    return tuple(
        AddPartitionsToTxnTopic(
            name=name, partitions=tuple(number for each, number in partitions if each == name)
        )
        for name in names
    )


def producers(topic: str, *partitions: int) -> DescribeProducersRequest:
    return DescribeProducersRequest(
        topics=(TopicRequest(name=topic, partition_indexes=partitions),)
    )


def records(
    who: tuple[int, int],
    sequence: int = 0,
    count: int = 1,
    value: bytes = b"value",
    **fields: Any,
) -> bytes:
    now = time.time_ns() // 1_000_000  # what is old is deleted
    return build_batch(
        [Record(n, now + n, b"key", value) for n in range(count)],
        producer_id=who[0],
        producer_epoch=who[1],
        base_sequence=sequence,
        **{"is_transactional": True, **fields},
    )


def write(
    topic: Topic, id: str | None, who: tuple[int, int], sequence: int = 0, partition: int = 0
) -> Any:
    return produce(topic, [(partition, records(who, sequence))], acks=-1, transactional_id=id)
