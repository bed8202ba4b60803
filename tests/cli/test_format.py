"""`kraftline format` and `kraftline random-uuid` as a person uses them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kraftline.cli.format import command
from kraftline.cli.random_uuid import command as random_uuid
from kraftline.errors import NotKafka
from kraftline.metadata.directories import WrongDirectory, check_directories
from kraftline.metadata.formatting import FormatRefused
from kraftline.storage.snapshot_file import SnapshotReader
from tests.fixtures.formatted.cases import CLUSTER, Case


def run(*args: object) -> Result:
    return CliRunner().invoke(command, [str(arg) for arg in args])


def test_random_uuid_prints_one_id() -> None:
    said = CliRunner().invoke(random_uuid).output
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}\n", said)


def test_without_a_file_a_standalone_node_is_formatted(tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in ("b", "a")]
    done = run("--log-dir", paths[0], "--log-dir", paths[1], "--node-id", 7)
    assert done.exit_code == 0, done.output
    cluster = re.search(r"^Cluster id: (\S{22})$", done.output, re.MULTILINE)
    assert cluster is not None
    check_directories(paths, paths[0], node_id=7, cluster_id=cluster[1])
    (snapshot,) = tmp_path.glob("b/__cluster_metadata-0/*.checkpoint")
    with SnapshotReader(snapshot) as reader:
        assert reader.kraft_version == 1
        assert reader.voters is not None
        (voter,) = reader.voters.voters
        assert (voter.voter_id, voter.endpoints[0].host, voter.endpoints[0].port) == (
            7,
            "localhost",
            9093,
        )


def test_listener_of_the_controller_can_be_given(tmp_path: Path) -> None:
    run("--log-dir", tmp_path, "--controller-listener", "ctrl://[::1]:99")
    (snapshot,) = tmp_path.glob("__cluster_metadata-0/*.checkpoint")
    with SnapshotReader(snapshot) as reader:
        assert reader.voters is not None
        (endpoint,) = reader.voters.voters[0].endpoints
        assert (endpoint.name, endpoint.host, endpoint.port) == ("CTRL", "0:0:0:0:0:0:0:1", 99)


def test_an_empty_cluster_id_is_wrong_use(tmp_path: Path) -> None:
    """As where a shell's $(kraftline random-uuid) came to nothing."""
    done = run("--log-dir", tmp_path / "a", "--cluster-id", "")
    assert (done.exit_code, "--cluster-id is empty" in done.stderr) == (2, True)
    assert not (tmp_path / "a").exists()


def test_formatting_twice_is_refused_and_can_be_ignored(tmp_path: Path) -> None:
    assert run("--log-dir", tmp_path / "a").exit_code == 0
    again = run("--log-dir", tmp_path / "a")
    assert isinstance(again.exception, FormatRefused)
    assert "/a is already formatted. Use --ignore-formatted" in str(again.exception)
    ignored = run("--log-dir", tmp_path / "a", "--ignore-formatted")
    assert ignored.output == "All of the log directories are already formatted.\n"


def test_new_disk_joins_the_cluster_of_the_others(tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in "ab"]
    run("--log-dir", paths[0])
    done = run("--log-dir", paths[0], "--log-dir", paths[1], "--ignore-formatted")
    assert f"Formatting data directory {paths[1]} " in done.output
    check_directories(paths, paths[0], node_id=1)


def test_directory_of_another_cluster_is_refused(tmp_path: Path) -> None:
    run("--log-dir", tmp_path, "-t", CLUSTER)
    done = run("--log-dir", tmp_path, "-t", "other", "-g")
    assert isinstance(done.exception, WrongDirectory)


def test_seed_is_printed_without_the_keys_of_users(tmp_path: Path) -> None:
    user = "SCRAM-SHA-256=[name=alice,password=secret]"
    done = run("--log-dir", tmp_path, "--release-version", "4.0", "--add-scram", user)
    assert (
        "Bootstrap metadata: metadata.version=25 (4.0-IV3), group.version=1, "
        "transaction.version=2, SCRAM-SHA-256 credential of alice\n" in done.output
    )
    assert "secret" not in done.output


@pytest.mark.parametrize(
    ("args", "advice"),
    [
        (("-r", "4.4"), "4.4 is not yet stable: unstable.feature.versions.enable=true allows it"),
        (("-r", "latest"), "a release such as 4.3 stands for its newest"),
        (("-f", "group.version=x"), "A level is a number, as in group.version=1"),
        (("-f", "share.version=9"), "levels 0 to 1 are supported"),
        (("-f", "metadata.version=99"), "use a newer Kraftline, or lower the feature first"),
        (("-f", "metadata.version=6"), "raise the feature there first"),
    ],
)
def test_unknown_level_comes_with_what_to_do(
    args: tuple[str, ...], advice: str, tmp_path: Path
) -> None:
    done = run("--log-dir", tmp_path / "a", *args)
    assert advice in str(done.exception)
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("-s", "-N"),
        ("-s", "-I", "1@h:1:JEXY6aqzQY-32P5TStzaFg"),
        ("-c", "server.properties"),
        ("-c", "server.properties", "-t", "x", "--node-id", "1"),
    ],
)
def test_wrong_use_is_told_apart(args: tuple[str, ...]) -> None:
    assert run(*args).exit_code == 2


def test_missing_configuration_file_is_named(tmp_path: Path) -> None:
    done = run("-c", tmp_path / "none.properties", "-t", CLUSTER, "-s")
    assert isinstance(done.exception, NotKafka)
    assert "none.properties: there is no such file" in str(done.exception)


def test_escapes_and_continued_lines_of_properties_are_read(tmp_path: Path) -> None:
    args = Case("x").arguments(tmp_path)
    path = tmp_path / "server.properties"
    text = path.read_text().replace("log.dirs=", "log.dirs: \\\n   ").replace("data", "d\\u0061ta")
    path.write_text("# a comment\n! another\n" + text)
    assert run(*args, "--standalone").exit_code == 0
    assert (tmp_path / "data" / "meta.properties").exists()
