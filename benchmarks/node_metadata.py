"""What a node tells of many topics, beside real Kafka: `python -m benchmarks.node_metadata`.

Both start on copies of one metadata log: topics of ten partitions with three replicas, on brokers
that the log has registered and that nobody fences. They run one after the other, round after round;
one client asks again and again over one connection, and reads answers without looking into them.
The best round of each counts. Before anything is timed, both must give the same answers.
"""

from __future__ import annotations

import asyncio
import shutil
import socket
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click
import msgspec
from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table

from kraftline.metadata.features import FEATURES, METADATA_VERSION, from_level
from kraftline.metadata.partition import UNASSIGNED
from kraftline.metadata.write_options import Versioned
from kraftline.raft import EmbeddedLog
from kraftline.schema.api.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
)
from kraftline.schema.api.metadata import MetadataRequest, MetadataRequestTopic
from kraftline.schema.metadata.feature_level_record import FeatureLevelRecord
from kraftline.schema.metadata.frame import encode_record
from kraftline.schema.metadata.partition_record import PartitionRecord
from kraftline.schema.metadata.register_broker_record import (
    BrokerEndpoint,
    RegisterBrokerRecord,
)
from kraftline.schema.metadata.topic_record import TopicRecord
from kraftline.schema.uuids import Uuid
from tests.node.running import Broker, OurNode, RealKafka
from tests.recorder.frames import frame

_METADATA, _DESCRIBE_TOPIC_PARTITIONS = 3, 75
_PER_TOPIC: Final = 10
_BROKERS: Final = (2, 3, 4)
_BATCH: Final = 1000
_LEVEL: Final = 30
_PAGE: Final = 2000
# Nobody is there to send heartbeats for the brokers of the log.
_SETTINGS: Final = {"broker.session.timeout.ms": "86400000"}


class Measured(msgspec.Struct, frozen=True):
    """Milliseconds of one kind of request; `size` is that of its answer."""

    median: float
    p99: float
    size: int


@click.command()
@click.option("--partitions", multiple=True, type=int, default=(10_000, 100_000))
@click.option("--rounds", type=click.IntRange(min=1), default=3)
@click.option("--seconds", type=float, default=4.0, help="For each kind of request, after warming.")
def main(partitions: tuple[int, ...], rounds: int, seconds: float) -> None:
    """Kraftline beside real Kafka: how long Metadata and DescribeTopicPartitions take."""
    table = Table(
        "partitions",
        "request",
        "answer",
        "us p50; p99",
        "Kafka p50; p99",
        "p50 ratio",
        box=MARKDOWN,
    )
    for count in partitions:
        root = Path(tempfile.mkdtemp(prefix="kraftline-"))
        try:
            ours, kafkas = measure(root, count, rounds, seconds)
        finally:
            shutil.rmtree(root)
        for name, one in ours.items():
            other = kafkas[name]
            table.add_row(
                f"{count:,}",
                name,
                f"{one.size / 1000:,.0f} KB",
                f"{one.median:.2f}; {one.p99:.2f} ms",
                f"{other.median:.2f}; {other.p99:.2f} ms",
                f"{one.median / other.median:.2f}",
            )
    console = Console()
    (console if console.is_terminal else Console(width=120)).print(table)


def measure(
    root: Path, partitions: int, rounds: int, seconds: float
) -> tuple[dict[str, Measured], dict[str, Measured]]:
    node, kafka = OurNode(root / "ours", _SETTINGS), RealKafka(root / "kafka", _SETTINGS)
    node.format()
    asyncio.run(_fill(node.data, partitions))
    shutil.copytree(node.data, kafka.data)
    brokers: tuple[Broker, Broker] = (node, kafka)
    best: tuple[dict[str, Measured], dict[str, Measured]] = ({}, {})
    asked = requests(partitions)
    same: list[bytes] = []
    for _ in range(rounds):
        for at, broker in enumerate(brokers):
            broker.start()
            try:
                for name, request in asked.items():
                    found, answer = _time(broker.bootstrap, request, seconds)
                    if name not in best[at] or found.median < best[at][name].median:
                        best[at][name] = found
                    if "page" in name:
                        same.append(answer)
            finally:
                broker.stop()
    pages = sum("page" in name for name in asked)
    if any(each != same[number % pages] for number, each in enumerate(same)):
        raise SystemExit("the pages differ")
    return best


