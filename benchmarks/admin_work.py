"""What administrators ask of a broker, timed: the same code and client for real Kafka and us.

- Topics of ten partitions are created and deleted, a hundred in a request, one request after the
  other. Answers alone would tell little, since a broker may make logs behind them: a second time
  is taken once every partition of the last request answers for its offsets.
- One config of one topic is changed again and again, each change after the answer to the last.
- After such an answer the config is described until it shows the change: the time from answer to
  answer, so that a round trip of the client is in it.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._listoffsets import LatestSpec, OffsetSpec
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from benchmarks.beside import Broker, Measured

PARTITIONS: Final = 10
_AT_ONCE: Final = 100
_PATIENCE: Final = 120.0
_CONFIG: Final = "max.message.bytes"

T = TypeVar("T")


class Administrator:
    """One client of one broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._client = AdminClient({"bootstrap.servers": broker.bootstrap})
        self._client.list_topics()  # connects

    def topics(self, count: int, prefix: str) -> Iterator[tuple[str, Measured]]:
        """Seconds."""
        names = [f"{prefix}-{count}-{number}" for number in range(count)]
        what = f"{count:,} topics of {PARTITIONS} partitions"
        parts = [names[at : at + _AT_ONCE] for at in range(0, count, _AT_ONCE)]
        before, start = self._broker.cpu(), time.perf_counter()
        for part in parts:
            new = [NewTopic(name, PARTITIONS, 1) for name in part]
            self._done(self._client.create_topics(new, request_timeout=_PATIENCE))
        answered = time.perf_counter() - start
        self._wait_until_usable(parts[-1], PARTITIONS)
        usable = time.perf_counter() - start
        cpu = self._broker.cpu() - before
        yield f"create {what}, s", Measured(answered, cpu)
        yield f"create {what} until usable, s", Measured(usable, cpu)
        before, start = self._broker.cpu(), time.perf_counter()
        for part in parts:
            self._done(self._client.delete_topics(part, request_timeout=_PATIENCE))
        deleted = time.perf_counter() - start
        yield f"delete {what}, s", Measured(deleted, self._broker.cpu() - before)

    def config_changes(self, topic: str, count: int) -> Iterator[tuple[str, Measured]]:
        """Changes a second, and milliseconds until a change is seen."""
        self._done(self._client.create_topics([NewTopic(topic, 1, 1)]))
        self._wait_until_usable([topic], 1)
        for number in range(20):
            self._change(topic, 10_000 + number)
        before, start = self._broker.cpu(), time.perf_counter()
        for number in range(count):
            self._change(topic, 20_000 + number)
        rate = count / (time.perf_counter() - start)
        yield "config changes, 1/s", Measured(rate, self._broker.cpu() - before)
        before, times = self._broker.cpu(), []
        for number in range(count):
            self._change(topic, 30_000 + number)
            start = time.perf_counter()
            while self._config(topic) != str(30_000 + number):
                if time.perf_counter() - start > _PATIENCE:
                    raise TimeoutError("a config change that was taken is not shown")
            times.append((time.perf_counter() - start) * 1000)
        cpu = self._broker.cpu() - before
        cuts = statistics.quantiles(times, n=100)
        yield "config change until described p50, ms", Measured(cuts[49], cpu)
        yield "config change until described p99, ms", Measured(cuts[98], cpu)

    def _change(self, topic: str, value: int) -> None:
        entry = ConfigEntry(_CONFIG, str(value), incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        self._done(self._client.incremental_alter_configs([resource]))

    def _config(self, topic: str) -> str:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        [found] = self._done(self._client.describe_configs([resource]))
        return str(found[_CONFIG].value)

    def _wait_until_usable(self, topics: Sequence[str], partitions: int) -> None:
        # Only of what has a leader: the client remembers for long that it has found none.
        self._wait_for_leaders(topics, partitions)
        asked: dict[TopicPartition, OffsetSpec] = {
            TopicPartition(topic, number): LatestSpec()  # type: ignore[no-untyped-call]  # the client does not type it
            for topic in topics
            for number in range(partitions)
        }
        end = time.perf_counter() + _PATIENCE
        while True:
            try:
                self._done(self._client.list_offsets(asked, request_timeout=_PATIENCE))
                return
            except KafkaException:
                if time.perf_counter() > end:
                    raise
                time.sleep(0.005)

    def _wait_for_leaders(self, topics: Sequence[str], partitions: int) -> None:
        end = time.perf_counter() + _PATIENCE
        while time.perf_counter() < end:
            known = self._client.list_topics(timeout=_PATIENCE).topics
            led = sum(
                partition.leader >= 0
                for topic in topics
                if topic in known
                for partition in known[topic].partitions.values()
            )
            if led == len(topics) * partitions:
                return
            time.sleep(0.005)
        raise TimeoutError("topics that were created have no leaders")

    @staticmethod
    def _done(futures: Mapping[Any, Future[T]]) -> list[T]:
        """All results; the first that failed is raised."""
        return [future.result(_PATIENCE) for future in futures.values()]
