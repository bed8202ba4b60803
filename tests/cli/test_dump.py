"""`kraftline dump` as a person or a program uses it."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kraftline.inspect.dump.payloads import known_types
from kraftline.inspect.dump.text import Painter
from kraftline.records.record import Record
from kraftline.records.write import build_batch
from kraftline.schema.metadata.frame import encode_record
from kraftline.schema.metadata.topic_record import TopicRecord
from kraftline.schema.uuids import ZERO
from tests.cli.dumping import METADATA, TOPICS, batch, cli, rows, run, write_log


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


@pytest.mark.parametrize("form", ["table", "json", "jsonl", "csv"])
def test_a_topic_that_nothing_is_known_of_is_said(form: str) -> None:
    done = run(TOPICS, "--topic", "mixd", "--format", form)
    assert done.exit_code == 0
    assert "no partition of mixd is here" in done.stderr
    known = run(TOPICS, "--topic", "mixed", "--since", "2099-01-01T00:00Z", "--format", form)
    assert (known.exit_code, known.stderr) == (0, "")


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


def test_a_key_that_is_text_like_0x_is_found_too(tmp_path: Path) -> None:
    log = write_log(
        tmp_path, [Record(n, 1, key, None) for n, key in enumerate([b"0xbeef", b"0xb"])]
    )
    assert [row["offset"] for row in rows(log, "--key", "0xbeef")] == [0]
    assert [row["offset"] for row in rows(log, "--key", "0xb")] == [1]


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
    # And so is one of its segments.
    assert all("payload" in row for row in rows(min((tmp_path / name).glob("*.log"))))


def test_a_type_that_nothing_there_can_have_is_wrong_use(tmp_path: Path) -> None:
    log = write_log(tmp_path, [Record(0, 1000, b"k", b"v")])
    result = run(log, "--type", "TOPIC_RECORD")
    assert result.exit_code == 2
    assert "--decoder" in result.stderr
    assert rows(log, "--type", "ABORT") == []
    renamed = Path(shutil.copy(min(METADATA.glob("*.log")), tmp_path / "renamed.bin"))
    assert rows(renamed, "--type", "TOPIC_RECORD", "--decoder", "metadata")


def test_all_formats_hold_the_same_records() -> None:
    path = TOPICS / "__consumer_offsets-0"
    lines = rows(path)
    assert json.loads(run(path, "--format", "json").stdout) == lines
    table = list(csv.DictReader(io.StringIO(run(path, "--format", "csv").stdout)))
    assert [int(row["offset"]) for row in table] == [row["offset"] for row in lines]
    assert json.loads(table[0]["keyPayload"]) == lines[0]["keyPayload"]
    assert [json.loads(row["isControl"]) for row in table] == [row["isControl"] for row in lines]
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


def test_files_beside_each_other_keep_their_own_types(tmp_path: Path) -> None:
    snapshot = shutil.copy(METADATA.parent / "bootstrap.checkpoint", tmp_path)
    log = write_log(tmp_path, [Record(0, 1000, b"k", b"v")])
    assert "FEATURE_LEVEL_RECORD v0" in run(snapshot, log).stdout
