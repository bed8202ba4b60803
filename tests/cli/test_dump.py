"""`kraftline dump` as a person or a program uses it."""

from __future__ import annotations

import base64
import csv
import errno
import io
import json
import os
import pty
import shutil
import signal
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import google_crc32c
import pytest
from click.testing import CliRunner, Result

from kraftline.cli.dump import command
from kraftline.errors import NotKafka
from kraftline.inspect.dump.payloads import known_types
from kraftline.inspect.dump.sources import Wanted, find_sources
from kraftline.inspect.dump.text import Painter
from kraftline.records.framing import batches
from kraftline.records.record import Record
from kraftline.records.write import build_batch
from kraftline.schema.metadata.frame import encode_record
from kraftline.schema.metadata.topic_record import TopicRecord
from kraftline.schema.uuids import ZERO
from tests.another_user import another_user, open_directory
from tests.fixture_files import FIXTURES

METADATA = FIXTURES / "metadata_4_3/data/node-1/__cluster_metadata-0"
TOPICS = FIXTURES / "topics_4_3/data/node-1"


def run(*args: object) -> Result:
    return CliRunner().invoke(command, [str(arg) for arg in args])


def rows(*args: object) -> list[dict[str, Any]]:
    result = run(*args, "--format", "jsonl")
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_a_partition_directory_is_its_segments_in_order() -> None:
    found = rows(METADATA)
    offsets = [row["offset"] for row in found]
    assert offsets == list(range(offsets[-1] + 1))
    assert len({row["file"] for row in found}) > 1


def test_snapshots_come_only_when_asked_for() -> None:
    plain = {row["file"] for row in rows(METADATA)}
    both = {row["file"] for row in rows(METADATA, "--snapshots")}
    assert all(name.endswith(".log") for name in plain)
    assert both - plain == {str(p) for p in METADATA.glob("*.checkpoint")}


def test_a_log_directory_is_all_its_partitions() -> None:
    folders = {Path(row["file"]).parent for row in rows(TOPICS)}
    filled = {p.parent for p in TOPICS.glob("*/*.log") if p.stat().st_size}
    assert folders == filled


@pytest.mark.parametrize("name", ["TOPIC_RECORD", "TopicRecord", "topic"])
def test_records_can_be_chosen_by_type(name: str) -> None:
    found = rows(METADATA, "--type", name)
    assert found
    assert {row["payload"]["type"] for row in found} == {"TOPIC_RECORD"}


def test_control_records_and_group_records_have_type_names_too() -> None:
    assert rows(METADATA, "--type", "LEADER_CHANGE")[0]["isControl"]
    found = rows(TOPICS / "__consumer_offsets-0", "--type", "OFFSET_COMMIT")
    assert {row["keyPayload"]["type"] for row in found} == {"1"}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("TOPC_RECORD", "did you mean TOPIC_RECORD"),
        ("offsetcommit", "did you mean OFFSET_COMMIT"),
        ("nonsense", "there are ABORT, ABORT_TRANSACTION_RECORD"),
    ],
)
def test_a_type_that_does_not_exist_is_wrong_use(name: str, words: str) -> None:
    result = run(METADATA, "--type", name)
    assert result.exit_code == 2
    assert words in result.stderr


def test_every_type_that_is_in_a_log_can_be_asked_for() -> None:
    for path in (METADATA, TOPICS / "__consumer_offsets-0"):
        text = run(path).stdout.splitlines()
        kinds = {word for line in text for word in line.split() if word in set(known_types())}
        assert kinds
        assert all(rows(path, "--type", kind) for kind in kinds)


def test_a_topic_filter_gives_its_records_and_those_about_it() -> None:
    found = rows(TOPICS, "--topic", "mixed")
    by_log: dict[str, list[dict[str, Any]]] = {}
    for row in found:
        by_log.setdefault(Path(row["file"]).parent.name.rpartition("-")[0], []).append(row)
    assert set(by_log) <= {"mixed", "__cluster_metadata", "__consumer_offsets"} | {
        "__transaction_state",
        "__share_group_state",
    }
    names = {row["payload"]["type"] for row in by_log["__cluster_metadata"]}
    assert {"TOPIC_RECORD", "PARTITION_RECORD"} <= names
    commits = [r for r in by_log["__consumer_offsets"] if r["keyPayload"]["type"] == "1"]
    assert {row["keyPayload"]["data"]["topic"] for row in commits} == {"mixed"}


