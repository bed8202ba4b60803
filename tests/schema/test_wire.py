"""The wire types, compiled and interpreted: edges of numbers, lengths and buffers."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from kraftline.errors import Corrupt, Truncated
from kraftline.schema import _wire, wire
from kraftline.schema.types import Uuid


def without_cython() -> ModuleType:
    """The wire types as they run where Cython is not installed at all."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "cython", None)
        return wire.interpreted()


KERNELS = [_wire, wire.interpreted(), without_cython()]


@pytest.fixture(params=KERNELS, ids=("compiled", "interpreted", "without-cython"))
def kernel(request: pytest.FixtureRequest) -> ModuleType:
    module: ModuleType = request.param
    return module


@pytest.mark.parametrize(
    ("method", "value", "encoded"),
    [
        ("int8", -128, b"\x80"),
        ("int16", -2, b"\xff\xfe"),
        ("uint16", 65535, b"\xff\xff"),
        ("int32", -(1 << 31), b"\x80\0\0\0"),
        ("uint32", (1 << 32) - 1, b"\xff\xff\xff\xff"),
        ("int64", -(1 << 63), b"\x80" + bytes(7)),
        ("int64", (1 << 63) - 1, b"\x7f" + b"\xff" * 7),
        ("float64", 1.5, b"\x3f\xf8" + bytes(6)),
        ("boolean", True, b"\x01"),
        ("uvarint", 0, b"\0"),
        ("uvarint", 300, b"\xac\x02"),
        ("uvarint", (1 << 32) - 1, b"\xff\xff\xff\xff\x0f"),
        ("string", "é", b"\0\x02\xc3\xa9"),
        ("nullable_string", None, b"\xff\xff"),
        ("compact_string", "", b"\x01"),
        ("compact_nullable_string", None, b"\0"),
        ("blob", b"ab", b"\0\0\0\x02ab"),
        ("nullable_blob", None, b"\xff\xff\xff\xff"),
        ("compact_blob", b"", b"\x01"),
        ("compact_nullable_blob", None, b"\0"),
        ("uuid", Uuid(bytes(range(16))), bytes(range(16))),
        ("int32_array", (1, -1, 2, 3, 4), b"\0\0\0\x05" + b"\0\0\0\x01" + b"\xff" * 4
         + b"\0\0\0\x02\0\0\0\x03\0\0\0\x04"),
        ("compact_int32_array", (), b"\x01"),
        ("int64_array", (1,), b"\0\0\0\x01" + bytes(7) + b"\x01"),
        ("compact_string_array", ("a", ""), b"\x03\x02a\x01"),
        ("uuid_array", (Uuid(bytes(16)),), b"\0\0\0\x01" + bytes(16)),
    ],
)  # fmt: skip
def test_values_and_their_bytes(
    kernel: ModuleType, method: str, value: Any, encoded: bytes
) -> None:
    w = kernel.Writer(1)
    getattr(w, method)(value)
    assert w.getvalue() == encoded
    r = kernel.Reader(encoded)
    assert getattr(r, method)() == value
    assert r.pos == len(encoded)
    for cut in range(len(encoded)):
        with pytest.raises(Truncated):
            getattr(kernel.Reader(encoded[:cut]), method)()


@pytest.mark.parametrize(
    ("method", "value"),
    [
        ("int8", 128),
        ("int16", -32769),
        ("uint16", -1),
        ("int32", 1 << 31),
        ("uint32", 1 << 32),
        ("uint32", -1),
        ("int64", 1 << 63),
        ("uvarint", -1),
        ("string", "x" * 32768),
        ("uuid", b"15 bytes are few"[:15]),
    ],
)
def test_what_does_not_fit_overflows(kernel: ModuleType, method: str, value: Any) -> None:
    with pytest.raises(OverflowError):
        getattr(kernel.Writer(), method)(value)


def test_varints_of_too_many_bits_are_corrupt(kernel: ModuleType) -> None:
    with pytest.raises(Corrupt, match="32 bits"):
        kernel.Reader(b"\xff\xff\xff\xff\x1f").uvarint()
    with pytest.raises(Corrupt, match="64 bits"):
        kernel.Reader(b"\xff" * 9 + b"\x02").varlong()


def test_signed_varints(kernel: ModuleType) -> None:
    assert kernel.Reader(b"\x03").varint() == -2
    assert kernel.Reader(b"\xff\xff\xff\xff\x0f").varint() == -(1 << 31)
    assert kernel.Reader(b"\xff" * 9 + b"\x01").varlong() == -(1 << 63)
    assert kernel.Reader(b"\xfe" + b"\xff" * 8 + b"\x01").varlong() == (1 << 63) - 1


def test_a_reader_stays_within_its_bounds(kernel: ModuleType) -> None:
    r = kernel.Reader(b"\0\0\0\x01\0\0\0\x02", 0, 6)
    assert r.int32() == 1
    with pytest.raises(Truncated, match="4 bytes wanted where 2 are left"):
        r.int32()
    r.reset(4, 8)
    assert r.int32() == 2
    for start, end in ((-1, 4), (5, 4), (0, 9)):
        with pytest.raises(ValueError, match="not within 8 bytes"):
            r.reset(start, end)


def test_a_long_tagged_field_gets_a_long_size(kernel: ModuleType) -> None:
    w = kernel.Writer(1)
    start = w.begin_tag(7)
    w.raw(b"x" * 300)
    w.end_tag(start)
    assert w.getvalue() == b"\x07\xac\x02" + b"x" * 300


def test_many_uuids_do_not_get_mixed_up(kernel: ModuleType) -> None:
    """They are kept in slots; other bytes in the same slot are another uuid."""
    for number in range(5000):
        raw = bytes(8) + number.to_bytes(8, "little")
        r = kernel.Reader(raw)
        assert r.uuid() == raw
        r.reset(0, 16)
        assert r.uuid_text() == str(Uuid(raw))


def test_uuids_print_and_parse_as_kafka_has_them() -> None:
    assert str(Uuid.parse("LRzin-vNQ0irrEmpMFoSmw")) == "LRzin-vNQ0irrEmpMFoSmw"
    assert repr(Uuid(bytes(16))) == "Uuid('AAAAAAAAAAAAAAAAAAAAAA')"
    for other in ("LRzin-vNQ0irrEmpMFoSmw==", "LRzin+vNQ0irrEmpMFoSmw"):  # other tools' spelling
        assert str(Uuid.parse(other)) == "LRzin-vNQ0irrEmpMFoSmw"
    for text in ("", "short", "LRzin-vNQ0irrEmpMFoSmw=", "LRzin-vNQ0irrEmpMFoS.~", "é" * 22):
        with pytest.raises(ValueError, match="is not a uuid"):
            Uuid.parse(text)
    with pytest.raises(ValueError, match="16 bytes"):
        Uuid(b"few")
