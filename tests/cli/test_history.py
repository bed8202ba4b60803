"""`kraftline history as-of|diff|changes|health` as a person or a program uses them."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kraftline.cli.main import verbs
from kraftline.inspect.cluster.layout import Pen
from kraftline.inspect.cluster.sections import View
from kraftline.inspect.cluster.text import image_text
from kraftline.inspect.history import open_history
from kraftline.lake import builds
from kraftline.lake.commit import writing_to
from tests.fixture_files import FIXTURES
from tests.lake.lakes import covered, rows_of_log, span, write_lake

NODE = FIXTURES / "metadata_4_3" / "data" / "node-1"


def run(verb: str, *arguments: str | Path) -> Result:
    return CliRunner().invoke(verbs, ["history", verb, *map(str, arguments)])


def on_files(*arguments: str | Path) -> Result:
    return CliRunner().invoke(verbs, [*map(str, arguments)])


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("lakes") / "one"
    write_lake(root, rows_of_log(NODE, "A"))
    return root


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two clusters with one log."""
    root = tmp_path_factory.mktemp("lakes") / "fleet"
    one, other = rows_of_log(NODE, "A"), rows_of_log(NODE, "B")
    write_lake(root, {name: [*one[name], *other[name]] for name in one})
    return root


def test_the_cluster_at_a_glance_is_that_of_image(lake: Path) -> None:
    result = run("as-of", lake)
    assert result.exit_code == 0
    # A lake has no table of voters, which are in control records.
    history = open_history([str(NODE)])
    lines = image_text(View(history.image()), history, Pen(False))
    assert result.stdout.splitlines() == ["Cluster A", *lines]
    before = run("as-of", lake, "--at", "40").stdout
    assert "as of offset 40" in before
    assert "short-lived" not in before


@pytest.mark.parametrize("offset", ["13", "100", "188", "298"])
def test_snapshot_records_are_those_of_image(lake: Path, offset: str) -> None:
    result = run("as-of", lake, "--at", offset, "--format", "snapshot")
    assert result.exit_code == 0
    expected = on_files("image", NODE, "--as-of", offset, "--format", "snapshot")
    assert result.stdout == expected.stdout
    assert result.stdout


def test_a_snapshot_says_what_it_hides(lake: Path) -> None:
    result = run("as-of", lake, "--format", "snapshot")
    assert "hidden, since a lake has none: salts and keys of SCRAM users" in result.stderr
    assert "[hidden]" in result.stdout


def test_a_table_for_people(lake: Path) -> None:
    result = run("as-of", lake, "partitions", "--at", "100", "--topic", "orders")
    assert result.exit_code == 0
    head, *rows = result.stdout.splitlines()
    assert head.split()[:3] == ["topic", "partition", "leader"]
    assert [row.split()[:3] for row in rows] == [
        ["orders", "0", "1"],
        ["orders", "1", "2"],
        ["orders", "2", "3"],
        ["orders", "3", "2"],
    ]
    assert run("as-of", lake, "partitions", "--topic", "nothing").stdout == "none\n"


def test_formats_for_programs(lake: Path) -> None:
    said = {
        form: run("as-of", lake, "topics", "--at", "100", "--format", form).stdout
        for form in ("json", "jsonl", "csv")
    }
    rows = json.loads(said["json"])
    assert [json.loads(line) for line in said["jsonl"].splitlines()] == rows
    read = list(csv.DictReader(io.StringIO(said["csv"])))
    assert [row["topic"] for row in read] == [row["topic"] for row in rows]
    assert rows[0]["valid_from_time"].endswith("Z")
    assert rows[0]["cluster_id"] == "A"
    assert {row["committed"] for row in read} <= {"true", "false"}  # as in JSON
    nothing = run("as-of", lake, "topics", "--topic", "x", "--format", "csv").stdout
    assert nothing.startswith("cluster_id,topic,")


def test_every_table_at_once(lake: Path) -> None:
    whole = json.loads(run("as-of", lake, "--at", "100", "--format", "json").stdout)
    assert whole["as_of"] == [{"cluster_id": "A", "offset": 100, "time": None}]
    topics = json.loads(run("as-of", lake, "topics", "--at", "100", "--format", "json").stdout)
    assert whole["topics"] == topics
    lines = run("as-of", lake, "--at", "100", "--format", "jsonl").stdout.splitlines()
    found = [json.loads(line) for line in lines]
    assert [row for row in found if row.pop("table") == "topics"] == topics