def test_configs_and_acls_of_a_topic_are_about_it() -> None:
    for kind in ("CONFIG_RECORD", "ACCESS_CONTROL_ENTRY_RECORD"):
        of_topics = [
            r for r in rows(METADATA, "--type", kind) if r["payload"]["data"]["resourceType"] == 2
        ]
        named = [r for r in of_topics if r["payload"]["data"]["resourceName"] == "orders"]
        assert named
        assert rows(METADATA, "--type", kind, "--topic", "orders") == named


def test_a_group_that_subscribes_to_a_topic_is_about_it() -> None:
    path = TOPICS / "__consumer_offsets-0"
    for kind in ("GROUP_METADATA", "CONSUMER_GROUP_MEMBER_METADATA", "STREAMS_GROUP_TOPOLOGY"):
        of_kind = rows(path, "--type", kind)
        named = [row for row in of_kind if '"mixed"' in json.dumps(row["payload"])]
        assert named
        assert rows(path, "--type", kind, "--topic", "mixed") == named


def test_an_assignment_is_about_the_topic_whose_id_it_has() -> None:
    """Also where only the groups' log is given: the metadata log beside it knows the ids."""
    kind = ["--type", "CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER"]
    groups = TOPICS / "__consumer_offsets-0"
    ids = {
        row["payload"]["data"]["topicId"]
        for row in rows(TOPICS / "__cluster_metadata-0", "--type", "TOPIC", "--topic", "mixed")
    }
    named = [r for r in rows(groups, *kind) if any(i in json.dumps(r["payload"]) for i in ids)]
    assert named
    assert rows(groups, *kind, "--topic", "mixed") == named
    assert rows(TOPICS, *kind, "--topic", "mixed") == named


def about(topic: str, *more: object, path: Path = METADATA) -> list[int]:
    return [row["offset"] for row in rows(path, "--topic", topic, *more)]


def test_a_topic_filter_goes_together_with_all_others() -> None:
    """Records speak of a topic by its id, and what tells the id need not be chosen itself."""
    found = rows(METADATA, "--topic", "orders")
    offsets = [row["offset"] for row in found]
    assert found[0]["payload"]["type"] == "TOPIC_RECORD"
    changes = [r["offset"] for r in found if r["payload"]["type"] == "PARTITION_CHANGE_RECORD"]
    assert changes
    assert about("orders", "--type", "PARTITION_CHANGE_RECORD") == changes
    assert about("orders", "--from-offset", offsets[1]) == offsets[1:]
    time = next(row["timestamp"] for row in found if row["timestamp"] > found[0]["timestamp"])
    moment = datetime.fromtimestamp(time / 1000, UTC).isoformat(timespec="milliseconds")
    later = [row["offset"] for row in found if row["timestamp"] >= time]
    assert about("orders", "--since", moment) == later


def test_a_topic_filter_finds_the_topic_in_other_segments_and_in_snapshots(
    tmp_path: Path,
) -> None:
    folder = tmp_path / METADATA.name
    shutil.copytree(METADATA, folder)
    offsets = about("orders", path=folder)
    first, second, third = sorted(folder.glob("*.log"))
    second_only = [o for o in offsets if int(second.stem) <= o < int(third.stem)]
    assert second_only
    for snapshot in (snapshots := sorted(folder.glob("*.checkpoint"))):
        snapshot.rename(snapshot.with_suffix(".aside"))
    assert about("orders", path=second) == second_only
    for snapshot in snapshots:
        snapshot.with_suffix(".aside").rename(snapshot)
    first.unlink()
    assert about("orders", path=folder) == [o for o in offsets if o >= int(second.stem)]


def test_offset_bounds_are_inclusive_and_use_the_index() -> None:
    found = rows(METADATA, "--from-offset", 20, "--to-offset", 30)
    assert [row["offset"] for row in found] == list(range(20, 31))


