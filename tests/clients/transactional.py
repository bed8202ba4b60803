"""Transactions of Python's Kafka clients with one face."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

import aiokafka
import confluent_kafka
import kafka
from aiokafka.errors import KafkaError as AioError
from aiokafka.structs import TopicPartition as AioPartition
from kafka.errors import KafkaError as PythonError

T = TypeVar("T")
_SECONDS = 30.0


class Fenced(Exception):
    """The client says that another producer has taken its place."""


class Transactions(Protocol):
    """A producer with a transactional id, which has begun."""

    def begin(self) -> None: ...

    def send(self, topic: str, value: bytes, partition: int = 0) -> None:
        """Return once it is acknowledged."""

    def send_offset(self, group: str, topic: str, partition: int, offset: int) -> None: ...

    def commit(self) -> None: ...

    def abort(self) -> None: ...

    def close(self) -> None: ...


class ConfluentTransactions:
    def __init__(self, bootstrap: str, id: str, timeout_ms: int = 60_000) -> None:
        self._bootstrap = bootstrap
        self._problems: list[confluent_kafka.KafkaError] = []
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": id,
                "transaction.timeout.ms": timeout_ms,
                "linger.ms": 0,
                "log_level": 0,
            }
        )
        self._call(lambda: self._producer.init_transactions(_SECONDS))

    def begin(self) -> None:
        self._call(self._producer.begin_transaction)

    def send(self, topic: str, value: bytes, partition: int = 0) -> None:
        def delivered(error: Any, message: Any) -> None:
            if error is not None:
                self._problems.append(error)

        def send() -> None:
            self._producer.produce(topic, value, partition=partition, on_delivery=delivered)
            self._producer.flush(_SECONDS)

        self._call(send)
        if self._problems:
            raise _confluent(self._problems.pop())

    def send_offset(self, group: str, topic: str, partition: int, offset: int) -> None:
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": self._bootstrap, "group.id": group, "log_level": 0}
        )
        self.send_positions([confluent_kafka.TopicPartition(topic, partition, offset)], consumer)
        consumer.close()

    def send_positions(
        self, where: list[confluent_kafka.TopicPartition], consumer: confluent_kafka.Consumer
    ) -> None:
        """For the member of a group that a consumer is."""
        metadata = consumer.consumer_group_metadata()
        self._call(lambda: self._producer.send_offsets_to_transaction(where, metadata, _SECONDS))

    def commit(self) -> None:
        self._call(lambda: self._producer.commit_transaction(_SECONDS))

    def abort(self) -> None:
        self._call(lambda: self._producer.abort_transaction(_SECONDS))

    def close(self) -> None:
        self._producer.purge()
        self._producer.flush(0)

    def _call(self, work: Any) -> None:
        try:
            work()
        except confluent_kafka.KafkaException as problem:
            raise _confluent(problem.args[0]) from problem


def _confluent(error: confluent_kafka.KafkaError) -> Exception:
    if error.code() in (confluent_kafka.KafkaError._FENCED, 47, 90):
        return Fenced(error.str())
    return confluent_kafka.KafkaException(error)


class PythonTransactions:
    def __init__(self, bootstrap: str, id: str, timeout_ms: int = 60_000) -> None:
        self._producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap, transactional_id=id, transaction_timeout_ms=timeout_ms
        )
        self._producer.init_transactions()

    def begin(self) -> None:
        self._call(self._producer.begin_transaction)

    def send(self, topic: str, value: bytes, partition: int = 0) -> None:
        def send() -> None:
            self._producer.send(topic, value, partition=partition).get(_SECONDS)

        self._call(send)

    def send_offset(self, group: str, topic: str, partition: int, offset: int) -> None:
        where = kafka.TopicPartition(topic, partition)
        offsets = {where: kafka.OffsetAndMetadata(offset, "", -1)}
        self._call(lambda: self._producer.send_offsets_to_transaction(offsets, group))

    def commit(self) -> None:
        self._call(self._producer.commit_transaction)

    def abort(self) -> None:
        self._call(self._producer.abort_transaction)

    def close(self) -> None:
        self._producer.close(0)

    def _call(self, work: Any) -> None:
        try:
            work()
        except PythonError as problem:
            if _is_fenced(problem):
                raise Fenced(repr(problem)) from problem
            raise


class AioTransactions:
    def __init__(self, bootstrap: str, id: str, timeout_ms: int = 60_000) -> None:
        self._loop = asyncio.new_event_loop()

        async def make() -> aiokafka.AIOKafkaProducer:
            producer = aiokafka.AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                transactional_id=id,
                transaction_timeout_ms=timeout_ms,
            )
            await producer.start()
            return producer

        self._producer = self._run(make())

    def begin(self) -> None:
        self._run(self._producer.begin_transaction())

    def send(self, topic: str, value: bytes, partition: int = 0) -> None:
        self._run(self._producer.send_and_wait(topic, value, partition=partition))

    def send_offset(self, group: str, topic: str, partition: int, offset: int) -> None:
        offsets = {AioPartition(topic, partition): offset}
        self._run(self._producer.send_offsets_to_transaction(offsets, group))

    def commit(self) -> None:
        self._run(self._producer.commit_transaction())

    def abort(self) -> None:
        self._run(self._producer.abort_transaction())

    def close(self) -> None:
        try:
            self._run(self._producer.stop())
        except Fenced:
            return
        finally:
            self._loop.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            return self._loop.run_until_complete(asyncio.wait_for(work, _SECONDS))
        except AioError as problem:
            if _is_fenced(problem):
                raise Fenced(repr(problem)) from problem
            raise


def _is_fenced(problem: Exception) -> bool:
    text = f"{problem!r} {problem.__cause__!r}"
    return any(each in text for each in ("Fenced", "InvalidProducerEpoch"))


PRODUCERS: dict[str, type[Transactions]] = {
    "confluent-kafka": ConfluentTransactions,
    "kafka-python": PythonTransactions,
    "aiokafka": AioTransactions,
}


def confluent_committed(bootstrap: str, topic: str, partition: int = 0) -> list[bytes]:
    """Everything that a consumer of committed records sees now."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "nobody",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, partition, 0)])
    found: list[bytes] = []
    deadline = time.monotonic() + _SECONDS
    while True:
        message: Any = consumer.poll(1)
        assert time.monotonic() < deadline
        if message is None:
            continue
        if message.error() is not None:
            assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
            consumer.close()
            return found
        found.append(message.value())


