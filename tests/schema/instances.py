"""Random messages out of their declarations, and a Hypothesis strategy for the same."""

from __future__ import annotations

import random
from typing import Any, TypeVar

from hypothesis import strategies as st

from kraftline.schema.fields import FieldSpec, fields
from kraftline.schema.types import Message, RawTag, Uuid

M = TypeVar("M", bound=Message)

BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
UNSIGNED = {"uint16": 16, "uint32": 32}
# Names behind which the second opinion has durations, times and error codes, not plain numbers.
TAMED = ("_ms", "time", "timeout", "timestamp", "error_code")


class Random:
    """Seeded: the same messages at every run. `tame` keeps numbers where any library has room."""

    def __init__(self, seed: object, *, tame: bool = False) -> None:
        self.rng = random.Random(str(seed))
        self.tame = tame

    def message(self, cls: type[M], version: int) -> M:
        present = [field for field in fields(cls) if version in field.versions]
        return cls(**{field.name: self.value(field, version) for field in present})

    def value(self, field: FieldSpec, version: int) -> Any:
        if field.tag is not None and self.rng.random() < 0.4:
            return field.default
        if version in field.nullable and self.rng.random() < 0.2:
            return None
        if field.is_array:
            return tuple(self.one(field, version) for _ in range(self.rng.choice((0, 1, 2, 3))))
        return self.one(field, version)

    def one(self, field: FieldSpec, version: int) -> Any:
        rng = self.rng
        if field.struct is not None:
            return self.message(field.struct, version)
        if field.wire in BITS or field.wire in UNSIGNED:
            if self.tame and any(word in field.name for word in TAMED):
                return rng.randrange(100) if "error_code" in field.name else rng.randrange(10**9)
            if field.wire in UNSIGNED:
                return rng.getrandbits(UNSIGNED[field.wire])
            bits = BITS[field.wire]
            return rng.choice((0, -1, 1, rng.getrandbits(bits) - (1 << (bits - 1))))
        if field.wire == "bool":
            return rng.random() < 0.5
        if field.wire == "float64":
            return rng.uniform(-1e9, 1e9)
        if field.wire == "uuid":
            return Uuid(rng.randbytes(16))
        length = rng.choice((0, 1, 5, 200))
        if field.wire == "string":
            return "".join(rng.choice("aZ9-._ßλ🔑") for _ in range(length))
        return rng.randbytes(length)


def messages(cls: type[M], version: int, *, unknown_tags: bool = True) -> st.SearchStrategy[M]:
    """Any message that this version can hold, unknown tags included."""
    parts = {
        field.name: _field(field, version, unknown_tags)
        for field in fields(cls)
        if version in field.versions
    }
    if unknown_tags and cls.SPEC.is_flexible(version):
        known = {field.tag for field in fields(cls)}
        numbers = st.integers(0, 2**32 - 1).filter(lambda n: n not in known)
        tags = st.dictionaries(numbers, st.binary(max_size=150), max_size=2)
        parts["unknown_tags"] = tags.map(
            lambda found: tuple(RawTag(tag, found[tag]) for tag in sorted(found))
        )
    return st.builds(cls, **parts)


def _field(field: FieldSpec, version: int, unknown_tags: bool) -> st.SearchStrategy[Any]:
    one = _one(field, version, unknown_tags)
    value = st.lists(one, max_size=4).map(tuple) if field.is_array else one
    return st.none() | value if version in field.nullable else value


def _one(field: FieldSpec, version: int, unknown_tags: bool) -> st.SearchStrategy[Any]:
    if field.struct is not None:
        return messages(field.struct, version, unknown_tags=unknown_tags)
    if field.wire in BITS:
        half = 1 << (BITS[field.wire] - 1)
        return st.integers(-half, half - 1)
    if field.wire in UNSIGNED:
        return st.integers(0, (1 << UNSIGNED[field.wire]) - 1)
    plain: dict[str, st.SearchStrategy[Any]] = {
        "bool": st.booleans(),
        "float64": st.floats(allow_nan=False),
        "uuid": st.binary(min_size=16, max_size=16).map(Uuid),
        "string": st.text(max_size=20),
        "bytes": st.binary(max_size=300),
        "records": st.binary(max_size=300),
    }
    return plain[field.wire]