def test_time_bounds_are_inclusive() -> None:
    everything = rows(METADATA)
    middle = everything[len(everything) // 2]["timestamp"]
    expected = [row["offset"] for row in everything if row["timestamp"] == middle]
    moment = datetime.fromtimestamp(middle / 1000, UTC).isoformat(timespec="milliseconds")
    found = rows(METADATA, "--since", moment, "--until", moment)
    assert [row["offset"] for row in found] == expected


@pytest.mark.parametrize(
    "bounds",
    [
        ["--from-offset", 5, "--to-offset", 4],
        ["--since", "2026-03-01T03:00Z", "--until", "2026-03-01T03:00+01:00"],
    ],
)
def test_an_end_before_the_start_is_wrong_use(bounds: list[object]) -> None:
    result = run(METADATA, *bounds)
    assert result.exit_code == 2
    assert "lies before" in result.stderr


def test_a_limit_ends_the_dump() -> None:
    assert len(rows(METADATA, "--limit", 3)) == 3


def test_records_can_be_chosen_by_key(tmp_path: Path) -> None:
    log = write_log(tmp_path, [Record(i, 1000, f"k{i % 2}".encode(), b"v") for i in range(6)])
    assert [row["offset"] for row in rows(log, "--key", "k1")] == [1, 3, 5]
    assert [row["offset"] for row in rows(log, "--key", "0x6b30")] == [0, 2, 4]


def test_a_decoder_can_be_forced(tmp_path: Path) -> None:
    copy = tmp_path / "renamed.bin"
    shutil.copy(sorted(METADATA.glob("*.log"))[0], copy)
    assert not any("payload" in row for row in rows(copy) if not row["isControl"])
    assert all("payload" in row for row in rows(copy, "--decoder", "metadata"))


@pytest.mark.parametrize("name", ["copy", "backup-1"])
def test_a_metadata_log_is_known_under_another_name(tmp_path: Path, name: str) -> None:
    shutil.copytree(METADATA, tmp_path / name)
    assert all("payload" in row for row in rows(tmp_path / name))
    untyped = rows(tmp_path / name, "--decoder", "none")
    assert not any("payload" in row for row in untyped if not row["isControl"])


def test_all_formats_hold_the_same_records() -> None:
    path = TOPICS / "__consumer_offsets-0"
    lines = rows(path)
    assert json.loads(run(path, "--format", "json").stdout) == lines
    table = list(csv.DictReader(io.StringIO(run(path, "--format", "csv").stdout)))
    assert [int(row["offset"]) for row in table] == [row["offset"] for row in lines]
    assert json.loads(table[0]["keyPayload"]) == lines[0]["keyPayload"]
    text = run(path).stdout
    assert str(path) in text
    assert "OFFSET_COMMIT" in text
    assert "\x1b" not in text  # no colour into a pipe


def test_a_table_has_a_line_per_record_whatever_is_in_it(tmp_path: Path) -> None:
    steering = "a\n\x1b[2Jb"
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    topic = encode_record(TopicRecord(name=steering, topic_id=ZERO), 0)
    records = [Record(0, 5, None, topic, ((steering, b"v"),)), Record(1, 5, None, topic)]
    (folder / f"{0:020}.log").write_bytes(build_batch(records))
    lines = run(folder).stdout.splitlines()
    assert len(lines) == 2 + len(records)
    assert "\x1b" not in "".join(lines)
    assert f"name={steering!r}" in lines[2]


@pytest.mark.parametrize(
    ("width", "line"),
    [(None, "ab cd ef"), (8, "ab cd ef"), (7, "ab cd …"), (6, "ab cd…"), (1, "…")],
)
def test_a_line_that_is_cut_says_so(width: int | None, line: str) -> None:
    pieces = [("", "ab "), ("dim", "cd"), ("", " ef")]
    assert Painter(colour=False, width=width).line(pieces) == line


def test_a_terminal_without_a_size_shows_whole_lines() -> None:
    ours, theirs = pty.openpty()
    verb = [sys.executable, "-m", "kraftline", "dump", str(METADATA)]
    subprocess.run([*verb, "--type", "TOPIC", "--limit", "1"], stdout=theirs, check=True)
    os.close(theirs)
    assert b"orders" in os.read(ours, 10_000)
    os.close(ours)


def test_an_empty_result_is_still_json() -> None:
    assert json.loads(run(METADATA, "--from-offset", 10**9, "--format", "json").stdout) == []


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


def test_a_missing_path_is_wrong_use() -> None:
    done = cli("dump", "/nowhere/at/all")
    assert done.returncode == 2
    assert "no such file" in done.stderr.decode()


@pytest.mark.parametrize("verb", ["dump", "info", "verify"])
@pytest.mark.parametrize("form", ["table", "json", "jsonl", "csv"])
def test_names_that_are_no_utf_8_are_shown_all_the_same(
    tmp_path: Path, verb: str, form: str
) -> None:
    folder = os.fsencode(tmp_path) + b"/or\xffders-0"
    os.mkdir(folder)
    with open(folder + b"/%020d.log" % 0, "wb") as file:
        file.write(batch(0) + b"junk" * 9)
    done = cli(verb, tmp_path, "--format", form)
    assert b"Traceback" not in done.stderr
    assert done.returncode == 1
    assert b"ders-0" in done.stdout


def test_follow_goes_on_into_the_next_segment(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    first, second = folder / f"{0:020}.log", folder / f"{2:020}.log"
    first.write_bytes(batch(0))
    process = subprocess.Popen(
        [sys.executable, "-m", "kraftline", "dump", "--follow", "--format", "jsonl", folder],
        stdout=subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
    )
    try:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["offset"] == 0
        with first.open("ab") as file:
            half = batch(1)
            file.write(half[:30])
            file.flush()
            os.fsync(file.fileno())
            file.write(half[30:])
        assert json.loads(process.stdout.readline())["offset"] == 1
        second.write_bytes(batch(2))
        row = json.loads(process.stdout.readline())
        assert (row["offset"], row["file"]) == (2, str(second))
    finally:
        process.terminate()
        process.wait(10)
        if process.stdout is not None:
            process.stdout.close()


def test_follow_ends_at_the_last_offset_that_is_wanted(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(batch(0) + batch(1) + batch(2))
    assert [row["offset"] for row in rows(folder, "--follow", "--to-offset", 2)] == [0, 1, 2]
    assert [row["offset"] for row in rows(folder, "--follow", "--to-offset", 1)] == [0, 1]


@pytest.mark.parametrize(
    "name", [f"{5:020}-{1:010}.checkpoint", "copy.bin", f"{0:020}.log.deleted"]
)
def test_follow_refuses_what_will_not_grow(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(batch(0))
    (tmp_path / f"{0:020}.log").write_bytes(batch(0))
    result = run(tmp_path / name, "--follow")
    assert isinstance(result.exception, NotKafka)
    assert str(tmp_path / name) in str(result.exception)


@pytest.mark.parametrize("verb", ["dump --format jsonl", "dump", "info --format csv", "verify"])
def test_a_closed_pipe_is_no_error(verb: str) -> None:
    done = subprocess.run(
        f"set -o pipefail; {sys.executable} -m kraftline {verb} {TOPICS} | head -1",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        check=True,
    )
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == b""


@pytest.mark.parametrize("verb", ["dump", "info", "verify"])
def test_output_that_nobody_wants_is_no_error(verb: str) -> None:
    done = subprocess.run(
        f"{sys.executable} -m kraftline {verb} {METADATA} >&- 2>&-", shell=True, check=False
    )
    assert done.returncode == 0


def test_follow_is_ended_with_control_c_without_a_word(tmp_path: Path) -> None:
    (tmp_path / f"{0:020}.log").write_bytes(batch(0))
    process = subprocess.Popen(
        [sys.executable, "-m", "kraftline", "dump", "--follow", "--format", "jsonl", tmp_path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A shell lets what it starts in the background ignore Ctrl-C, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["offset"] == 0
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=10) == (b"", b"")
    assert process.returncode == 130


def cli(*args: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "kraftline", *map(str, args)], capture_output=True, check=False
    )


def batch(offset: int) -> bytes:
    return build_batch([Record(offset, 1000 + offset, b"key", b"value")], base_offset=offset)


def write_log(folder: Path, records: list[Record]) -> Path:
    log = folder / f"{0:020}.log"
    log.write_bytes(build_batch(records))
    return log
