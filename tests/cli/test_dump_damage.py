"""`kraftline dump` of what is damaged, cut, unreadable or not there."""

from __future__ import annotations

import base64
import errno
import json
import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import google_crc32c
import pytest

from kraftline.inspect.dump.sources import Wanted, find_sources
from kraftline.records.framing import batches
from kraftline.records.record import Record
from kraftline.records.write import build_batch
from tests.another_user import another_user, open_directory
from tests.cli.dumping import METADATA, batch, cli, rows, run


def test_damage_is_reported_and_reading_goes_on(tmp_path: Path) -> None:
    log = tmp_path / "orders-0" / f"{0:020}.log"
    log.parent.mkdir()
    data = [bytearray(batch(offset)) for offset in range(5)]
    data[2][70] ^= 1
    log.write_bytes(b"".join(data))
    result = run(log, "--format", "jsonl")
    assert result.exit_code == 1
    assert [json.loads(line)["offset"] for line in result.stdout.splitlines()] == [0, 1, 3, 4]
    position = len(data[0]) * 2
    assert f"position {position}" in result.stderr
    assert "checksum" in result.stderr
    strict = run(log, "--format", "jsonl", "--strict")
    assert strict.exit_code == 1
    assert len(strict.stdout.splitlines()) == 2


def empty_batch_of_codec_7() -> bytes:
    data = bytearray(batch(1)[:61])
    data[8:12] = (len(data) - 12).to_bytes(4, "big")
    data[21:23] = (7).to_bytes(2, "big")
    data[57:61] = bytes(4)
    data[17:21] = google_crc32c.value(bytes(data[21:])).to_bytes(4, "big")
    return bytes(data)


def message_set_that_is_no_gzip() -> bytes:
    """A compressed wrapper of v1 at offset 1 with a right checksum."""
    body = b"\x01\x01" + struct.pack(">qii4s", 1000, -1, 4, b"junk")
    return struct.pack(">qiI", 1, len(body) + 4, zlib.crc32(body)) + body


@pytest.mark.parametrize("odd", [empty_batch_of_codec_7, message_set_that_is_no_gzip])
@pytest.mark.parametrize("bounds", [[], ["--from-offset", "1", "--to-offset", "3"]])
def test_a_batch_that_cannot_be_decoded_costs_only_itself(
    tmp_path: Path, odd: Callable[[], bytes], bounds: list[str]
) -> None:
    log = tmp_path / f"{0:020}.log"
    log.write_bytes(batch(0) + odd() + batch(2) + batch(3))
    result = run(log, "--format", "jsonl", *bounds)
    assert result.exit_code == 1
    offsets = [json.loads(line)["offset"] for line in result.stdout.splitlines()]
    assert offsets == ([2, 3] if bounds else [0, 2, 3])
    assert f"position {len(batch(0))}, offset 1:" in result.stderr


def test_what_a_decoder_does_not_know_is_there_as_bytes(tmp_path: Path) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    values = [b"\x01\x63\x00newer", b"\x01\x14\x00\x00", b"\x01\x14\x00\x00left"]
    records = [Record(i, 5, None, value) for i, value in enumerate(values)]
    (folder / f"{0:020}.log").write_bytes(build_batch(records))
    result = run(folder, "--format", "jsonl")
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == 1
    assert [row["offset"] for row in found] == [0, 1, 2]
    assert "99" in found[0]["problem"]
    assert found[1]["payload"] == {"type": "NO_OP_RECORD", "version": 0, "data": {}}
    assert "payload" not in found[2]


def test_a_control_record_of_an_unknown_type_is_shown_with_its_bytes(tmp_path: Path) -> None:
    data = bytearray(build_batch([Record(0, 5, b"\0\0\0\x63", b"newer")]))
    data[22] |= 0x20
    data[17:21] = google_crc32c.value(bytes(data[21:])).to_bytes(4, "big")
    (tmp_path / f"{0:020}.log").write_bytes(data)
    result = run(tmp_path)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[2].endswith("[control] 99 0x00000063: newer")


def test_a_value_that_cannot_be_read_is_not_taken_for_a_deletion(tmp_path: Path) -> None:
    folder = tmp_path / "__consumer_offsets-0"
    folder.mkdir()
    key = b"\0\1\0\1g\0\1t\0\0\0\0"
    records = [Record(0, 5, key, b"\0\x63newer"), Record(1, 5, key, None)]
    (folder / f"{0:020}.log").write_bytes(build_batch(records))
    newer, deleted = (
        json.loads(line) for line in run(folder, "--format", "jsonl").stdout.splitlines()
    )
    assert newer["keyPayload"] == deleted["keyPayload"]
    assert "payload" not in newer
    assert base64.b64decode(newer["value"]) == records[0].value
    assert deleted["payload"] is None
    lines = run(folder).stdout.splitlines()[2:]
    assert ["deleted" in line for line in lines] == [False, True]
    assert b"\0\x63newer".hex() in lines[0]


def test_a_half_written_batch_is_not_there_yet(tmp_path: Path) -> None:
    log = tmp_path / f"{0:020}.log"
    whole = batch(0) + batch(1)
    for cut in range(len(batch(0)), len(whole)):
        log.write_bytes(whole[:cut])
        assert [row["offset"] for row in rows(log)] == [0]


