"""Metadata straight to columns and to JSON lines says the same as the objects do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftline import kernels
from kraftline.errors import BadData
from kraftline.records import metadata_arrow, metadata_lines
from kraftline.records.framing import batches
from kraftline.records.metadata_arrow import decode_metadata, metadata_schemas
from kraftline.records.metadata_lines import MetadataLines
from kraftline.records.metadata_reader import read_metadata
from kraftline.records.record import Codec, Record
from kraftline.records.write import build_batch
from kraftline.schema.columns import META
from kraftline.schema.fields import fields
from kraftline.schema.metadata import TYPE_NAMES, BrokerRegistrationChangeRecord, record_class
from kraftline.schema.metadata.frame import decode_record, encode_record, record_json
from kraftline.schema.types import Message, Uuid
from tests import fixture_files
from tests.schema.instances import Random, messages

LOGS = [
    p for p in fixture_files.logs() if "__cluster_metadata" in str(p) or ".checkpoint" in p.name
]
KERNEL = "kraftline.records._typed"


@pytest.fixture(params=["in force", "interpreted"], autouse=True)
def both_kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Every test here runs over the compiled kernel, where there is one, and the interpreted."""
    interpreted = request.param == "interpreted"
    kernel = kernels.interpreted(KERNEL) if interpreted else kernels.load(KERNEL)
    monkeypatch.setattr(metadata_arrow, "_kernel", kernel)
    monkeypatch.setattr(metadata_lines, "_kernel", kernel)
    return kernel


def plain(value: Any) -> Any:
    """A message as the columns hold it: ids as text, arrays as lists, no unknown tags."""
    match value:
        case Uuid():
            return str(value)
        case tuple():
            return [plain(each) for each in value]
        case Message():
            names = (name for name in value.__struct_fields__ if name != "unknown_tags")
            return {name: plain(getattr(value, name)) for name in names}
        case _:
            return value


def rows_of_objects(data: bytes) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for batch in batches(data):
        if batch.is_control:
            continue
        for record in batch.records():
            assert record.value is not None
            message, version = decode_record(record.value)
            meta = {
                "offset": record.offset,
                "timestamp": record.timestamp,
                "batch_epoch": batch.partition_leader_epoch,
                "batch_position": batch.position,
                "version": version,
            }
            found.setdefault(TYPE_NAMES[message.SPEC.key], []).append(meta | plain(message))
    return found


def lines(data: bytes) -> Iterator[dict[str, Any]]:
    """Every plain batch as JSON lines; what is not plain is passed over."""
    writer = MetadataLines(b'{"file":"f","position":')
    at = 0
    while at < len(data):
        text, end = writer.write(data, at, len(data), at)
        yield from map(json.loads, bytes(text).splitlines())
        at = end if end > at else at + 12 + int.from_bytes(data[at + 8 : at + 12], "big")


@pytest.mark.parametrize("path", LOGS, ids=fixture_files.name_of)
def test_columns_of_real_logs_hold_what_the_objects_hold(path: Path) -> None:
    data = path.read_bytes()
    data = data[: sum(batch.size_in_bytes for batch in whole_batches(data))]
    found = decode_metadata(data)
    for name, table in found.tables.items():
        table.validate(full=True)
        assert table.schema == metadata_schemas()[name]
    assert {name: table.to_pylist() for name, table in found.tables.items()} == rows_of_objects(
        data
    )
    assert {row.reason for row in found.aside} <= {"control batch"}
    assert found.end == len(data)


def whole_batches(data: bytes) -> Iterator[Any]:
    try:
        yield from batches(data)
    except BadData:
        return  # the zero tail of a killed broker's preallocated file


EVERY = [(key, v) for key in TYPE_NAMES for v in record_class(key).SPEC.versions]


def random_batch(key: int, version: int, count: int = 20) -> tuple[list[Message], bytes]:
    rng = Random((key, version))
    made = [rng.message(record_class(key), version) for _ in range(count)]
    values = [encode_record(message, version) for message in made]
    return made, build_batch([Record(i, 77, None, value) for i, value in enumerate(values)])


@pytest.mark.parametrize(("key", "version"), EVERY)
def test_every_type_and_version_becomes_columns(key: int, version: int) -> None:
    made, data = random_batch(key, version)
    found = decode_metadata(data)
    assert found.aside == ()
    (table,) = found.tables.values()
    table.validate(full=True)
    assert not set(META) & {field.name for field in fields(record_class(key))}
    assert table.drop_columns(list(META)).to_pylist() == [plain(message) for message in made]


@pytest.mark.parametrize(("key", "version"), EVERY)
def test_every_type_and_version_becomes_json_lines(key: int, version: int) -> None:
    made, data = random_batch(key, version)
    expected = [record_json(encode_record(message, version)) for message in made]
    found = list(lines(data))
    if not found:  # a batch with floats, or with numbers near -2^63, is left to the other way
        assert key == 14 or any(number < -(2**62) for number in numbers(expected))
    else:
        assert [row["payload"] for row in found] == expected