def test_difference_in_words_is_that_of_the_files(lake: Path) -> None:
    result = run("diff", lake, "40", "250")
    assert result.exit_code == 0
    expected = on_files("diff", NODE, "40", "250").stdout
    assert result.stdout.strip() == expected[: expected.index("\ncommitted for certain")].strip()
    rows = json.loads(run("diff", lake, "40", "250", "--format", "json").stdout)
    assert {row["cluster_id"] for row in rows} == {"A"}
    only = run("diff", lake, "40", "250", "--topic", "single").stdout
    assert "topic single created" in only
    assert "broker" not in only
    assert "No difference." in run("diff", lake, "40", "40").stdout


def test_difference_as_rows(lake: Path) -> None:
    result = run("diff", lake, "40", "298", "--table", "configs", "--topic", "orders")
    assert "retention.ms" in result.stdout
    text = run("diff", lake, "40", "298", "--table", "configs", "--format", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    gone = next(row for row in rows if row["name"] == "retention.ms")
    assert (gone["change"], gone["before_value"]) == ("removed", "86400000")


def test_a_cluster_that_is_known_at_one_moment_only_is_not_compared(tmp_path: Path) -> None:
    """Nothing of it was added: the log that the lake has begins between the two."""
    begun = {"A": 0, "B": 20, "C": 20}
    topics = [
        {"cluster_id": each, "topic": each, "topic_id": each, **span(first)}
        for each, first in begun.items()
    ]
    rows = [covered(each, first, 29) for each, first in begun.items()]
    write_lake(tmp_path, {"topics": topics, "coverage": rows})
    asked = ("1970-01-01T00:00:10Z", "1970-01-01T00:00:25Z", "--table", "topics")
    result = run("diff", tmp_path, *asked, "--format", "json")
    assert (result.exit_code, result.stdout) == (0, "[]\n")
    assert "cluster B is left out" in result.stderr
    neither = run("diff", tmp_path, *asked, "--cluster", "B", "--cluster", "C")
    assert (neither.exit_code, neither.stdout) == (2, "")


def test_changes_read_as_those_of_the_files(lake: Path) -> None:
    window = ("--since", "255", "--until", "277")
    result = run("changes", lake, *window, "--all")
    assert result.exit_code == 0
    expected = on_files("changes", NODE, *window).stdout
    assert [line for line in result.stdout.splitlines() if "Z  broker" in line] == [
        line for line in expected.splitlines() if "Z  broker" in line
    ]
    kinds = run("changes", lake, "--type", "topic.created", "--format", "jsonl").stdout
    assert {json.loads(line)["kind"] for line in kinds.splitlines()} == {"topic.created"}


def test_health_for_people_and_programs(lake: Path) -> None:
    result = run("health", lake, "--topic", "single")
    assert "offline" in result.stdout
    assert "single-0" in result.stdout
    assert "7.9s" in result.stdout
    rows = json.loads(run("health", lake, "--type", "offline", "--format", "json").stdout)
    assert {row["kind"] for row in rows} == {"offline"}


def test_beyond_the_end(lake: Path) -> None:
    result = run("as-of", lake, "topics", "--at", "9999")
    assert result.exit_code == 0
    assert result.stdout == run("as-of", lake, "topics").stdout
    assert "offset 9999 is beyond the last that is known, 298" in result.stderr


def test_many_clusters(fleet: Path) -> None:
    result = run("as-of", fleet, "--at", "2026-11-15T22:28:00Z")
    assert result.exit_code == 0
    assert "Cluster A\n" in result.stdout
    assert "Cluster B\n" in result.stdout
    table = run("as-of", fleet, "topics", "--at", "2026-11-15T22:28:00Z").stdout
    assert table.splitlines()[0].startswith("cluster id")
    one = run("as-of", fleet, "topics", "--at", "100", "--cluster", "B", "--format", "json")
    assert {row["cluster_id"] for row in json.loads(one.stdout)} == {"B"}
    assert "Cluster B" in run("changes", fleet).stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("topics", "--at", "100"), "this lake has 2: A, B"),
        (("topics", "--cluster", "C"), "has no cluster C"),
        (("topics", "--at", "2020-01-01T00:00Z"), "cannot be answered for"),
        (("--format", "snapshot"), "choose one of A, B by --cluster"),
        (("--format", "csv"), "prints one table"),
        (("acls", "--broker", "1"), "acls has no brokers"),
        (("--topic", "x"), "name one"),
        (("topics", "--at", "noon"), "neither an offset"),
        (("nonsense",), "is not one of"),
    ],
)
def test_questions_without_an_answer(fleet: Path, arguments: tuple[str, ...], words: str) -> None:
    result = run("as-of", fleet, *arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("as-of", "partitions", "--topic", "no-such"),
            ["partitions has nothing of topic no-such"],
        ),
        (("as-of", "partitions", "--broker", "99"), ["partitions has nothing of broker 99"]),
        (("changes", "--type", "leadr"), ["changes has nothing of kind leadr", "leader.moved"]),
        (("health", "--type", "off"), ["health has nothing of kind off", "under-replicated"]),
    ],
)
def test_an_empty_answer_says_which_name_the_lake_never_heard_of(
    lake: Path, arguments: tuple[str, ...], said: list[str]
) -> None:
    verb, *rest = arguments
    result = run(verb, lake, *rest)
    assert result.exit_code == 0
    assert result.stdout == "none\n"
    assert all(words in result.stderr for words in said)


