"""Configs that change while a broker runs: what clients see of it, of real Kafka and of us."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from kraftline.records import Record, build_batch
from kraftline.schema.api.produce import ProduceResponse
from kraftline.schema.uuids import Uuid
from tests.broker.comparing import Broker
from tests.broker.config_stories import BROKER, DELETE, SET, TOPIC, change
from tests.broker.stories import NOW, batch, fetch, produce, wanted

BIG = bytes(range(256)) * 20


def until_answered(
    broker: Broker, topic: tuple[str, Uuid], data: bytes, ready: Callable[[Any], bool]
) -> object:
    """What a produce request is answered with, once the change has reached the log."""
    deadline = time.monotonic() + 60
    while True:
        answer = broker.message(produce(topic, [(0, data)], acks=-1), 11)
        assert isinstance(answer, ProduceResponse)
        (found,) = answer.responses[0].partition_responses
        if ready(found):
            said = broker.plain(found.error_message)
            return (found.error_code, said, found.log_append_time_ms > 0)
        assert time.monotonic() < deadline, found
        time.sleep(0.02)


def code(wanted: int) -> Callable[[Any], bool]:
    return lambda found: bool(found.error_code == wanted)


def configs_of_topics_take_effect(broker: Broker) -> list[object]:
    topic = broker.topic("effects")
    said: list[object] = []
    keyless = build_batch([Record(0, NOW, None, b"value")])
    for key, value, data, error in (
        ("max.message.bytes", "1000", batch(BIG), 10),
        ("cleanup.policy", "compact", keyless, 87),
        ("message.timestamp.after.max.ms", "1000", batch(when=NOW + 10**12), 32),
    ):
        said.append(until_answered(broker, topic, batch(BIG), code(0)))
        said.append(broker.ask(change((TOPIC, topic[0], [(key, SET, value)])), 1))
        said.append(until_answered(broker, topic, data, code(error)))
        said.append(broker.ask(change((TOPIC, topic[0], [(key, DELETE, None)])), 1))
        said.append(until_answered(broker, topic, batch(BIG), code(0)))
    time_type = ("message.timestamp.type", SET, "LogAppendTime")
    said.append(broker.ask(change((TOPIC, topic[0], [time_type])), 1))
    said.append(until_answered(broker, topic, batch(), lambda each: each.log_append_time_ms > 0))
    return said


def configs_of_brokers_take_effect(broker: Broker) -> list[object]:
    """For topics that do not set the key themselves."""
    plain = broker.topic("of-broker")
    own = broker.topic("of-itself", {"max.message.bytes": "1000000"})
    said: list[object] = []
    for where in ("1", ""):
        said.append(until_answered(broker, plain, batch(BIG), code(0)))
        said.append(broker.ask(change((BROKER, where, [("message.max.bytes", SET, "1000")])), 1))
        said.append(until_answered(broker, plain, batch(BIG), code(10)))
        said.append(until_answered(broker, own, batch(BIG), code(0)))
        said.append(broker.ask(change((BROKER, where, [("message.max.bytes", DELETE, "")])), 1))
        said.append(until_answered(broker, plain, batch(BIG), code(0)))
    return said


def smaller_segments_take_effect(broker: Broker) -> list[object]:
    """A log with segments of an hour: it is read on when segments become small."""
    topic = broker.topic("segments")
    said: list[object] = [until_answered(broker, topic, batch(BIG), code(0)) for _ in range(3)]
    # Kafka takes no fewer; what is written from now on begins new segments.
    small = [("segment.bytes", SET, "1048576"), ("segment.ms", SET, "1")]
    said.append(broker.ask(change((TOPIC, topic[0], small)), 1))
    said += [until_answered(broker, topic, batch(BIG), code(0)) for _ in range(3)]
    answer: Any = broker.ask(fetch(topic, wanted(0, 0)), 12)
    said.append(answer["responses"][0]["partitions"][0]["high_watermark"])
    return said


EFFECT_STORIES = (
    configs_of_topics_take_effect,
    configs_of_brokers_take_effect,
    smaller_segments_take_effect,
)
