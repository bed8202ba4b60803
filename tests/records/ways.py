"""All the ways to read a buffer of batches, held against each other."""

from __future__ import annotations

from typing import TypeAlias

from kraftline.errors import BadData
from kraftline.records import arrow, runs
from kraftline.records.framing import batches
from kraftline.records.kernel import active
from kraftline.records.record import Header

Fields: TypeAlias = tuple[int, int, bytes | None, bytes | None, tuple[Header, ...], int]


def by_batch(data: bytes, check_crc: bool = True, limit: int = 1 << 24) -> list[Fields]:
    return [
        (r.offset, r.timestamp, r.key, r.value, r.headers, r.sequence)
        for batch in batches(data)
        for r in batch.records(check_crc=check_crc, limit=limit)
    ]


def by_run(data: bytes, check_crc: bool = True, limit: int = 1 << 24) -> list[Fields]:
    found = runs.tuples(data, check_crc=check_crc, limit=limit)
    return [fields for part in found for fields in part]


def by_place(data: bytes, check_crc: bool = True, limit: int = 1 << 24) -> list[Fields]:
    found: list[Fields] = []
    run = runs.prepare(data, check_crc=check_crc, limit=limit)
    for source, numbers, stride in runs.positions(run):
        for at in range(0, len(numbers), stride):
            offset, timestamp, key, key_end, value, value_end, headers, row = numbers[
                at : at + stride
            ]
            row *= active.STRIDE
            sequence = max(-1, run.table[row + active.BASE_SEQUENCE])
            if sequence >= 0:
                sequence = (sequence + offset - run.table[row + active.BASE_OFFSET]) % (1 << 31)
            found.append(
                (
                    offset,
                    timestamp,
                    None if key_end < 0 else bytes(source[key:key_end]),
                    None if value_end < 0 else bytes(source[value:value_end]),
                    active.headers_at(source, headers, len(source)),
                    sequence,
                )
            )
    return found


def by_column(data: bytes, check_crc: bool = True, limit: int = 1 << 24) -> list[Fields]:
    table = arrow.decode_columns(data, check_crc=check_crc, limit=limit)
    table.validate(full=True)
    names = ("offset", "timestamp", "key", "value", "headers", "sequence")
    columns = [table.column(name).to_pylist() for name in names]
    columns[4] = [tuple((h["key"], h["value"]) for h in headers) for headers in columns[4]]
    return list(zip(*columns, strict=True))


def read(data: bytes, *, check_crc: bool = True, limit: int = 1 << 24) -> list[Fields] | str:
    """What the buffer holds, or the error's name; every way must give the same."""
    results: list[list[Fields] | str] = []
    for way in (by_batch, by_run, by_place, by_column):
        try:
            results.append(way(data, check_crc, limit))
        except BadData as problem:
            place = "somewhere" if problem.position is None else ""
            results.append(type(problem).__name__ + place)
    assert all(result == results[0] for result in results), results
    return results[0]
