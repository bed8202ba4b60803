"""A node of ours in a thread of this process, and real Kafka beside it, asked the same."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import uvloop

from kraftline.node import Node
from kraftline.node.standalone import format_if_new, standalone_config
from kraftline.schema.api.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kraftline.schema.uuids import Uuid
from tests.broker.talking import Talk

T = TypeVar("T")


class Running:
    """A node that runs; `run` does something in its event loop."""

    def __init__(self, node: Node, loop: asyncio.AbstractEventLoop) -> None:
        self.node = node
        self._loop = loop

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", self.node.listeners[0].port

    def run(self, work: Callable[[], T]) -> T:
        async def call() -> T:
            return work()

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(30)


@contextmanager
def running(
    directory: Path, settings: Mapping[str, str] | None = None, *, kill: bool = False
) -> Iterator[Running]:
    """A node on free ports, its data below a directory. With `kill` it is not stopped in order."""
    config = standalone_config(
        {
            "log.dirs": str(directory),
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "auto.create.topics.enable": "false",
            **(settings or {}),
        }
    )
    format_if_new(config)
    started = threading.Event()
    found: list[Running] = []
    problems: list[BaseException] = []
    end: list[asyncio.Event] = []

    async def main() -> None:
        node = Node(config)
        try:
            await node.start()
            found.append(Running(node, asyncio.get_running_loop()))
            end.append(asyncio.Event())
        finally:
            started.set()
        await end[0].wait()
        await node.stop()

    def thread() -> None:
        try:
            uvloop.run(main())
        except BaseException as problem:
            problems.append(problem)
            started.set()

    worker = threading.Thread(target=thread, name="node")
    worker.start()
    started.wait(60)
    if problems:
        raise problems[0]
    node = found[0]
    try:
        yield node
    finally:
        node.run(end[0].set)
        worker.join(60)
        assert not worker.is_alive()
    if problems:
        raise problems[0]


def create_topic(
    address: tuple[str, int],
    name: str,
    settings: Mapping[str, str] | None = None,
    *,
    partitions: int = 1,
    unless_there: bool = False,
) -> Uuid:
    """The id of a new topic, once its leader knows it."""
    request = CreateTopicsRequest(
        topics=(
            CreatableTopic(
                name=name,
                num_partitions=partitions,
                replication_factor=1,
                configs=tuple(
                    CreatableTopicConfig(name=key, value=value)
                    for key, value in (settings or {}).items()
                ),
            ),
        ),
        timeout_ms=10_000,
    )
    with Talk(address) as talk:
        [created] = talk.ask_for(CreateTopicsResponse, request, 7).topics
        if not (unless_there and created.error_code == ErrorCode.TOPIC_ALREADY_EXISTS):
            assert created.error_code == ErrorCode.NONE, created
        looked_up = ListOffsetsRequest(
            replica_id=-1,
            topics=(
                ListOffsetsTopic(
                    name=name,
                    partitions=tuple(
                        ListOffsetsPartition(partition_index=n, timestamp=-1)
                        for n in range(partitions)
                    ),
                ),
            ),
        )
        while any(
            each.error_code
            for topic in talk.ask_for(ListOffsetsResponse, looked_up, 7).topics
            for each in topic.partitions
        ):
            pass
        return created.topic_id
