"""The same requests to a real controller and to ours, and what each says and writes.

What differs by its nature is taken out: ids, epochs, and the order of what Kafka shuffles.
"""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from kraftline.controller.controller import Controller
from kraftline.metadata.bootstrap import bootstrap_of, read_bootstrap
from kraftline.metadata.features import feature_defaults, from_release
from kraftline.metadata.image import EMPTY
from kraftline.node.standalone import format_if_new, standalone_config
from kraftline.raft import EmbeddedLog
from kraftline.schema.api.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from kraftline.schema.api.create_topics import CreateTopicsResponse
from kraftline.schema.api.elect_leaders import ElectLeadersResponse
from kraftline.schema.api.list_partition_reassignments import ListPartitionReassignmentsResponse
from kraftline.schema.codec import decode, encode
from kraftline.schema.types import Message
from kraftline.schema.uuids import ZERO
from kraftline.storage.snapshot_file import now
from tests.broker.running import running
from tests.broker.talking import Talk
from tests.controller.broker_stories import CLUSTER, Known, Silence, Step, beat
from tests.controller.metadata_log import LoggedBatch, end_offset, in_order, read_batches
from tests.controller.topic_requests import creations, deletions
from tests.oracle.kafka import HOST, KraftCluster, NodeSpec

Ask: TypeAlias = Callable[[Message, int], Awaitable[Message]]
Story: TypeAlias = Callable[[], Iterable[Step | Silence]]

# Sessions longer than any story, and short enough to wait for.
LONG_MS, SHORT_MS = 600_000, 1_500
_METHODS = {
    19: "create_topics",
    20: "delete_topics",
    62: "register",
    63: "heartbeat",
    67: "allocate_producer_ids",
    73: "assign_replicas_to_dirs",
}
_ADMIN = {
    37: "create_partitions",
    43: "elect_leaders",
    44: "incremental_alter_configs",
    45: "alter_partition_reassignments",
    46: "list_partition_reassignments",
    57: "update_features",
    64: "unregister_broker",
}
# Of the file that the real node is started with: they are told in the answers.
_SAID = {"log.index.size.max.bytes": "4096", "num.partitions": "1"}


class Told(msgspec.Struct):
    """Each request with its answer, and the batches that were written, as JSON has them."""

    answers: list[tuple[str, Any]]
    batches: list[list[tuple[str, Any]]]


def told(answers: list[tuple[str, Any]], batches: Iterable[LoggedBatch]) -> Told:
    found = Told(answers, [list(batch) for batch in batches])
    return msgspec.json.decode(msgspec.json.encode(found), type=Told)


def write(path: Path, stories: dict[str, Told]) -> None:
    path.write_bytes(gzip.compress(msgspec.json.encode(stories), mtime=0))


def read(path: Path) -> dict[str, Told]:
    return msgspec.json.decode(gzip.decompress(path.read_bytes()), type=dict[str, Told])


def hold_equal(ours: Told, theirs: Told) -> None:
    for (request, answer), (_, expected) in zip(ours.answers, theirs.answers, strict=True):
        assert answer == expected, request
    for number, (written, expected) in enumerate(zip(ours.batches, theirs.batches, strict=False)):
        assert written == expected, f"batch {number}"
    assert len(ours.batches) == len(theirs.batches)


def topics_by_kafka(root: Path) -> Told:
    with KraftCluster(root, dynamic=True) as kafka:
        kafka.start()
        return _ask_for_topics((HOST, kafka.port(1)), kafka.data(1))


def topics_by_us(root: Path) -> Told:
    with running(root, _SAID) as node:
        return _ask_for_topics(node.address, root)


class Telling(msgspec.Struct, frozen=True):
    """A story, how long sessions are, and the metadata version of the cluster."""

    story: Story
    session_ms: int = LONG_MS
    version: str | None = None


def brokers_by_kafka(root: Path, telling: Telling) -> Told:
    """By a controller without brokers."""
    nodes = [NodeSpec(1, "controller")]
    properties = {"broker.session.timeout.ms": str(telling.session_ms)}
    args = [] if telling.version is None else ["--release-version", telling.version]
    with KraftCluster(
        root,
        nodes,
        cluster_id=CLUSTER,
        properties=properties,
        # Old versions know no dynamic quorum.
        dynamic=telling.version is None,
        format_args=args,
    ) as kafka:
        kafka.start()
        data = kafka.data(1)
        start = end_offset(data)
        with Talk(kafka.controller_endpoint(1)) as talk:

            async def ask(request: Message, version: int) -> Message:
                return talk.ask(request, version)

            answers = asyncio.run(_tell(telling, ask))
    return told(answers, map(in_order, read_batches(data, start)))


