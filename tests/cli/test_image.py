"""`kraftline image` as a person or a program uses it."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kraftline.cli.main import verbs
from kraftline.inspect.cluster.sections import COLUMNS, SECTIONS
from kraftline.schema import metadata as m
from tests.inspect.metadata_logs import VERSION, cluster, make_log, make_segment, topic, uuid

FIXTURES = Path(__file__).parents[1] / "fixtures"
NODE = FIXTURES / "metadata_4_3" / "data" / "node-1"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(verbs, ["image", *map(str, arguments)])


def test_a_cluster_at_a_glance() -> None:
    result = run(NODE)
    assert result.exit_code == 0
    for words in (
        "The cluster as of offset 298, 2026-11-15 22:28:52.603Z",
        "committed for certain: up to offset 187; records above may not be",
        "can be asked about offsets 0 to 298",
        "metadata.version",
        "Brokers (",
        "north",
        "Topics (",
        "orders",
        "Partitions in trouble (",
        "Configs (",
        "50s (50000)",
        "ACLs (",
        "SCRAM users (",
        "SCRAM-SHA-256",
    ):
        assert words in result.stdout, words
    assert "\x1b" not in result.stdout
    assert all(line == line.rstrip() for line in result.stdout.splitlines())


def test_a_transaction_that_is_open_there_is_told_of(tmp_path: Path) -> None:
    begin = m.BeginTransactionRecord(name="more topics")
    log = make_log(tmp_path, *cluster(), [begin], [topic("more", uuid(1))])
    result = run(log, "--section", "topics")
    assert result.exit_code == 0
    assert "Topics (1)" in result.stdout
    assert result.stderr == (
        "kraftline: offset 10: the metadata transaction 'more topics' that began at offset 9 is "
        "open there: none of its records counts\n"
    )
    assert run(log, "--as-of", "8").stderr == ""


def test_as_of_an_offset_and_a_time() -> None:
    before = run(NODE, "--as-of", "40", "--section", "topics").stdout
    assert "orders" in before
    assert "short-lived" not in before
    assert "short-lived" in run(NODE, "--as-of", "2026-11-15T22:27:09Z").stdout
    assert "short-lived" not in run(NODE, "--as-of", "2026-11-15T22:27:06.5Z").stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--as-of", "299"], "these files know offsets 0 to 298"),
        (["--as-of", "2020-01-01"], "these files know offsets 0 to 298"),
        (["--as-of", "yesterday"], "neither an offset"),
        (["--format", "csv"], "--section"),
        (["--format", "snapshot", "--section", "topics"], "leave --section out"),
        (["--format", "snapshot", "--tree"], "either it or --format snapshot"),
        (["--format", "json", "--tree"], "either it or --format json"),
        (["--section", "topics", "--tree"], "either it or --section"),
        (["--section", "nonsense"], "nonsense"),
    ],
)
def test_wrong_use(arguments: list[str], words: str) -> None:
    result = run(NODE, *arguments)
    assert result.exit_code == 2
    assert words in result.stderr


def test_not_kafkas(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nothing", NODE / "meta.properties", NODE / "orders-0"):
        assert run(path).exit_code == 2


def test_a_snapshot_under_another_name_has_no_offset(tmp_path: Path) -> None:
    (source,) = NODE.glob("__cluster_metadata-0/*188-*.checkpoint")
    result = run(shutil.copy(source, tmp_path / "copy"), "--section", "brokers")
    assert result.exit_code == 0
    first = "The cluster as of a snapshot that names no offset, 2026-11-15 22:28:04.882Z"
    assert result.stdout.startswith(first)


def test_for_programs() -> None:
    whole = json.loads(run(NODE, "--format", "json").stdout)
    assert whole["as_of"]["offset"] == 298
    assert whole["as_of"]["committed_below"] == 188
    assert whole["as_of"]["ranges"][0]["first_offset"] == 0
    lines = [json.loads(line) for line in run(NODE, "--format", "jsonl").stdout.splitlines()]
    assert {line["section"] for line in lines} >= {"brokers", "topics", "partitions", "acls"}
    assert len([line for line in lines if line["section"] == "brokers"]) == len(whole["brokers"])
    text = run(NODE, "--format", "csv", "--section", "partitions").stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == len(whole["partitions"])
    assert json.loads(rows[0]["replicas"]) == whole["partitions"][0]["replicas"]


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_is_a_csv_with_a_head_whether_it_has_rows_or_not(section: str) -> None:
    asked = ("--format", "csv", "--section", section)
    early, late = (run(NODE, "--as-of", at, *asked).stdout.splitlines() for at in ("0", "188"))
    assert early[0] == late[0] == ",".join(COLUMNS[section].split())
    # The first batch of a log is the quorum's, with kraft.version and the voters.
    assert len(early) == 1 or section in ("features", "voters")
    rows = json.loads(run(NODE, "--format", "json", *asked[2:]).stdout)[section]
    assert all(list(row) == COLUMNS[section].split() for row in rows)


def test_snapshot_lines() -> None:
    result = run(NODE, "--format", "snapshot")
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert lines[0] == {
        "type": "FEATURE_LEVEL_RECORD",
        "version": 0,
        "data": {"name": "metadata.version", "featureLevel": 30},
    }
    (scram, *_) = (line for line in lines if line["type"] == "USER_SCRAM_CREDENTIAL_RECORD")
    assert scram["data"]["salt"] == "[hidden]"
    shown = run(NODE, "--format", "snapshot", "--show-secrets").stdout
    assert "[hidden]" not in shown


def test_a_tree() -> None:
    lines = run(NODE, "--tree").stdout.splitlines()
    assert lines[0] == "image"
    assert "├── brokers" in lines
    assert any("salt: [hidden]" in line for line in lines)
    assert lines[-2] == "committed for certain: up to offset 187; records above may not be"
    assert lines[-1].startswith("can be asked about offsets 0 to 298")


def test_quick_says_so() -> None:
    assert "as a restarting node would" in run(NODE, "--quick").stdout


def test_several_nodes_are_one_cluster() -> None:
    result = run(FIXTURES / "metadata_4_3/data/node-2", NODE)
    assert result.exit_code == 0
    assert "as of offset 298" in result.stdout


def test_damage_is_told_and_is_exit_code_1(tmp_path: Path) -> None:
    path = make_segment(tmp_path, [[VERSION], [topic("t1", uuid(1))], [topic("t2", uuid(2))]])
    data = bytearray(path.read_bytes())
    data[data.find(b"t1")] = 0
    path.write_bytes(data)
    result = run(path)
    assert result.exit_code == 1
    assert "as of offset 0" in result.stdout
    assert "the checksum of a batch is wrong" in result.stderr
    assert "no snapshot bridges that" in result.stderr


def test_an_empty_section_is_said(tmp_path: Path) -> None:
    result = run(make_log(tmp_path, *cluster()), "--section", "acls")
    assert result.stdout.endswith("ACLs (0)\n  none\n")


@pytest.mark.parametrize("verb", ["image", "diff", "changes", "why"])
def test_help_has_examples(verb: str) -> None:
    result = CliRunner().invoke(verbs, [verb, "--help"])
    assert result.exit_code == 0
    assert "Examples:" in result.stdout
    assert f"kraftline {verb}" in result.stdout


def test_heavy_modules_are_left_alone() -> None:
    code = (
        "import sys; import kraftline.cli.image, kraftline.inspect.history; "
        "import kraftline.inspect.cluster.text; "
        "print([n for n in ('rich', 'pyarrow', 'javaproperties', 'kraftline.schema.api') "
        "if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