def test_an_empty_answer_about_what_is_known_says_no_more(lake: Path) -> None:
    result = run("changes", lake, "--type", "topic", "--until", "0")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "none\n", "")


@pytest.mark.parametrize("verb", ["changes", "health"])
@pytest.mark.parametrize(
    ("since", "until"), [("20", "10"), ("2026-11-15T22:30Z", "2026-11-15T22:20Z")]
)
def test_a_window_that_ends_before_it_begins_is_wrong_use(
    lake: Path, verb: str, since: str, until: str
) -> None:
    result = run(verb, lake, "--since", since, "--until", until)
    assert result.exit_code == 2
    assert "since is after until" in result.stderr


@pytest.mark.parametrize("verb", ["changes", "health"])
def test_a_window_may_reach_as_far_as_a_calendar(lake: Path, verb: str) -> None:
    window = ("--since", "0001-01-01T00:00Z", "--until", "9999-12-31T23:59:59.999Z")
    result = run(verb, lake, *window, "--format", "json")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == run(verb, lake, "--format", "json").stdout


def test_what_could_not_be_read_is_listed_whole(tmp_path: Path) -> None:
    """Also where nothing could be, and no moment has an answer."""
    rows = [
        {"cluster_id": cluster, "file": f"{cluster}.log", "kind": "damage", "reason": "magic 7"}
        for cluster in ("A", "B")
    ]
    write_lake(tmp_path, {"quarantine": rows, "coverage": []})
    lines = run("as-of", tmp_path, "quarantine").stdout.splitlines()
    assert [line.split()[:3] for line in lines[1:]] == [
        ["A", "damage", "A.log"],
        ["B", "damage", "B.log"],
    ]
    only = run("as-of", tmp_path, "quarantine", "--cluster", "B", "--format", "json")
    assert [row["file"] for row in json.loads(only.stdout)] == ["B.log"]
    assert "has no cluster C" in run("as-of", tmp_path, "quarantine", "--cluster", "C").stderr
    at = run("as-of", tmp_path, "quarantine", "--at", "5")
    assert at.exit_code == 2
    assert "leave --at out" in at.stderr


def test_offsets_in_a_gap_name_the_nearest(tmp_path: Path) -> None:
    topic = {"cluster_id": "A", "topic": "a", "topic_id": "id", **span(0)}
    rows = [covered("A", 0, 9), covered("A", 10, 19, leg=None, how="gap")]
    write_lake(tmp_path, {"topics": [topic], "coverage": [*rows, covered("A", 20, 29, leg=1)]})
    result = run("as-of", tmp_path, "topics", "--at", "15")
    assert result.exit_code == 2
    assert "the nearest offsets that can are 9 and 20" in result.stderr
    assert "offsets 10 to 19" in run("health", tmp_path).stderr


@pytest.mark.parametrize("verb", ["as-of", "changes", "health"])
def test_what_is_no_lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    assert "no such folder" in run(verb, tmp_path / "x").stderr
    assert run(verb, tmp_path).exit_code == 2
    assert "not a lake" in run(verb, tmp_path).stderr
    with writing_to(str(tmp_path)):
        pass
    assert "nothing has been built yet" in run(verb, tmp_path).stderr
    other = tmp_path / "other"
    monkeypatch.setattr(builds, "LAYOUT", 99)
    write_lake(other, {"coverage": [covered("A", 0, 9)]})
    monkeypatch.undo()
    assert "a lake of layout 99" in run(verb, other).stderr


def test_help_has_examples() -> None:
    for verb in ("as-of", "diff", "changes", "health"):
        result = run(verb, "--help")
        assert result.exit_code == 0
        assert f"kraftline history {verb} lake" in result.stdout


def test_a_question_loads_neither_spark_nor_pandas(lake: Path) -> None:
    code = (
        "import sys\n"
        "from kraftline.cli.main import verbs\n"
        f"verbs(['history', 'as-of', {str(lake)!r}, 'topics', '--format', 'json'], "
        "standalone_mode=False)\n"
        "loaded = {'pyspark', 'pandas', 'pyarrow.dataset', 'kraftline.inspect.history'}\n"
        "sys.exit(', '.join(loaded & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