def brokers_by_us(root: Path, telling: Telling) -> Told:
    config = standalone_config(
        {
            "log.dirs": str(root),
            "broker.session.timeout.ms": str(telling.session_ms),
            "listeners": "PLAINTEXT://127.0.0.1:0",
        }
    )
    format_if_new(config)

    async def main() -> tuple[list[tuple[str, Any]], int]:
        async with await EmbeddedLog.open(root, node_id=1) as log:
            controller = Controller(log, EMPTY, now, config=config, cluster_id=CLUSTER)
            bootstrap = read_bootstrap(root)
            if telling.version is not None:
                version = from_release(telling.version)
                bootstrap = bootstrap_of(version, feature_defaults(version))
            await controller.activate(bootstrap)
            start = log.end_offset

            async def ask(request: Message, version: int) -> Message:
                answer = await ask_controller(controller, request)
                return decode(type(answer), encode(answer, version), version)

            answers = await _tell(telling, ask)
            await controller.close()
            return answers, start

    answers, start = asyncio.run(main())
    return told(answers, map(in_order, read_batches(root, start)))


async def ask_controller(controller: Controller, request: Message) -> Message:
    key = request.SPEC.key
    assert key is not None
    answer: Message
    if key in _ADMIN:
        answer = await getattr(controller.admin, _ADMIN[key])(request)
    else:
        answer = await getattr(controller, _METHODS[key])(request)
    return answer


async def _tell(telling: Telling, ask: Ask) -> list[tuple[str, Any]]:
    answers: list[tuple[str, Any]] = []
    known = Known()
    for step in telling.story():
        if isinstance(step, Silence):
            for _ in range(10):
                await asyncio.sleep(telling.session_ms / 1000 / 5)
                for broker in step.but:
                    await ask(*beat(broker)(known))
            continue
        request, version = step(known)
        answer = await ask(request, version)
        is_same = learn(known, request, answer)
        if isinstance(answer, BrokerRegistrationResponse) and not answer.error_code:
            answer = msgspec.structs.replace(answer, broker_epoch=int(is_same))
        found = plain(answer)
        for topic in found.get("topics", ()):
            # What the two nodes were started with differs; told of with topics.
            topic.pop("configs", None)
        answers.append((str(request), found))
    return answers


def learn(known: Known, request: Message, answer: Message) -> bool:
    """Keep what an answer gave; whether a broker got the epoch that it had."""
    if isinstance(answer, CreateTopicsResponse):
        made = [each for each in answer.topics if each.topic_id != ZERO]
        known.ids |= {each.name: each.topic_id for each in made}
    if not isinstance(answer, BrokerRegistrationResponse) or answer.error_code:
        return False
    assert isinstance(request, BrokerRegistrationRequest)
    before = known.epochs.get(request.broker_id)
    known.epochs[request.broker_id] = answer.broker_epoch
    return before == answer.broker_epoch


def _ask_for_topics(address: tuple[str, int], data: Path) -> Told:
    start = end_offset(data)
    answers: list[tuple[str, Any]] = []
    known = Known()

    def ask_all(talk: Talk, requests: Iterable[tuple[Message, int]]) -> None:
        for request, version in requests:
            answer = talk.ask(request, version)
            answers.append((f"version {version}: {request}"[:500], plain(answer)))
            learn(known, request, answer)

    with Talk(address) as talk:
        ask_all(talk, creations(1))
        ask_all(talk, deletions(known.ids))
    return told(answers, map(_removals_in_order, read_batches(data, start)))


def _removals_in_order(batch: LoggedBatch) -> LoggedBatch:
    return in_order(batch) if batch[0][0].startswith("REMOVE_TOPIC") else batch


def plain(answer: Message) -> Any:
    """An answer without ids, and with what Kafka shuffles in one order."""
    found: Any = msgspec.to_builtins(answer, enc_hook=str)
    for each in found.get("topics") or found.get("responses") or ():
        if "topic_id" in each:
            each["topic_id"] = each["topic_id"] != str(ZERO)
    for directory in found.get("directories", ()):
        for each in directory["topics"]:
            each["topic_id"] = each["topic_id"] != str(ZERO)
    if isinstance(answer, ListPartitionReassignmentsResponse):
        found["topics"] = sorted(found["topics"], key=str)
    if isinstance(answer, ElectLeadersResponse):
        results = found["replica_election_results"]
        found["replica_election_results"] = sorted(results, key=lambda each: each["topic"])
    if "responses" in found:
        found["responses"] = sorted(found["responses"], key=str)
    return found
