"""Damage in the middle of a segment: everything else is read, and nothing is lost in silence."""

from __future__ import annotations

import random
import struct
import tracemalloc
from pathlib import Path

import pytest

from kraftline.errors import BadData, Corrupt
from kraftline.storage.segment import Damage, SegmentReader
from tests.fixture_files import name_of
from tests.storage.batches import one_batch, some_batches
from tests.storage.fixture_files import data_files

LOG = "00000000000000000000.log"


def read(path: Path, **options: int) -> tuple[list[int], list[Damage]]:
    found: list[Damage] = []
    with SegmentReader(path, on_damage=found.append, **options) as reader:
        return [position for _, position in reader.batches()], found


def starts(batches: list[bytes]) -> list[int]:
    return [sum(map(len, batches[:n])) for n in range(len(batches))]


def flip(data: bytes, at: int, bit: int) -> bytes:
    out = bytearray(data)
    out[at] ^= 1 << bit
    return bytes(out)


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_any_flipped_bit_costs_at_most_its_own_batch(tmp_path: Path, magic: int) -> None:
    batches = some_batches(6, magic=magic)
    data = b"".join(batches)
    where = starts(batches)
    victim = 2
    path = tmp_path / LOG
    for at in range(len(batches[victim])):
        for bit in range(8):
            path.write_bytes(flip(data, where[victim] + at, bit))
            found, damage = read(path)
            assert set(where) - set(found) <= {where[victim]}, (at, bit)
            if where[victim] not in found:
                assert [(d.position, d.length) for d in damage] == [
                    (where[victim], len(batches[victim]))
                ], (at, bit)
            # Offset and leader epoch are outside of the checksum.
            elif at >= 16 or 8 <= at < 12:
                raise AssertionError(f"byte {at} bit {bit} went unseen")


@pytest.mark.parametrize("victim", [0, 5])
def test_the_first_and_the_last_batch_may_be_the_damaged_one(tmp_path: Path, victim: int) -> None:
    batches = some_batches(6)
    data = b"".join(batches)
    where = starts(batches)
    path = tmp_path / LOG
    for at in range(8, 61):
        path.write_bytes(flip(data, where[victim] + at, 6))
        found, _ = read(path)
        assert set(where) - set(found) <= {where[victim]}, at


def test_a_wrong_length_hides_no_batch_behind_it(tmp_path: Path) -> None:
    batches = some_batches(50)
    where = starts(batches)
    path = tmp_path / LOG
    # Leads into the middle of a batch further on, past the end, or nowhere.
    for length in (1, 60, 300, 2000, len(b"".join(batches)), 90_000_000, 2**31 - 1, -5, 0):
        data = bytearray(b"".join(batches))
        struct.pack_into(">i", data, where[10] + 8, length)
        path.write_bytes(data)
        found, damage = read(path)
        assert found == [p for n, p in enumerate(where) if n != 10], length
        assert [(d.position, d.length) for d in damage] == [(where[10], len(batches[10]))]
        assert damage[0].reason


def test_junk_between_batches_is_one_finding(tmp_path: Path) -> None:
    batches = some_batches(10)
    junk = random.Random(1).randbytes(5000)
    front = b"".join(batches[:5])
    path = tmp_path / LOG
    path.write_bytes(front + junk + b"".join(batches[5:]))
    found, damage = read(path)
    assert len(found) == 10
    assert [(d.position, d.length) for d in damage] == [(len(front), len(junk))]
    assert damage[0].offset == 10 - 1  # the first five batches hold offsets 0 to 8


def test_a_hole_of_zeros_between_batches_is_damage(tmp_path: Path) -> None:
    batches = some_batches(10)
    front = b"".join(batches[:5])
    path = tmp_path / LOG
    path.write_bytes(front + bytes(8192) + b"".join(batches[5:]))
    found, damage = read(path)
    assert len(found) == 10
    assert [(d.position, d.length) for d in damage] == [(len(front), 8192)]