def python_committed(bootstrap: str, topic: str, partition: int = 0) -> list[bytes]:
    where = kafka.TopicPartition(topic, partition)
    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, isolation_level="read_committed")
    consumer.assign([where])
    consumer.seek_to_beginning(where)
    end = consumer.end_offsets([where])[where]
    found = []
    deadline = time.monotonic() + _SECONDS
    while consumer.position(where) < end:
        assert time.monotonic() < deadline
        for records in consumer.poll(500).values():
            found += [record.value for record in records]
    consumer.close()
    return found


def aio_committed(bootstrap: str, topic: str, partition: int = 0) -> list[bytes]:
    where = AioPartition(topic, partition)

    async def read() -> list[bytes]:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=bootstrap, isolation_level="read_committed"
        )
        await consumer.start()
        try:
            consumer.assign([where])
            await consumer.seek_to_beginning(where)
            end = (await consumer.end_offsets([where]))[where]
            found = []
            while await consumer.position(where) < end:
                for records in (await consumer.getmany(timeout_ms=500)).values():
                    found += [record.value for record in records]
            return found
        finally:
            await consumer.stop()

    return asyncio.run(asyncio.wait_for(read(), _SECONDS))


READERS = {
    "confluent-kafka": confluent_committed,
    "kafka-python": python_committed,
    "aiokafka": aio_committed,
}
