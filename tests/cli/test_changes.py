"""`kraftline changes` as a person or a program uses it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

from click.testing import CliRunner, Result

from kraftline.cli.main import verbs
from kraftline.schema import metadata as m
from kraftline.schema.types import Message
from tests.inspect.metadata_logs import ORDERS, VERSION, make_log, make_snapshot, partition, topic

FIXTURES = Path(__file__).parents[1] / "fixtures"
NODE = FIXTURES / "metadata_4_3" / "data" / "node-1"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(verbs, ["changes", *map(str, arguments)])


def move(number: int, leader: int) -> Message:
    return m.PartitionChangeRecord(partition_id=number, topic_id=ORDERS, leader=leader)


def test_the_story_of_a_cluster() -> None:
    result = run(NODE)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "2026-11-15"
    assert (
        "       122  22:27:32.128Z  leader of payments.v1_a-0 moved 3 -> 1 because broker 3 was "
        "fenced"
    ) in lines
    assert "committed for certain: up to offset 187; records above may not be" in lines
    assert "\x1b" not in result.stdout


def test_windows_and_filters() -> None:
    assert "orders created" not in run(NODE, "--since", "60").stdout
    until = run(NODE, "--since", "2026-11-15T22:27:06Z", "--until", "2026-11-15T22:27:06.5Z")
    assert [line for line in until.stdout.splitlines() if "created" in line] == [
        "        31  22:27:06.201Z  topic orders created: 3 partitions with 3 replicas; "
        "min.insync.replicas 2, retention.ms 1d"
    ]
    for line in run(NODE, "--topic", "orders", "--type", "leader").stdout.splitlines()[1:-3]:
        assert "leader" in line
        assert "orders-" in line
    assert "broker 2" in run(NODE, "--broker", "2", "--type", "broker").stdout


def test_what_nothing_is_ever_told_of_is_said_where_an_answer_is_empty() -> None:
    result = run(NODE, "--topic", "ordres", "--topic", "orders", "--type", "leadr")
    assert result.exit_code == 0
    assert result.stdout.startswith("No changes.\n")
    topic_said, kind_said = result.stderr.splitlines()
    assert topic_said == "kraftline: these files tell nothing of topic ordres, at any time"
    assert "nothing of kind leadr, at any time; there are: acl.added" in kind_said
    nothing = run(NODE, "--topic", "orders", "--until", "20", "--format", "jsonl")
    assert (nothing.exit_code, nothing.stdout, nothing.stderr) == (0, "", "")


def test_a_window_that_ends_before_it_begins_is_wrong_use() -> None:
    for since, until in (("290", "10"), ("2026-11-15T22:28Z", "2026-11-15T22:27Z")):
        result = run(NODE, "--since", since, "--until", until)
        assert result.exit_code == 2
        assert "the window ends before it begins" in result.stderr


def test_all_of_it() -> None:
    folded, everything = run(NODE).stdout, run(NODE, "--all").stdout
    assert len(everything.splitlines()) > 1.5 * len(folded.splitlines())
    assert "producer ids" not in folded


def test_for_programs() -> None:
    rows = [json.loads(line) for line in run(NODE, "--format", "jsonl").stdout.splitlines()]
    moved = next(row for row in rows if row["kind"] == "leader.moved" and row["offset"] == 122)
    assert moved == {
        "offset": 122,
        "time": 1794781652128,
        "kind": "leader.moved",
        "subject": "payments.v1_a-0",
        "text": "leader of payments.v1_a-0 moved 3 -> 1 because broker 3 was fenced",
        "before": 3,
        "after": 1,
        "because": "broker 3 was fenced",
        "topic": "payments.v1_a",
        "partition": 0,
        "brokers": [3, 1],
    }
    assert [row["offset"] for row in rows] == sorted(row["offset"] for row in rows)
    table = list(csv.DictReader(io.StringIO(run(NODE, "--format", "csv").stdout)))
    assert len(table) == len(rows)
    assert json.loads(run(NODE, "--format", "json", "--until", "0").stdout)[0]["offset"] == 0


def test_quick_starts_at_the_newest_snapshot() -> None:
    """Of this log the last snapshot ends at offset 188; those before it at 98 and 138."""

    def lines(*arguments: str) -> list[str]:
        return run(NODE, "--all", "--format", "jsonl", *arguments).stdout.splitlines()

    assert lines("--quick") == lines("--since", "188")
    assert lines("--until", "187", "--quick") == []
    assert lines("--until", "2026-11-15T22:27:45Z", "--quick") == lines(
        "--since", "138", "--until", "2026-11-15T22:27:45Z"
    )
    assert lines("--since", "100", "--quick") == lines("--since", "100")
    assert "as a restarting node would" in run(NODE, "--quick").stdout


def test_quick_believes_the_snapshot(tmp_path: Path) -> None:
    log = make_log(tmp_path, [VERSION, topic()], [partition(0)], [move(0, 2)])
    make_snapshot(log, 3, [VERSION, topic("other"), partition(0)])
    assert "leader of orders-0 moved 1 -> 2" in run(log, "--since", "3").stdout
    assert "leader of other-0 moved 1 -> 2" in run(log, "--since", "3", "--quick").stdout


def test_a_window_outside_is_wrong_use() -> None:
    result = run(NODE, "--since", "2030-01-01")
    assert result.exit_code == 2
    assert "these files know offsets 0 to 298" in result.stderr


def test_records_that_do_not_fit_are_told(tmp_path: Path) -> None:
    odd = m.RemoveTopicRecord()
    result = run(make_log(tmp_path, [VERSION], [odd], [topic()]))
    assert result.exit_code == 1
    assert "offset 1: a record does not fit" in result.stderr
    assert "topic orders created" in result.stdout
