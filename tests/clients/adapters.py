"""Python's Kafka clients with one face, so that one suite of behaviour asks each of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import aiokafka
import confluent_kafka
import kafka
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewTopic as AioNewTopic
from confluent_kafka import admin as confluent_admin
from confluent_kafka import cimpl
from kafka import admin as python_admin

T = TypeVar("T")
_SECONDS = 20.0


class Sent(NamedTuple):
    """What is to be produced; `timestamp` None: now."""

    key: bytes | None
    value: bytes | None
    timestamp: int | None = None
    headers: tuple[tuple[str, bytes], ...] = ()


class Seen(NamedTuple):
    """What was consumed."""

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: tuple[tuple[str, bytes], ...]


class NoSuchTopic(Exception):
    """The client says that the topic is not there."""


class Client(Protocol):
    """`codecs` are those that the client can compress with here."""

    codecs: ClassVar[tuple[str, ...]]

    def create_topic(
        self, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None: ...

    def delete_topic(self, name: str) -> None: ...

    def topics(self) -> dict[str, int]:
        """Names and how many partitions each has."""

    def produce(
        self,
        topic: str,
        records: Sequence[Sent],
        *,
        partition: int = 0,
        codec: str = "none",
        idempotent: bool = False,
    ) -> list[int]:
        """The offsets, once all replicas have them."""

    def consume(self, topic: str, start: int | None, count: int, partition: int = 0) -> list[Seen]:
        """So many records by assignment; from the beginning where `start` is None."""

    def watermarks(self, topic: str, partition: int = 0) -> tuple[int, int]: ...

    def offset_at(self, topic: str, timestamp: int, partition: int = 0) -> int | None:
        """The first offset whose record is not older; None where there is none."""


class Confluent:
    codecs: ClassVar[tuple[str, ...]] = ("none", "gzip", "snappy", "lz4", "zstd")

    def __init__(self, bootstrap: str) -> None:
        # Brokers of tests come and go: librdkafka need not say so.
        self._settings: dict[str, str | int | float | bool] = {
            "bootstrap.servers": bootstrap,
            "log_level": 0,
        }
        self._admin = confluent_admin.AdminClient(self._settings)

    def create_topic(
        self, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        topic = cimpl.NewTopic(name, partitions, 1, config=dict(configs or {}))
        for done in self._admin.create_topics([topic]).values():
            done.result(_SECONDS)

    def delete_topic(self, name: str) -> None:
        for done in self._admin.delete_topics([name]).values():
            try:
                done.result(_SECONDS)
            except confluent_kafka.KafkaException as problem:
                raise _confluent(problem) from problem

    def topics(self) -> dict[str, int]:
        found = self._admin.list_topics(timeout=_SECONDS).topics
        return {name: len(topic.partitions) for name, topic in found.items()}

    def produce(
        self,
        topic: str,
        records: Sequence[Sent],
        *,
        partition: int = 0,
        codec: str = "none",
        idempotent: bool = False,
    ) -> list[int]:
        producer = confluent_kafka.Producer(
            {
                **self._settings,
                "acks": "all",
                "compression.type": codec,
                "enable.idempotence": idempotent,
                "message.max.bytes": 30_000_000,
                "topic.metadata.propagation.max.ms": 2000,
                "linger.ms": 5,
                "message.timeout.ms": int(_SECONDS * 1000),
            }
        )
        offsets: list[int] = []
        problems: list[confluent_kafka.KafkaError] = []

        def delivered(error: Any, message: Any) -> None:
            if error is None:
                offsets.append(message.offset())
            else:
                problems.append(error)

        for record in records:
            producer.produce(
                topic,
                key=record.key,
                value=record.value,
                partition=partition,
                timestamp=record.timestamp or 0,
                headers=list(record.headers),
                on_delivery=delivered,
            )
        producer.flush(_SECONDS)
        if problems:
            raise _confluent(confluent_kafka.KafkaException(problems[0]))
        return offsets

    def consume(self, topic: str, start: int | None, count: int, partition: int = 0) -> list[Seen]:
        consumer = self._consumer()
        first = confluent_kafka.OFFSET_BEGINNING if start is None else start
        consumer.assign([confluent_kafka.TopicPartition(topic, partition, first)])
        found: list[Seen] = []
        deadline = time.monotonic() + _SECONDS
        while len(found) < count and time.monotonic() < deadline:
            message: Any = consumer.poll(0.5)
            if message is None:
                continue
            if message.error() is not None:
                raise _confluent(confluent_kafka.KafkaException(message.error()))
            found.append(
                Seen(
                    message.offset(),
                    message.key(),
                    message.value(),
                    message.timestamp()[1],
                    tuple(message.headers() or ()),
                )
            )
        consumer.close()
        return found

    def watermarks(self, topic: str, partition: int = 0) -> tuple[int, int]:
        consumer = self._consumer()
        try:
            where = confluent_kafka.TopicPartition(topic, partition)
            low, high = consumer.get_watermark_offsets(where, timeout=_SECONDS)
            return low, high
        except confluent_kafka.KafkaException as problem:
            raise _confluent(problem) from problem
        finally:
            consumer.close()

    def offset_at(self, topic: str, timestamp: int, partition: int = 0) -> int | None:
        consumer = self._consumer()
        asked = confluent_kafka.TopicPartition(topic, partition, timestamp)
        (found,) = consumer.offsets_for_times([asked], timeout=_SECONDS)
        consumer.close()
        return None if found.offset == confluent_kafka.OFFSET_END else found.offset

    def _consumer(self) -> confluent_kafka.Consumer:
        return confluent_kafka.Consumer(
            {
                **self._settings,
                "group.id": "nobody",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "topic.metadata.propagation.max.ms": 2000,
                "fetch.message.max.bytes": 30_000_000,
            }
        )


def _confluent(problem: confluent_kafka.KafkaException) -> Exception:
    unknown = (
        confluent_kafka.KafkaError.UNKNOWN_TOPIC_OR_PART,
        confluent_kafka.KafkaError._UNKNOWN_TOPIC,
    )
    return NoSuchTopic(str(problem)) if problem.args[0].code() in unknown else problem


class KafkaPython:
    codecs: ClassVar[tuple[str, ...]] = (
        "none",
        "gzip",
        "zstd",
    )  # the others need libraries that are not installed here

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def create_topic(
        self, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        topic = python_admin.NewTopic(name, partitions, 1, topic_configs=dict(configs or {}))
        admin = self._admin()
        admin.create_topics([topic], timeout_ms=int(_SECONDS * 1000))
        admin.close()

    def delete_topic(self, name: str) -> None:
        admin = self._admin()
        try:
            admin.delete_topics([name], timeout_ms=int(_SECONDS * 1000))
        except kafka.errors.UnknownTopicOrPartitionError as problem:
            raise NoSuchTopic(str(problem)) from problem
        finally:
            admin.close()

    def topics(self) -> dict[str, int]:
        consumer = self._consumer()
        found = {name: len(consumer.partitions_for_topic(name)) for name in consumer.topics()}
        consumer.close()
        return found

    def produce(
        self,
        topic: str,
        records: Sequence[Sent],
        *,
        partition: int = 0,
        codec: str = "none",
        idempotent: bool = False,
    ) -> list[int]:
        producer = kafka.KafkaProducer(
            bootstrap_servers=self._bootstrap,
            acks="all",
            compression_type=None if codec == "none" else codec,
            enable_idempotence=idempotent,
            max_request_size=30_000_000,
            linger_ms=5,
            max_block_ms=int(_SECONDS * 1000),
        )
        try:
            sent = [
                producer.send(
                    topic,
                    key=record.key,
                    value=record.value,
                    partition=partition,
                    timestamp_ms=record.timestamp,
                    headers=list(record.headers),
                )
                for record in records
            ]
            return [each.get(_SECONDS).offset for each in sent]
        finally:
            producer.close()

    def consume(self, topic: str, start: int | None, count: int, partition: int = 0) -> list[Seen]:
        consumer = self._consumer()
        where = kafka.TopicPartition(topic, partition)
        consumer.assign([where])
        if start is None:
            consumer.seek_to_beginning(where)
        else:
            consumer.seek(where, start)
        found: list[Seen] = []
        deadline = time.monotonic() + _SECONDS
        while len(found) < count and time.monotonic() < deadline:
            for records in consumer.poll(500).values():
                found += [
                    Seen(each.offset, each.key, each.value, each.timestamp, tuple(each.headers))
                    for each in records
                ]
        consumer.close()
        return found[:count]

    def watermarks(self, topic: str, partition: int = 0) -> tuple[int, int]:
        consumer = self._consumer()
        where = kafka.TopicPartition(topic, partition)
        found = consumer.beginning_offsets([where])[where], consumer.end_offsets([where])[where]
        consumer.close()
        return found

    def offset_at(self, topic: str, timestamp: int, partition: int = 0) -> int | None:
        consumer = self._consumer()
        where = kafka.TopicPartition(topic, partition)
        found = consumer.offsets_for_times({where: timestamp})[where]
        consumer.close()
        return None if found is None else found.offset

    def _admin(self) -> Any:
        return python_admin.KafkaAdminClient(bootstrap_servers=self._bootstrap)

    def _consumer(self) -> Any:
        return kafka.KafkaConsumer(
            bootstrap_servers=self._bootstrap,
            enable_auto_commit=False,
            group_id=None,
            max_partition_fetch_bytes=30_000_000,
        )


class AioKafka:
    codecs: ClassVar[tuple[str, ...]] = ("none", "gzip", "snappy", "lz4", "zstd")

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def create_topic(
        self, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        async def create() -> None:
            admin = AIOKafkaAdminClient(bootstrap_servers=self._bootstrap)
            await admin.start()
            try:
                topic = AioNewTopic(name, partitions, 1, topic_configs=dict(configs or {}))
                answer = await admin.create_topics([topic])
                for error in answer.topic_errors:
                    assert error[1] == 0, error
            finally:
                await admin.close()

        _run(create())

    def delete_topic(self, name: str) -> None:
        async def delete() -> None:
            admin = AIOKafkaAdminClient(bootstrap_servers=self._bootstrap)
            await admin.start()
            try:
                answer = await admin.delete_topics([name])
                for _, code in answer.topic_error_codes:
                    if code == 3:
                        raise NoSuchTopic(name)
                    assert code == 0
            finally:
                await admin.close()

        _run(delete())

    def topics(self) -> dict[str, int]:
        async def ask() -> dict[str, int]:
            admin = AIOKafkaAdminClient(bootstrap_servers=self._bootstrap)
            await admin.start()
            try:
                found = await admin.describe_topics()
                return {each["topic"]: len(each["partitions"]) for each in found}
            finally:
                await admin.close()

        return _run(ask())

    def produce(
        self,
        topic: str,
        records: Sequence[Sent],
        *,
        partition: int = 0,
        codec: str = "none",
        idempotent: bool = False,
    ) -> list[int]:
        async def send() -> list[int]:
            producer = aiokafka.AIOKafkaProducer(
                bootstrap_servers=self._bootstrap,
                acks="all",
                compression_type=None if codec == "none" else codec,
                enable_idempotence=idempotent,
                max_request_size=30_000_000,
                linger_ms=5,
            )
            await producer.start()
            try:
                sent = [
                    await producer.send(
                        topic,
                        key=record.key,
                        value=record.value,
                        partition=partition,
                        timestamp_ms=record.timestamp,
                        headers=list(record.headers),
                    )
                    for record in records
                ]
                return [(await each).offset for each in sent]
            finally:
                await producer.stop()

        return _run(send())

    def consume(self, topic: str, start: int | None, count: int, partition: int = 0) -> list[Seen]:
        async def read() -> list[Seen]:
            consumer = await self._consumer()
            try:
                where = aiokafka.TopicPartition(topic, partition)
                consumer.assign([where])
                if start is None:
                    await consumer.seek_to_beginning(where)
                else:
                    consumer.seek(where, start)
                found: list[Seen] = []
                while len(found) < count:
                    each = await asyncio.wait_for(consumer.getone(), _SECONDS)
                    headers = tuple(each.headers)
                    found.append(Seen(each.offset, each.key, each.value, each.timestamp, headers))
                return found
            finally:
                await consumer.stop()

        return _run(read())

    def watermarks(self, topic: str, partition: int = 0) -> tuple[int, int]:
        async def ask() -> tuple[int, int]:
            consumer = await self._consumer()
            try:
                where = aiokafka.TopicPartition(topic, partition)
                first = await consumer.beginning_offsets([where])
                last = await consumer.end_offsets([where])
                return first[where], last[where]
            finally:
                await consumer.stop()

        return _run(ask())

    def offset_at(self, topic: str, timestamp: int, partition: int = 0) -> int | None:
        async def ask() -> int | None:
            consumer = await self._consumer()
            try:
                where = aiokafka.TopicPartition(topic, partition)
                found = (await consumer.offsets_for_times({where: timestamp}))[where]
                return None if found is None else found.offset
            finally:
                await consumer.stop()

        return _run(ask())

    async def _consumer(self) -> Any:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=self._bootstrap,
            enable_auto_commit=False,
            group_id=None,
            max_partition_fetch_bytes=30_000_000,
        )
        await consumer.start()
        return consumer


def _run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


CLIENTS: Mapping[str, Callable[[str], Client]] = {
    "confluent": Confluent,
    "kafka-python": KafkaPython,
    "aiokafka": AioKafka,
}