def test_half_a_batch_in_a_finished_segment_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    first, second = folder / f"{0:020}.log", folder / f"{2:020}.log"
    first.write_bytes(batch(0) + batch(1)[:-5])
    assert [row["offset"] for row in rows(first)] == [0]
    second.write_bytes(batch(2) + batch(3)[:-5])
    words = f"{first}, position {len(batch(0))}: the file ends within a batch"
    for args, offsets in (
        ([folder], [0, 2]),
        ([first], [0]),
        ([folder, "--from-offset", 1], [2]),
    ):
        result = run(*args, "--format", "jsonl")
        assert [json.loads(line)["offset"] for line in result.stdout.splitlines()] == offsets
        assert (result.exit_code, result.stderr) == (1, f"kraftline: {words}\n")


@pytest.mark.parametrize("large", [False, True])
def test_a_cut_snapshot_is_told_wherever_it_is_cut(
    tmp_path: Path, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if large:
        monkeypatch.setattr("kraftline.inspect.dump.WORTH_A_PROGRAM", 0)
    whole = sorted(METADATA.glob("*.checkpoint"))[-1]
    data = whole.read_bytes()
    assert run(whole, "--format", "jsonl").exit_code == 0
    starts = [found.position for found in batches(data)]
    for cut in (0, 40, *starts[1:], starts[-1] - 1, len(data) - 1):
        copy = tmp_path / whole.name
        copy.write_bytes(data[:cut])
        result = run(copy, "--format", "jsonl")
        assert result.exit_code == 1, cut
        at = max(start for start in [*starts, len(data)] if start <= cut)
        assert f"{copy}, position {at}: the " in result.stderr
    assert run(whole, "--from-offset", 10**6).exit_code == 0  # the footer is there, and not read


def test_damage_is_told_once_however_often_it_is_met(tmp_path: Path) -> None:
    log = tmp_path / f"{0:020}.log"
    log.write_bytes(batch(0) + b"junk" * 10 + batch(2) + batch(3))
    for bounds in (
        ["--from-offset", 0, "--since", "1970-01-01"],
        ["--from-offset", 2, "--since", "1970-01-01T00:00:01.002Z"],
    ):
        result = run(log, "--format", "jsonl", *bounds)
        assert result.exit_code == 1
        assert result.stderr.count(f"position {len(batch(0))},") == 1
        assert len(result.stderr.splitlines()) == 1


def test_segments_behind_the_last_offset_are_not_looked_into(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(batch(0) + batch(1))
    (folder / f"{2:020}.log").write_bytes(b"junk" * 100)
    assert [row["offset"] for row in rows(folder, "--to-offset", 1)] == [0, 1]


def test_a_segment_that_may_not_be_read_does_not_hide_the_others() -> None:
    with open_directory() as where:
        folder = where / "orders-0"
        folder.mkdir()
        for offset in range(3):
            (folder / f"{offset:020}.log").write_bytes(batch(offset))
        run(folder)
        closed = folder / f"{1:020}.log"
        closed.chmod(0)
        with another_user():
            result = run(folder, "--format", "jsonl")
            strict = run(folder, "--format", "jsonl", "--strict")
    assert [json.loads(line)["offset"] for line in result.stdout.splitlines()] == [0, 2]
    assert [json.loads(line)["offset"] for line in strict.stdout.splitlines()] == [0]
    for told in (result, strict):
        assert told.exit_code == 1
        assert f"{closed}: no permission to read it" in told.stderr


def test_a_disk_that_fails_costs_only_what_lies_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    window = 8 << 20
    broken, whole = folder / f"{0:020}.log", folder / f"{2:020}.log"
    large = build_batch([Record(1, 1000, b"key", bytes(window))], base_offset=1)
    broken.write_bytes(batch(0) + large)
    whole.write_bytes(batch(2))
    real = os.pread

    def pread(fd: int, length: int, position: int) -> bytes:
        if position and os.path.samestat(os.fstat(fd), broken.stat()):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(fd, length, position)

    monkeypatch.setattr(os, "pread", pread)
    result = run(folder, "--format", "jsonl")
    assert result.exit_code == 1
    assert [json.loads(line)["offset"] for line in result.stdout.splitlines()] == [0, 2]
    assert f"{broken}: cannot be read: Input/output error" in result.stderr


def test_a_segment_that_a_broker_deletes_meanwhile_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    for offset in range(3):
        (folder / f"{offset:020}.log").write_bytes(batch(offset))
    found = list(find_sources([str(folder)], Wanted(), lambda error: None))
    (folder / f"{1:020}.log").unlink()
    monkeypatch.setattr("kraftline.cli.dump.find_sources", lambda *args: found)
    assert [row["offset"] for row in rows(folder)] == [0, 2]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("notes.txt", b"hello", "not a file of Kafka's"),
        (f"{0:020}.index", b"\0" * 8, "holds no records"),
    ],
)
def test_other_files_are_refused_with_words(
    tmp_path: Path, name: str, content: bytes, words: str
) -> None:
    (tmp_path / name).write_bytes(content)
    done = cli("dump", tmp_path / name)
    assert done.returncode == 2
    assert words in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()
