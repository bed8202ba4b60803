"""Members of classic groups, of three libraries, with one face. Each runs in a thread of its own,
as a consumer does in an application: its heartbeats do not wait for the others."""

from __future__ import annotations

import asyncio
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self

import aiokafka
import confluent_kafka
import kafka
from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AioRangeAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor

_SECONDS = 90.0
_HEARTBEAT_MS = 200
_SESSION_MS = 10_000
# Others have the partitions now, or soon.
_LATER = (
    confluent_kafka.KafkaError._NO_OFFSET,
    confluent_kafka.KafkaError.REBALANCE_IN_PROGRESS,
    confluent_kafka.KafkaError.ILLEGAL_GENERATION,
)


class Member(ABC):
    """`seen` are partitions, offsets and values; `owned` the partitions that it has now. What it
    has seen it commits: `is_committed`, unless a rebalance was in the way."""

    def __init__(
        self,
        bootstrap: str,
        group: str,
        *topics: str,
        instance: str | None = None,
        **settings: Any,
    ) -> None:
        self.bootstrap = bootstrap
        self.group = group
        self.topics = list(topics)
        self.instance = instance
        self.settings = settings
        self.seen: list[tuple[int, int, bytes]] = []
        self.owned: set[int] = set()
        self.is_committed = True
        self.problem: BaseException | None = None
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._work, name="member")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self._ends.set()
        self._thread.join(_SECONDS)
        assert not self._thread.is_alive()
        if self.problem is not None:
            raise self.problem

    def _work(self) -> None:
        try:
            self._run()
        except BaseException as problem:
            self.problem = problem

    @abstractmethod
    def _run(self) -> None:
        """Until it ends."""


class ConfluentMember(Member):
    """Eager with the range assignor, unless it is told otherwise."""

    def _run(self) -> None:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": self.group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "heartbeat.interval.ms": _HEARTBEAT_MS,
                "session.timeout.ms": _SESSION_MS,
                "partition.assignment.strategy": "range",
                "log_level": 0,
                **({} if self.instance is None else {"group.instance.id": self.instance}),
                **{name.replace("_", "."): value for name, value in self.settings.items()},
            }
        )
        consumer.subscribe(self.topics)
        while not self._ends.is_set():
            message: Any = consumer.poll(0.02)
            if message is not None and message.error() is None:
                self.is_committed = False
                self.seen.append((message.partition(), message.offset(), message.value()))
            elif not self.is_committed:
                try:
                    consumer.commit(asynchronous=False)
                except confluent_kafka.KafkaException as problem:
                    if problem.args[0].code() not in _LATER:
                        raise
                self.is_committed = True
            self.owned = {each.partition for each in consumer.assignment()}
        consumer.close()


class KafkaPythonMember(Member):
    def _run(self) -> None:
        consumer = kafka.KafkaConsumer(
            *self.topics,
            bootstrap_servers=self.bootstrap,
            group_id=self.group,
            group_instance_id=self.instance,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=_HEARTBEAT_MS,
            session_timeout_ms=_SESSION_MS,
            partition_assignment_strategy=[RangePartitionAssignor],
        )
        while not self._ends.is_set():
            for records in consumer.poll(timeout_ms=250).values():
                self.is_committed = False
                self.seen += [(each.partition, each.offset, each.value) for each in records]
            if not self.is_committed:
                with suppress(
                    kafka.errors.CommitFailedError, kafka.errors.RebalanceInProgressError
                ):
                    consumer.commit()
                self.is_committed = True
            self.owned = {each.partition for each in consumer.assignment()}
        consumer.close()


class AioKafkaMember(Member):
    def _run(self) -> None:
        asyncio.run(self._consume())

    async def _consume(self) -> None:
        consumer = aiokafka.AIOKafkaConsumer(
            *self.topics,
            bootstrap_servers=self.bootstrap,
            group_id=self.group,
            group_instance_id=self.instance,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=_HEARTBEAT_MS,
            session_timeout_ms=_SESSION_MS,
            partition_assignment_strategy=[AioRangeAssignor],
        )
        await consumer.start()
        try:
            while not self._ends.is_set():
                for records in (await consumer.getmany(timeout_ms=20)).values():
                    self.is_committed = False
                    self.seen += [(each.partition, each.offset, each.value) for each in records]
                if not self.is_committed:
                    with suppress(aiokafka.errors.CommitFailedError):
                        await consumer.commit()
                    self.is_committed = True
                self.owned = {each.partition for each in consumer.assignment()}
        finally:
            await consumer.stop()


MEMBERS: dict[str, type[Member]] = {
    "confluent-kafka": ConfluentMember,
    "kafka-python": KafkaPythonMember,
    "aiokafka": AioKafkaMember,
}


def until(is_so: Callable[[], bool], *members: Member) -> None:
    deadline = time.monotonic() + _SECONDS
    while not is_so():
        for each in members:
            if each.problem is not None:
                raise each.problem
        assert time.monotonic() < deadline, [each.owned for each in members]
        time.sleep(0.01)
