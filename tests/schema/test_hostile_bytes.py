"""Damaged bytes give a BadData with a reason, never another error and never much memory.

Both the compiled and the interpreted wire types are held to it, and to the same answers.
"""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from itertools import accumulate
from types import ModuleType
from typing import Any

import pytest
from msgspec import structs

from kraftline.errors import BadData, Corrupt, Truncated
from kraftline.schema import _wire, wire
from kraftline.schema.api import FetchRequest, MetadataResponse, ProduceRequest
from kraftline.schema.codec import check_version, encode, reader
from kraftline.schema.coordinator import frame as coordinator
from kraftline.schema.jsonform import json_reader
from kraftline.schema.metadata import PartitionChangeRecord, PartitionRecord, RegisterBrokerRecord
from kraftline.schema.metadata.frame import decode_record, encode_record, record_json
from kraftline.schema.metadata.registry import record_class
from kraftline.schema.types import Message
from tests.schema.instances import Random
from tests.schema.messages import versioned

KERNELS = [_wire, wire.interpreted()]


def damaged(rng: random.Random, data: bytes) -> bytes:
    """One to three bytes changed, or the end cut off, or something put in."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(changed) + 1)
        match rng.randrange(4):
            case 0 if at < len(changed):
                changed[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
            case 1:
                del changed[at:]
            case 2:
                changed[at:at] = rng.randbytes(rng.randint(1, 5))
            case _:
                changed[at : at + 5] = b"\xff\xff\xff\xff\x0f"
    return bytes(changed)


def outcome(kernel: ModuleType, read: Callable[[Any], Any], data: bytes) -> object:
    """What a reader makes of the bytes; an error counts by its kind, text and place."""
    r = kernel.Reader(data)
    try:
        return read(r), r.pos
    except BadData as error:
        return type(error).__name__, str(error)


def test_damaged_messages_are_refused_alike_by_both_kernels() -> None:
    rng = random.Random(7)
    refused = 0
    for cls, version in versioned():
        read, as_json = reader(cls, version), json_reader(cls, version)
        data = encode(Random((cls.__name__, version)).message(cls, version), version)
        for _ in range(12):
            bad = damaged(rng, data)
            compiled, interpreted = (outcome(kernel, read, bad) for kernel in KERNELS)
            # As text: a number that is not one is not equal to itself.
            assert repr(compiled) == repr(interpreted)
            assert type(outcome(KERNELS[0], as_json, bad)) is tuple
            refused += isinstance(compiled, tuple) and isinstance(compiled[1], str)
    assert refused > 1000


def test_damaged_metadata_records_are_refused() -> None:
    rng = random.Random(11)
    for cls in (PartitionRecord, PartitionChangeRecord, RegisterBrokerRecord):
        maker = Random(cls.__name__)
        for _ in range(400):
            version = rng.choice(list(cls.SPEC.versions))
            value = damaged(rng, encode_record(maker.message(cls, version), version))
            for read in (decode_record, record_json):
                with suppress(BadData):
                    read(value)


@pytest.mark.parametrize("harm", [False, True], ids=["whole", "damaged"])
def test_many_metadata_records_are_read_as_each_alone_by_both_kernels(harm: bool) -> None:
    rng, maker = random.Random(12), Random("many")
    some = [(2,), (0, 2), (2, 0), (0,), (0, 0), (1, 2, 3), (1, 2, 3, 4), (257, 2), (1, 258, 3), ()]
    for _ in range(100):
        values = []
        for _ in range(20):
            cls = rng.choice((PartitionRecord, PartitionChangeRecord, RegisterBrokerRecord))
            version = rng.choice(list(cls.SPEC.versions))
            message = maker.message(cls, version)
            if isinstance(message, PartitionRecord | PartitionChangeRecord):
                message = structs.replace(message, isr=rng.choice(some), replicas=rng.choice(some))
            values.append(encode_record(message, version))
        if harm:
            at = rng.randrange(len(values))
            values[at] = damaged(rng, values[at])
        ends = list(accumulate(map(len, values)))
        starts = [0, *ends[:-1]]

        def read(r: Any, starts: list[int] = starts, ends: list[int] = ends) -> Any:
            return r.metadata_records(starts, ends, {}, frame_reader)

        compiled, interpreted = (outcome(kernel, read, b"".join(values)) for kernel in KERNELS)
        assert repr(compiled) == repr(interpreted)
        with suppress(BadData):
            alone = [decode_record(value)[0] for value in values]
            assert repr(compiled) == repr((alone, ends[-1]))


def frame_reader(source: Any, frame: int) -> Callable[[Any], Message]:
    if frame < 0:
        raise Corrupt("another frame", position=source.pos)
    cls = record_class(frame >> 16)
    check_version(cls, frame & 0xFFFF)
    return reader(cls, frame & 0xFFFF)


def test_damaged_coordinator_records_are_refused() -> None:
    rng = random.Random(13)
    for topic in coordinator.TOPICS.values():
        for kind in topic.records:
            key_class, value_class = coordinator.record_classes(topic, kind)
            maker = Random(key_class.__name__)
            for _ in range(20):
                key = coordinator.encode_key(topic, maker.message(key_class, 0))
                version = rng.choice(list(value_class.SPEC.versions))
                value = coordinator.encode_value(
                    topic, maker.message(value_class, version), version
                )
                for read in (coordinator.decode_key, coordinator.key_json):
                    with suppress(BadData):
                        read(topic, damaged(rng, key))
                for read_value in (coordinator.decode_value, coordinator.value_json):
                    with suppress(BadData):
                        read_value(topic, kind, damaged(rng, value))


@pytest.mark.parametrize("kernel", KERNELS, ids=("compiled", "interpreted"))
@pytest.mark.parametrize(
    ("cls", "version", "data"),
    [
        (PartitionRecord, 0, bytes(20) + b"\xff\xff\xff\xff\x0f"),
        (FetchRequest, 4, bytes(4 * 4 + 1) + b"\x7f\xff\xff\xff" + bytes(20)),
        (MetadataResponse, 12, bytes(4) + b"\xff\xff\xff\xff\x07" + bytes(20)),
        (ProduceRequest, 3, b"\xff\xff" + bytes(6) + b"\x00\xff\xff\xff" + bytes(20)),
    ],
)
def test_a_lying_count_allocates_nothing(
    kernel: ModuleType, cls: type[Message], version: int, data: bytes
) -> None:
    read = reader(cls, version)
    r = kernel.Reader(data)
    tracemalloc.start()
    try:
        with pytest.raises((Truncated, Corrupt)):
            read(r)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()
