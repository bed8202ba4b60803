"""Brokers that exist only in this test tell a real controller and ours the same: both answer the
same, and write the same records."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import msgspec
import pytest

from kraftline.controller.controller import Controller
from kraftline.metadata.bootstrap import read_bootstrap
from kraftline.metadata.image import EMPTY
from kraftline.node.standalone import format_if_new, standalone_config
from kraftline.raft import EmbeddedLog
from kraftline.schema.api.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from kraftline.schema.codec import decode, encode
from kraftline.schema.types import Message
from kraftline.schema.uuids import ZERO
from kraftline.storage.snapshot_file import now
from tests.broker.talking import Talk
from tests.controller.broker_stories import (
    CLUSTER,
    Silence,
    Step,
    beat,
    random_story,
    silent_story,
    told_story,
)
from tests.controller.metadata_log import LoggedBatch, end_offset, in_order, read_batches
from tests.oracle.kafka import KraftCluster, NodeSpec

Ask: TypeAlias = Callable[[Message, int], Awaitable[Message]]
Story: TypeAlias = Callable[[], Iterable[Step | Silence]]
# Longer than any story, and short enough to wait for.
_LONG_MS, _SHORT_MS = 600_000, 1_500
_METHODS = {62: "register", 63: "heartbeat", 19: "create_topics", 20: "delete_topics"}


class Told(msgspec.Struct):
    """What a controller said to each request, and what it wrote."""

    answers: list[tuple[object, object]]
    batches: list[LoggedBatch]


@pytest.mark.oracle
def test_every_rule_of_a_brokers_life_is_kafkas(tmp_path: Path) -> None:
    _hold_equal(tmp_path, told_story)


@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(4))
def test_whatever_brokers_do_ours_decides_as_kafka(seed: int, tmp_path: Path) -> None:
    _hold_equal(tmp_path, lambda: random_story(Random(seed), 300))


@pytest.mark.oracle
def test_brokers_that_fall_silent_are_fenced_as_by_kafka(tmp_path: Path) -> None:
    _hold_equal(tmp_path, silent_story, session_ms=_SHORT_MS)


def _hold_equal(root: Path, story: Story, *, session_ms: int = _LONG_MS) -> None:
    theirs = _by_kafka(root / "kafka", story(), session_ms)
    ours = _by_us(root, story(), session_ms)
    for (request, expected), (_, answer) in zip(theirs.answers, ours.answers, strict=True):
        assert answer == expected, request
    assert ours.batches == theirs.batches


def _by_kafka(root: Path, story: Iterable[Step | Silence], session_ms: int) -> Told:
    """By a controller without brokers."""
    nodes = [NodeSpec(1, "controller")]
    properties = {"broker.session.timeout.ms": str(session_ms)}
    with KraftCluster(
        root, nodes, cluster_id=CLUSTER, properties=properties, dynamic=True
    ) as cluster:
        cluster.start()
        data = cluster.data(1)
        start = end_offset(data)
        with Talk(cluster.controller_endpoint(1)) as talk:

            async def ask(request: Message, version: int) -> Message:
                return talk.ask(request, version)

            answers = asyncio.run(_tell(story, ask, session_ms))
    return Told(answers, [in_order(each) for each in read_batches(data, start)])


def _by_us(root: Path, story: Iterable[Step | Silence], session_ms: int) -> Told:
    data = root / "data"
    config = standalone_config(
        {
            "log.dirs": str(data),
            "broker.session.timeout.ms": str(session_ms),
            "listeners": "PLAINTEXT://127.0.0.1:0",
        }
    )
    format_if_new(config)
    answers: list[tuple[object, object]] = []
    start = 0

    async def main() -> None:
        nonlocal start
        async with await EmbeddedLog.open(data, node_id=config.whole("node.id")) as log:
            controller = Controller(log, EMPTY, now, config=config, cluster_id=CLUSTER)
            await controller.activate(read_bootstrap(data))
            start = end_offset(data)

            async def ask(request: Message, version: int) -> Message:
                key = request.SPEC.key
                assert key is not None
                name = _METHODS.get(key, "allocate_producer_ids")
                answer: Message = await getattr(controller, name)(request)
                return decode(type(answer), encode(answer, version), version)

            answers.extend(await _tell(story, ask, session_ms))
            await controller.close()

    asyncio.run(main())
    return Told(answers, [in_order(each) for each in read_batches(data, start)])


async def _tell(
    story: Iterable[Step | Silence], ask: Ask, session_ms: int
) -> list[tuple[object, object]]:
    answers: list[tuple[object, object]] = []
    epochs: dict[int, int] = {}
    for step in story:
        if isinstance(step, Silence):
            for _ in range(10):
                await asyncio.sleep(session_ms / 1000 / 5)
                for broker in step.but:
                    await ask(*beat(broker)(epochs))
            continue
        request, version = step(epochs)
        answer = await ask(request, version)
        if isinstance(answer, BrokerRegistrationResponse) and not answer.error_code:
            assert isinstance(request, BrokerRegistrationRequest)
            is_same = epochs.get(request.broker_id) == answer.broker_epoch
            epochs[request.broker_id] = answer.broker_epoch
            answer = msgspec.structs.replace(answer, broker_epoch=int(is_same))
        answers.append((request, _plain(answer)))
    return answers


def _plain(answer: Message) -> Any:
    found: Any = msgspec.to_builtins(answer, enc_hook=str)
    for topic in found.get("topics") or found.get("responses") or ():
        topic["topic_id"] = topic["topic_id"] != str(ZERO)
        # The rest of the file that the node was started with: told of elsewhere.
        topic.pop("configs", None)
    if found.get("responses"):
        found["responses"] = sorted(found["responses"], key=str)
    return found