def numbers(value: object) -> Iterator[int]:
    if isinstance(value, int):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from numbers(each)


@given(st.data())
def test_unknown_tags_are_passed_over_and_the_rest_is_right(data: st.DataObject) -> None:
    key, version = data.draw(st.sampled_from(EVERY))
    message = data.draw(messages(record_class(key), version))
    batch = build_batch([Record(0, 1, None, encode_record(message, version))])
    found = decode_metadata(batch)
    (row,) = found.tables[TYPE_NAMES[key]].to_pylist()
    expected = plain(message)
    # As text, so that NaN is what it is.
    assert repr({name: row[name] for name in expected}) == repr(expected)


@given(st.data())
def test_damaged_values_are_put_aside_and_nothing_is_lost(data: st.DataObject) -> None:
    key, version = data.draw(st.sampled_from(EVERY))
    _, batch = random_batch(key, version, 3)
    values = [bytearray(record.value or b"") for record in next(batches(batch)).records()]
    victim = values[data.draw(st.integers(0, 2))]
    if data.draw(st.booleans()):
        del victim[data.draw(st.integers(0, len(victim) - 1)) :]
    else:
        victim[data.draw(st.integers(0, len(victim) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    damaged = build_batch([Record(i, 1, None, bytes(v)) for i, v in enumerate(values)])
    found = decode_metadata(damaged)
    for table in found.tables.values():
        table.validate(full=True)
    rows = [row["offset"] for table in found.tables.values() for row in table.to_pylist()]
    assert sorted(rows + [row.offset for row in found.aside]) == [0, 1, 2]
    for row in found.aside:
        # Either nobody can read it, or Kafka would have written it in another way.
        try:
            message, at = decode_record(row.data)
        except BadData:
            continue
        assert encode_record(message, at) != row.data
    for line in lines(damaged):
        assert line["payload"] == record_json(bytes(values[line["offset"]]))


def test_a_tagged_field_that_holds_its_default_is_not_printed() -> None:
    """Kafka writes none such; its JSON leaves them out, and so must the short cut."""
    record = BrokerRegistrationChangeRecord(1, 2, in_controlled_shutdown=1)
    value = encode_record(record, 1)
    odd = value[:-4] + bytes([2, 0, 1, 0]) + value[-3:]  # two tags, the first one fenced = 0
    assert decode_record(odd) == (record, 1)
    assert list(lines(build_batch([Record(0, 1, None, odd)]))) == []
    assert len(list(lines(build_batch([Record(0, 1, None, value)])))) == 1


@given(st.data())
def test_any_flipped_bit_of_a_real_log_is_survived(data: st.DataObject) -> None:
    """No checksum is compared here: the loop itself must be safe on any bytes."""
    path = data.draw(st.sampled_from([p for p in LOGS if p.stat().st_size]))
    log = bytearray(path.read_bytes()[:6000])
    for _ in range(data.draw(st.integers(1, 4))):
        log[data.draw(st.integers(0, len(log) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    found = decode_metadata(bytes(log))
    for table in found.tables.values():
        table.validate(full=True)
    list(lines_until_damage(bytes(log)))


def lines_until_damage(data: bytes) -> Iterator[Any]:
    writer = MetadataLines(b'{"file":"f","position":')
    text, _ = writer.write(data, 0, len(data), 0)
    yield from map(json.loads, bytes(text).splitlines())


def test_a_file_is_read_chunk_by_chunk(tmp_path: Path) -> None:
    path = tmp_path / "log"
    _, one = random_batch(3, 2)
    plain, packed = bytearray(one), bytearray(one_compressed(3, 2))
    path.write_bytes(bytes(plain) * 50 + bytes(packed) * 2)
    for threads in (1, 2):
        found = list(read_metadata(path, chunk=10_000, threads=threads))
        assert sum(t.num_rows for part in found for t in part.tables.values()) == 20 * 52
        positions = [
            row["batch_position"]
            for part in found
            for row in part.tables.get("PARTITION_RECORD", EMPTY).to_pylist()
        ]
        assert sorted(set(positions)) == [
            *range(0, 50 * len(plain), len(plain)),
            50 * len(plain),
            50 * len(plain) + len(packed),
        ]


EMPTY = pa.table({})


def one_compressed(key: int, version: int) -> bytes:
    _, plain = random_batch(key, version)
    return build_batch(next(batches(plain)).records(), codec=Codec.ZSTD)


def test_a_damaged_batch_is_reported_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "log"
    _, one = random_batch(2, 0)
    bad = bytearray(one)
    bad[-1] ^= 1
    path.write_bytes(one + bytes(bad) + one + one[:40])
    problems: list[BadData] = []
    found = list(read_metadata(path, on_error=problems.append))
    assert sum(t.num_rows for part in found for t in part.tables.values()) == 40
    assert [problem.position for problem in problems] == [len(one), 3 * len(one)]
    with pytest.raises(BadData, match=str(path)):
        list(read_metadata(path))