def requests(partitions: int) -> dict[str, bytes]:
    middle = _name(partitions // _PER_TOPIC // 2)
    page = DescribeTopicPartitionsRequest(response_partition_limit=_PAGE)
    inside = DescribeTopicPartitionsRequestCursor(topic_name=middle, partition_index=5)
    further = msgspec.structs.replace(page, cursor=inside)
    one = MetadataRequest(topics=(MetadataRequestTopic(name=middle),))
    return {
        "Metadata of all topics": frame(MetadataRequest(topics=None), _METADATA, 12),
        "Metadata of one topic": frame(one, _METADATA, 12),
        "DescribeTopicPartitions, first page": frame(page, _DESCRIBE_TOPIC_PARTITIONS, 0),
        "DescribeTopicPartitions, a page inside": frame(further, _DESCRIBE_TOPIC_PARTITIONS, 0),
    }


def _time(bootstrap: str, request: bytes, seconds: float) -> tuple[Measured, bytes]:
    """As often as there is time, at least 30 times, after half as long to get warm."""
    host, _, port = bootstrap.rpartition(":")
    sent = len(request).to_bytes(4, "big") + request
    with socket.create_connection((host, int(port)), 60) as channel:
        channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        room = bytearray(4)
        taken: list[float] = []
        warm = time.perf_counter() + seconds / 2
        end = warm + seconds
        while len(taken) < 30 or time.perf_counter() < end:
            start = time.perf_counter()
            channel.sendall(sent)
            _receive(channel, memoryview(room)[:4])
            size = int.from_bytes(room[:4], "big")
            if len(room) < size:
                room = bytearray(size)
            _receive(channel, memoryview(room)[:size])
            now = time.perf_counter()
            if now >= warm:
                taken.append((now - start) * 1000)
    cuts = statistics.quantiles(taken, n=100)
    return Measured(statistics.median(taken), cuts[98], size), bytes(room[:size])


def _receive(channel: socket.socket, room: memoryview) -> None:
    while room:
        count = channel.recv_into(room)
        if not count:
            raise SystemExit("the connection was closed")
        room = room[count:]


async def _fill(directory: Path, partitions: int) -> None:
    """Write the cluster into the metadata log of a formatted directory."""
    async with await EmbeddedLog.open(directory, node_id=1) as log:
        batch: list[bytes] = []
        for record, version in _records(partitions):
            batch.append(encode_record(record, version))
            if len(batch) == _BATCH:
                await log.write(batch)
                batch = []
        await log.write(batch)


def _records(partitions: int) -> Iterator[Versioned]:
    levels = {name: each.latest_production for name, each in FEATURES.items()}
    yield FeatureLevelRecord(name=METADATA_VERSION, feature_level=_LEVEL), 0
    for name, level in levels.items():
        if name != "kraft.version":
            yield FeatureLevelRecord(name=name, feature_level=level), 0
    version = from_level(_LEVEL)
    for broker in _BROKERS:
        registered = RegisterBrokerRecord(
            broker_id=broker,
            incarnation_id=Uuid(b"metadata-broker" + bytes([broker])),
            broker_epoch=broker,
            end_points=(BrokerEndpoint(name="PLAINTEXT", host="127.0.0.1", port=9000 + broker),),
            fenced=False,
        )
        yield registered, version.register_broker_record_version
    for number in range(partitions // _PER_TOPIC):
        topic_id = Uuid(b"metadata-tpc" + number.to_bytes(4, "big"))
        yield TopicRecord(name=_name(number), topic_id=topic_id), 0
        for at in range(_PER_TOPIC):
            turn = (number + at) % len(_BROKERS)
            replicas = _BROKERS[turn:] + _BROKERS[:turn]
            partition = PartitionRecord(
                partition_id=at,
                topic_id=topic_id,
                replicas=replicas,
                isr=replicas,
                leader=replicas[0],
                directories=(UNASSIGNED,) * len(replicas),
            )
            yield partition, version.partition_record_version


def _name(number: int) -> str:
    return f"measured-topic-{number:06d}"


if __name__ == "__main__":
    main()
