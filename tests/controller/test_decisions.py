"""Decisions on images that no story of a real cluster reaches, or only with patience."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kraftline.config.tables import TOPIC as KEYS
from kraftline.controller.collisions import colliding
from kraftline.controller.controller import Controller
from kraftline.controller.java_order import in_number_order, in_string_order, string_hash
from kraftline.controller.partition_creation import create_partitions
from kraftline.controller.producer_ids import allocate_producer_ids
from kraftline.controller.topic_configs import LOOKED_AT, TopicConfigs
from kraftline.controller.topic_deletion import delete_topics
from kraftline.controller.topics import TopicRules, create_topics
from kraftline.metadata.bootstrap import read_bootstrap
from kraftline.metadata.image import EMPTY
from kraftline.node.standalone import format_if_new, standalone_config
from kraftline.raft import EmbeddedLog
from kraftline.schema import metadata as m
from kraftline.schema.api.allocate_producer_ids import AllocateProducerIdsRequest
from kraftline.schema.api.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.types import Uuid
from kraftline.storage.snapshot_file import now
from tests.controller.broker_stories import CLUSTER, Known, beat, directory, register
from tests.controller.images import broker, image_of
from tests.controller.metadata_log import read_lines
from tests.controller.telling import ask_controller, learn
from tests.controller.topic_requests import assigned, create, delete, topic

_ID = Uuid(bytes(15) + b"\xee")
_UNASSIGNED = Uuid(bytes(15) + b"\x01")


def _rules(**settings: str) -> TopicRules:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    config = standalone_config({"log.dirs": "/nowhere", **given})
    return TopicRules(
        configs=TopicConfigs(config, 1),
        partitions=config.whole("num.partitions"),
        replication_factor=config.whole("default.replication.factor"),
        random=Random(1),
        new_id=lambda: _ID,
    )


def test_a_new_topic_is_its_name_and_its_partitions() -> None:
    found = create_topics(image_of(broker(1)), create(topic("t", 2)), _rules())
    partitions = [
        m.PartitionRecord(
            partition_id=number,
            topic_id=_ID,
            replicas=(1,),
            isr=(1,),
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
            directories=(directory(1),),
        )
        for number in range(2)
    ]
    assert list(found.records) == [
        (m.TopicRecord(name="t", topic_id=_ID), 0),
        *((each, 2) for each in partitions),
    ]
    (result,) = found.response.topics
    assert (result.topic_id, result.num_partitions, result.replication_factor) == (_ID, 2, 1)


@pytest.mark.parametrize(
    ("level", "directories", "version", "expected"),
    [(16, 1, 0, ()), (17, 1, 1, (directory(1),)), (30, 2, 2, (_UNASSIGNED,))],
)
def test_directories_are_told_where_they_are_known(
    level: int, directories: int, version: int, expected: tuple[Uuid, ...]
) -> None:
    image = image_of(broker(1, directories=directories), level=level, elr=0)
    (_, (record, written)) = create_topics(image, create(topic("t")), _rules()).records
    assert isinstance(record, m.PartitionRecord)
    assert (record.directories, written) == (expected, version)


def test_fenced_replicas_are_not_in_sync_and_do_not_lead() -> None:
    image = image_of(broker(1, fenced=True), broker(2), broker(3))
    found = create_topics(image, create(assigned("t", (0, (1, 3, 2)))), _rules())
    record = found.records[1][0]
    assert isinstance(record, m.PartitionRecord)
    assert (record.replicas, record.isr, record.leader) == ((1, 3, 2), (3, 2), 3)


def test_what_a_request_leaves_open_is_taken_from_the_configuration() -> None:
    rules = _rules(num_partitions="3", default_replication_factor="2")
    image = image_of(broker(1), broker(2))
    (result,) = create_topics(image, create(topic("t", -1, -1)), rules).response.topics
    assert (result.num_partitions, result.replication_factor) == (3, 2)


def test_the_configuration_of_the_node_is_told_with_its_source() -> None:
    rules = _rules(log_retention_hours="2", log_roll_ms="7")
    cluster = m.ConfigRecord(
        resource_type=4, resource_name="", name="log.flush.interval.ms", value="9"
    )
    node = m.ConfigRecord(resource_type=4, resource_name="1", name="log.roll.ms", value="8")
    image = image_of(broker(1), cluster, node)
    request = create(topic("t", 1, 1, {"max.message.bytes": "5"}))
    (result,) = create_topics(image, request, rules).response.topics
    told = {each.name: (each.value, each.config_source) for each in result.configs or ()}
    assert told["max.message.bytes"] == ("5", 1)
    assert told["segment.ms"] == ("8", 2)
    assert told["flush.ms"] == ("9", 3)
    assert told["retention.ms"] == ("7200000", 4)
    assert told["cleanup.policy"] == ("delete", 5)


def test_every_config_of_a_topic_is_looked_at() -> None:
    assert sorted(LOOKED_AT) == sorted(KEYS)


def test_more_than_ten_thousand_topics_are_not_removed_at_once() -> None:
    topics = [
        m.TopicRecord(name=f"t{n}", topic_id=Uuid(n.to_bytes(16, "big"))) for n in range(1, 10_002)
    ]
    image = image_of(*topics)
    found = delete_topics(image, delete(*image.topics.ids), Random(1))
    assert len(found.records) == 10_000
    codes = Counter(each.error_code for each in found.response.responses)
    assert codes == {ErrorCode.NONE: 10_000, ErrorCode.UNKNOWN_SERVER_ERROR: 1}


def test_names_that_metrics_take_for_each_other_collide() -> None:
    known = [
        m.TopicRecord(name=name, topic_id=Uuid(bytes([9, n]) + bytes(14)))
        for n, name in enumerate(("a.b_c", "plain", "x_" * 40, "q", "r", "s"))
    ]
    image = image_of(*known)
    assert colliding(image, "a_b.c") == "a.b_c"
    assert colliding(image, "x." * 40) == "x_" * 40
    assert colliding(image, "a-b-c") is None
    assert colliding(image, "a.b.c.d") is None
    assert colliding(image, "plain") is None


def test_producer_ids_end_before_they_begin_anew() -> None:
    last = (1 << 63) - 1
    request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=1)
    ids = m.ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=last - 999)
    answer = allocate_producer_ids(image_of(broker(1), ids), request)
    assert (answer.response.error_code, list(answer.records)) == (-1, [])
    first = allocate_producer_ids(image_of(broker(1)), request).response
    assert (first.producer_id_start, first.producer_id_len) == (0, 1000)


def test_maps_are_gone_through_in_the_order_of_java() -> None:
    """What a JVM printed."""
    assert string_hash("retention.ms") == -1339220362 & 0xFFFFFFFF
    assert string_hash("ä\U0001f600") == 1992007
    put = (
        *("retention.ms", "flush.ms", "preallocate", "segment.bytes", "max.message.bytes"),
        *("retention.bytes", "min.insync.replicas", "cleanup.policy", "segment.ms"),
        *("segment.jitter.ms", "flush.messages", "file.delete.delay.ms", "compression.type"),
        "index.interval.bytes",
    )
    assert in_string_order(put) == [
        *("compression.type", "file.delete.delay.ms", "max.message.bytes", "min.insync.replicas"),
        *("preallocate", "segment.jitter.ms", "index.interval.bytes", "retention.bytes"),
        *("cleanup.policy", "flush.ms", "retention.ms", "segment.bytes", "segment.ms"),
        "flush.messages",
    ]
    assert in_number_order([33, 17, 1, 2]) == [33, 17, 1, 2]
    assert in_number_order([33, 17, 1, 2, 16, 48]) == [16, 48, 33, 17, 1, 2]


@pytest.mark.parametrize(("interval", "least", "most"), [(40, 5, 14), (0, 0, 0)])
def test_an_idle_controller_says_so(interval: int, least: int, most: int, tmp_path: Path) -> None:
    settings = {"log.dirs": str(tmp_path), "metadata.max.idle.interval.ms": str(interval)}
    config = standalone_config({**settings, "listeners": "PLAINTEXT://127.0.0.1:0"})
    format_if_new(config)

    async def main() -> None:
        async with await EmbeddedLog.open(tmp_path, node_id=1) as log:
            controller = Controller(log, EMPTY, now, config=config, cluster_id=CLUSTER)
            await controller.activate(read_bootstrap(tmp_path))
            await asyncio.sleep(0.5)
            await controller.close()

    asyncio.run(main())
    lines: list[dict[str, Any]] = read_lines(tmp_path)
    said = sum(line["payload"]["type"] == "NO_OP_RECORD" for line in lines)
    assert least <= said <= most


def test_whoever_could_not_be_heard_is_not_fenced(tmp_path: Path) -> None:
    """The process stood still for longer than a session."""
    settings = {"log.dirs": str(tmp_path), "broker.session.timeout.ms": "600000"}
    config = standalone_config({**settings, "listeners": "PLAINTEXT://127.0.0.1:0"})
    format_if_new(config)
    clock = [0]

    async def main() -> list[bool]:
        async with await EmbeddedLog.open(tmp_path, node_id=1) as log:
            controller = Controller(
                log, EMPTY, now, config=config, cluster_id=CLUSTER, monotonic=lambda: clock[0]
            )
            await controller.activate(read_bootstrap(tmp_path))
            known = Known()
            for step in (register(2), beat(2)):
                request, _ = step(known)
                learn(known, request, await ask_controller(controller, request))
            fenced = []
            for later in (1_000_000, 10):
                clock[0] += later
                await controller.look_for_stale()
                fenced.append(controller.image.cluster.brokers[2].fenced)
            await controller.close()
            return fenced

    assert asyncio.run(main()) == [False, True]


def test_any_number_of_partitions_that_is_too_high_is_refused_alike() -> None:
    """A request of a few bytes may ask for two billion: none of them is placed for that."""
    there = create_topics(image_of(broker(1)), create(topic("t")), _rules()).records
    image = image_of(broker(1), *(record for record, _ in there))
    for count, code in ((10_001, 0), (10_002, -1), (2**31 - 1, -1)):
        request = CreatePartitionsRequest(
            topics=(CreatePartitionsTopic(name="t", count=count, assignments=None),)
        )
        decision = create_partitions(image, request, Random(1))
        assert [each.error_code for each in decision.response.results] == [code]
        assert len(decision.records) == (0 if code else 10_000)
