"""`kraftline snapshot` as a person or a program uses it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kraftline.cli.main import verbs
from kraftline.errors import KraftlineError
from kraftline.storage.snapshot_file import SnapshotReader
from tests.inspect.damage import METADATA, copy

DIRECTORY = "JEXY6aqzQY-32P5TStzaFg"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(verbs, ["snapshot", *map(str, arguments)])


def test_write_says_what_it_wrote(tmp_path: Path) -> None:
    result = run("write", METADATA, "--as-of", "137", "--out", tmp_path)
    assert result.exit_code == 0
    assert "00000000000000000138-0000000001.checkpoint" in result.stdout
    assert "last record 137, 2026-11-15 22:27:39.882Z" in result.stdout
    assert "voters 1" in result.stdout
    assert "TOPIC_RECORD" in result.stdout


def test_another_name_is_allowed_and_kafkas_is_told(tmp_path: Path) -> None:
    file = tmp_path / "mine"
    result = run("write", METADATA, "--as-of", "137", "--out", file)
    assert "only under the name 00000000000000000138-0000000001.checkpoint" in result.stdout
    assert file.exists()


def test_an_older_release_needs_a_yes(tmp_path: Path) -> None:
    refused = run("write", METADATA, "--release-version", "3.9", "--out", tmp_path)
    assert isinstance(refused.exception, KraftlineError)
    assert "cordoned log directories" in str(refused.exception)
    assert list(tmp_path.iterdir()) == []
    accepted = run(
        "write", METADATA, "--release-version", "3.9", "--out", tmp_path, "--accept-loss"
    )
    assert accepted.exit_code == 0
    assert "Lost: the cordoned log directories of one or more brokers" in accepted.stdout
    assert "metadata.version 3.9-IV0" in accepted.stdout


def test_an_unknown_release_is_wrong_use(tmp_path: Path) -> None:
    assert run("write", METADATA, "--release-version", "9.9", "--out", tmp_path).exit_code == 2
    assert run("write", METADATA, "--as-of", "yesterday", "--out", tmp_path).exit_code == 2
    beyond = run("write", METADATA, "--as-of", "5000", "--out", tmp_path)
    assert beyond.exit_code == 2
    assert "these files know offsets 0 to 298" in beyond.stderr


def test_edit_prints_the_difference_in_words(tmp_path: Path) -> None:
    result = run(
        "edit",
        METADATA,
        "--delete-topic",
        "single",
        "--set-config",
        "topic:orders:retention.ms=86400000",
        "--out",
        tmp_path,
    )
    assert result.exit_code == 0, result.output
    assert "Different: topic single deleted" in result.stdout
    assert "retention.ms of topic orders" in result.stdout
    assert "1d" in result.stdout
    assert "00000000000000000299-0000000003.checkpoint" in result.stdout


def test_edit_for_programs(tmp_path: Path) -> None:
    arguments = ("edit", METADATA, "--delete-topic", "single", "--force", "--out", tmp_path)
    whole = json.loads(run(*arguments, "--format", "json").stdout)
    assert [change["kind"] for change in whole["changes"]] == ["topic.deleted"]
    assert whole["records"]["TOPIC_RECORD"] == 5
    lines = [json.loads(line) for line in run(*arguments, "--format", "jsonl").stdout.splitlines()]
    assert [line["row"] for line in lines] == ["change", "snapshot"]
    assert run(*arguments, "--format", "csv").stdout.startswith("kind,subject,text\ntopic.deleted,")


def test_write_for_programs(tmp_path: Path) -> None:
    arguments = ("write", METADATA, "--force", "--out", tmp_path)
    whole = json.loads(run(*arguments, "--format", "json").stdout)
    assert whole["id"] == {"end_offset": 299, "epoch": 2}
    with SnapshotReader(whole["path"]) as reader:
        assert sum(whole["records"].values()) == sum(1 for _ in reader.records())
    assert whole["voters_changed"] == []
    voters = ("--voters", f"1@127.0.0.1:9093:{DIRECTORY}")
    (said,) = json.loads(run(*arguments, *voters, "--format", "json").stdout)["voters_changed"]
    assert said.startswith("voter 1: ")
    assert "TOPIC_RECORD,6" in run(*arguments, "--format", "csv").stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("edit", "--delete-topic", "single"),
        ("write", "--voters", f"1@127.0.0.1:9093:{DIRECTORY}"),
        ("write", "--release-version", "4.2", "--accept-loss"),
    ],
)
def test_an_edited_snapshot_is_not_slipped_under_a_node(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    partition = copy(METADATA / "__cluster_metadata-0", tmp_path)
    before = sorted(path.name for path in partition.iterdir())
    refused = run(*arguments, partition, "--out", partition)
    assert "whatever its log says" in str(refused.exception)
    assert sorted(path.name for path in partition.iterdir()) == before


@pytest.mark.parametrize(
    "arguments",
    [(), ("--set-config", "nonsense"), ("--voters", "1@h"), ("--remove-broker", "x")],
)
def test_edits_that_make_no_sense_are_wrong_use(arguments: tuple[str, ...], tmp_path: Path) -> None:
    result = run("edit", METADATA, *arguments, "--out", tmp_path)
    assert result.exit_code == 2
    assert list(tmp_path.iterdir()) == []


def test_help_tells_how_a_cluster_starts_from_it() -> None:
    said = run("edit", "--help").stdout
    for word in ("Stop all nodes", "__cluster_metadata-0", "quorum-state", "Start the controllers"):
        assert word in said
