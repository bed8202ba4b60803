"""`kraftline why` as a person or a program uses it."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner, Result

from kraftline.cli.main import verbs

FIXTURES = Path(__file__).parents[1] / "fixtures"
NODE = FIXTURES / "metadata_4_3" / "data" / "node-1"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(verbs, ["why", *map(str, arguments)])


def test_the_story_of_a_partition() -> None:
    result = run("orders-1", "--in", NODE, "--at", "2026-11-15T22:27:45Z")
    assert result.exit_code == 0
    assert "leader of orders-1 moved 2 -> 1 because broker 2 was fenced" in result.stdout
    assert "At offset 1" in result.stdout
    assert "orders-1 is led by 1" in result.stdout
    assert "Broker 2 is fenced since 2026-11-15 22:27:43.066Z (offset 147)." in result.stdout
    assert "\x1b" not in result.stdout


def test_for_programs() -> None:
    whole = json.loads(run("orders-1", "--in", NODE, "--at", "150", "--format", "json").stdout)
    assert whole["partition"] == "orders-1"
    assert whole["state"]["leader"] == 1
    assert whole["events"][0]["kind"] == "topic.created"
    lines = run("orders-1", "--in", NODE, "--at", "150", "--format", "jsonl").stdout.splitlines()
    assert len(lines) == len(whole["events"])


def test_quick_starts_at_the_newest_snapshot() -> None:
    asked = ("orders-1", "--in", NODE, "--format", "json")
    whole, quick = (json.loads(run(*asked, *rest).stdout) for rest in ([], ["--quick"]))
    assert quick["state"] == whole["state"]
    # Its snapshots end at offsets 98, 138 and 188.
    assert quick["events"] == [event for event in whole["events"] if event["offset"] >= 188]
    earlier = json.loads(run(*asked, "--at", "150", "--quick").stdout)["events"]
    assert earlier == [each for each in whole["events"] if 138 <= each["offset"] <= 150]
    assert "as a restarting node would" in run("orders-1", "--in", NODE, "--quick").stdout


def test_wrong_use() -> None:
    for arguments, words in (
        (["orders", "--in", NODE], "is not a partition"),
        (["order-0", "--in", NODE], "did you mean orders?"),
        (["orders-99", "--in", NODE], "orders has partitions 0 to 3"),
        (["orders-0"], "--in"),
        (["orders-0", "--in", NODE, "--at", "2030-01-01"], "these files know"),
        (["orders-0", "--in", "/nowhere"], "no such file"),
    ):
        result = run(*arguments)
        assert result.exit_code == 2, arguments
        assert words in result.stderr
