"""Admin clients of Python's Kafka libraries with one face."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewPartitions as AioNewPartitions
from aiokafka.admin.config_resource import ConfigResource as AioResource
from aiokafka.admin.config_resource import ConfigResourceType as AioResourceType
from aiokafka.errors import KafkaError as AioKafkaError
from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin import _config as confluent
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewPartitions
from kafka import KafkaAdminClient
from kafka import admin as python
from kafka.errors import KafkaError

T = TypeVar("T")
_SECONDS = 20.0


class Refused(Exception):
    """The broker did not do it; the message is what it said."""


class Admin(Protocol):
    def configs(self, topic: str) -> dict[str, str | None]:
        """All configs of a topic."""

    def broker_configs(self) -> dict[str, str | None]:
        """All configs of broker 1."""

    def set_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        """Refused where they cannot be."""

    def add_partitions(self, topic: str, count: int) -> None:
        """So that there are so many; Refused where that is no growth."""

    def partitions(self, topic: str) -> int: ...


class Confluent:
    def __init__(self, bootstrap: str) -> None:
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})

    def configs(self, topic: str) -> dict[str, str | None]:
        return self._described(confluent.ConfigResource(ResourceType.TOPIC, topic))

    def broker_configs(self) -> dict[str, str | None]:
        return self._described(confluent.ConfigResource(ResourceType.BROKER, "1"))

    def set_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        operation = confluent.AlterConfigOpType.SET
        entries = [
            confluent.ConfigEntry(name, value, incremental_operation=operation)
            for name, value in configs.items()
        ]
        resource = confluent.ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        _done(self._admin.incremental_alter_configs([resource]))

    def add_partitions(self, topic: str, count: int) -> None:
        _done(self._admin.create_partitions([NewPartitions(topic, count)]))

    def partitions(self, topic: str) -> int:
        return len(_done(self._admin.describe_topics(TopicCollection([topic]))).partitions)

    def _described(self, resource: confluent.ConfigResource) -> dict[str, str | None]:
        found = _done(self._admin.describe_configs([resource]))
        return {name: entry.value for name, entry in found.items()}


def _done(futures: Mapping[Any, Future[Any]]) -> Any:
    (future,) = futures.values()
    try:
        return future.result(_SECONDS)
    except KafkaException as problem:
        raise Refused(problem.args[0].str()) from problem


class KafkaPython:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def configs(self, topic: str) -> dict[str, str | None]:
        return self._described("topic", topic)

    def broker_configs(self) -> dict[str, str | None]:
        return self._described("broker", "1")

    def set_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        resource = python.ConfigResource(python.ConfigResourceType.TOPIC, topic, dict(configs))
        answer = self._ask(lambda admin: admin.alter_configs([resource]))
        if answer["topic"][topic] != "OK":
            raise Refused(str(answer))

    def add_partitions(self, topic: str, count: int) -> None:
        self._ask(lambda admin: admin.create_partitions({topic: python.NewPartitions(count)}))

    def partitions(self, topic: str) -> int:
        (found,) = self._ask(lambda admin: admin.describe_topics([topic]))
        return len(found["partitions"])

    def _described(self, kind: str, name: str) -> dict[str, str | None]:
        resource = python.ConfigResource(python.ConfigResourceType[kind.upper()], name)
        answer = self._ask(lambda admin: admin.describe_configs([resource], config_filter="all"))
        return {key: entry["value"] for key, entry in answer[kind][name].items()}

    def _ask(self, question: Callable[[Any], Any]) -> Any:
        admin = KafkaAdminClient(bootstrap_servers=self._bootstrap)
        try:
            return question(admin)
        except KafkaError as problem:
            raise Refused(str(problem)) from problem
        finally:
            admin.close()


class AioKafka:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def configs(self, topic: str) -> dict[str, str | None]:
        return self._described(AioResource(AioResourceType.TOPIC, topic))

    def broker_configs(self) -> dict[str, str | None]:
        return self._described(AioResource(AioResourceType.BROKER, "1"))

    def set_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        resource = AioResource(AioResourceType.TOPIC, topic, dict(configs))
        (answer,) = self._ask(lambda admin: admin.alter_configs([resource]))
        for code, message, *_ in answer.resources:
            if code:
                raise Refused(message)

    def add_partitions(self, topic: str, count: int) -> None:
        wanted = {topic: AioNewPartitions(count)}
        self._ask(lambda admin: admin.create_partitions(wanted))

    def partitions(self, topic: str) -> int:
        (found,) = self._ask(lambda admin: admin.describe_topics([topic]))
        return len(found["partitions"])

    def _described(self, resource: AioResource) -> dict[str, str | None]:
        (answer,) = self._ask(lambda admin: admin.describe_configs([resource]))
        ((code, message, _, _, entries),) = answer.resources
        if code:
            raise Refused(message)
        return {entry[0]: entry[1] for entry in entries}

    def _ask(self, question: Callable[[Any], Coroutine[Any, Any, T]]) -> T:
        async def ask() -> T:
            admin = AIOKafkaAdminClient(bootstrap_servers=self._bootstrap)
            await admin.start()
            try:
                return await question(admin)
            except AioKafkaError as problem:
                raise Refused(str(problem)) from problem
            finally:
                await admin.close()

        return asyncio.run(ask())


ADMINS: dict[str, Callable[[str], Admin]] = {
    "confluent-kafka": Confluent,
    "kafka-python": KafkaPython,
    "aiokafka": AioKafka,
}