def test_without_a_listener_damage_is_raised(tmp_path: Path) -> None:
    batches = some_batches(5)
    path = tmp_path / LOG
    path.write_bytes(flip(b"".join(batches), len(batches[0]) + 40, 0))
    with SegmentReader(path) as reader, pytest.raises(Corrupt) as caught:
        list(reader.batches())
    assert caught.value.file == str(path)
    assert caught.value.position == len(batches[0])


def test_batches_before_damage_are_given_before_it_is_raised(tmp_path: Path) -> None:
    batches = some_batches(4)
    path = tmp_path / LOG
    path.write_bytes(b"".join(batches[:2]) + b"junk" * 10 + b"".join(batches[2:]))
    with SegmentReader(path) as reader:
        found = reader.batches()
        assert [next(found)[1], next(found)[1]] == starts(batches)[:2]
        with pytest.raises(Corrupt):
            next(found)


def test_damage_across_a_window_is_found(tmp_path: Path) -> None:
    batches = some_batches(120, value_size=150)
    where = starts(batches)
    path = tmp_path / LOG
    for victim in range(0, 110, 7):
        data = bytearray(b"".join(batches))
        struct.pack_into(">i", data, where[victim] + 8, 3000)
        path.write_bytes(data)
        found, damage = read(path, window=4096)
        assert found == [p for n, p in enumerate(where) if n != victim]
        assert len(damage) == 1


def test_hostile_lengths_cost_no_memory(tmp_path: Path) -> None:
    # Every place looks like the start of a batch of 100 MB.
    header = struct.pack(">qiib", 0, 100_000_000, 0, 2)
    path = tmp_path / LOG
    path.write_bytes(header * 5_000)
    tracemalloc.start()
    found, _ = read(path, window=65536)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == []
    assert peak < 8_000_000


def test_hostile_bytes_cost_bounded_time(tmp_path: Path) -> None:
    # Each piece is damaged, and behind it looks like a batch of 30 MB with a wrong checksum.
    fake = struct.pack(">qiibIhi", 0, 30_000_000, 0, 2, 1, 0, 0)
    data = (b"\x01" * 40 + fake) * 5_000
    path = tmp_path / LOG
    path.write_bytes(data + bytes(31_000_000))
    found, damage = read(path)
    assert found == []
    assert sum(d.length for d in damage) <= len(data) + 31_000_000


@pytest.mark.parametrize(
    "path", [p for p in data_files("*.log", "*.checkpoint") if p.stat().st_size], ids=name_of
)
def test_real_files_with_random_damage_never_fail_otherwise(path: Path, tmp_path: Path) -> None:
    data = path.read_bytes()
    rolls = random.Random(path.name)
    victim = tmp_path / path.name
    for _ in range(15):
        hurt = bytearray(data)
        for _ in range(rolls.randint(1, 4)):
            hurt[rolls.randrange(len(hurt))] ^= 1 << rolls.randrange(8)
        victim.write_bytes(hurt[: rolls.randint(1, len(hurt))])
        found: list[Damage] = []
        with SegmentReader(victim, on_damage=found.append) as reader:
            for batch, _ in reader.batches():
                try:
                    batch.records()
                except BadData:
                    continue
            assert reader.tail is not None
        for damage in found:
            assert 0 < damage.length <= len(hurt) - damage.position


def test_an_embedded_batch_is_not_taken_for_one_of_the_log(tmp_path: Path) -> None:
    inner = one_batch(7, 3)
    outer = bytearray(one_batch(1, value_size=200))
    outer[100 : 100 + len(inner)] = inner
    batches = [one_batch(0), bytes(outer), one_batch(2)]
    path = tmp_path / LOG
    path.write_bytes(b"".join(batches))
    found, damage = read(path)
    assert found == [0, len(batches[0]) + len(batches[1])]
    assert len(damage) == 1
