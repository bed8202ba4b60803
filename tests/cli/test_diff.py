"""`kraftline diff` as a person or a program uses it."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner, Result

from kraftline.cli.main import verbs

FIXTURES = Path(__file__).parents[1] / "fixtures"
NODE = FIXTURES / "metadata_4_3" / "data" / "node-1"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(verbs, ["diff", *map(str, arguments)])


def test_what_is_different() -> None:
    result = run(NODE, "30", "60")
    assert result.exit_code == 0
    assert result.stdout.startswith("From offset 30 to offset 60\n")
    assert "topic orders created: 4 partitions with 3 replicas" in result.stdout
    assert "cleanup.policy compact" in result.stdout


def test_back_in_time() -> None:
    assert "topic orders deleted" in run(NODE, "60", "30").stdout


def test_no_difference() -> None:
    assert "No difference." in run(NODE, "60", "60").stdout
    assert run(NODE, "60", "60", "--format", "jsonl").stdout == ""


def test_a_transaction_that_is_open_there_is_told_of() -> None:
    result = run(NODE, "2", "5")
    assert result.exit_code == 0
    assert "No difference." in result.stdout
    assert "'Bootstrap records' that began at offset 3 is open there" in result.stderr


def test_for_programs() -> None:
    result = run(NODE, "30", "2026-11-15T22:27:20Z", "--format", "jsonl")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    kinds = {row["kind"] for row in rows}
    assert {"topic.created", "config.set", "scram.set", "acl.added"} <= kinds
    assert "offset" not in rows[0]
    assert json.loads(run(NODE, "0", "1", "--format", "json").stdout) == []


def test_several_nodes() -> None:
    result = run(FIXTURES / "metadata_4_3/data/node-2", NODE, "30", "298")
    assert result.exit_code == 0
    assert "to offset 298" in result.stdout


def test_wrong_use() -> None:
    assert run(NODE, "30").exit_code == 2
    assert run(NODE, "30", "soon").exit_code == 2
    outside = run(NODE, "30", "5000")
    assert outside.exit_code == 2
    assert "these files know offsets 0 to 298" in outside.stderr
