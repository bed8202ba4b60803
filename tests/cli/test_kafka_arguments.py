"""Arguments of `format`: read as Kafka's tool (argparse4j) reads them, which is asked the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from kraftline.cli.format import command
from tests.fixtures.formatted.cases import DIRECTORY, Case
from tests.metadata.formatted import run_format
from tests.oracle.storage import StorageTool

VOTER = f"1@h:1:{DIRECTORY}"
# What `cluster.id` came to be in meta.properties; None is wrong use.
LINES: dict[tuple[str, ...], bytes | None] = {
    ("-t", "abc", "-s"): b"abc",
    ("-tabc", "-s"): b"abc",
    ("-t=abc", "-s"): b"abc",
    ("-st", "abc"): b"abc",
    ("-st=abc",): b"\\=abc",
    ("-gst", "abc"): b"abc",
    ("-t", "abc", "-t", "def", "-s", "-s"): b"def",
    ("-t", "abc", "-s", "--"): b"abc",
    ("-t", "", "-s"): b"",
    ("--cluster-id=", "-s"): b"",
    ("-t", "ü", "-s"): b"\xc3\xbc",
    # A value that begins with a dash must be tied to its option.
    ("-t", "-abc", "-s"): None,
    ("-t-abc", "-s"): b"-abc",
    ("--cluster-id=-abc", "-s"): b"-abc",
    ("-t", "-1", "-s"): b"-1",
    ("-t", "-5.5", "-s"): None,
    ("-t", "-", "-s"): b"-",
    ("-t", "--", "-s"): None,
    ("-t", "-s"): None,
    ("-t", "abc", "-s", "-f", "-x=1"): None,
    ("-t", "abc", "-I", "-s"): None,
    # The beginning of a long option stands for it.
    ("--clus", "abc", "--stand"): b"abc",
    ("--cl=abc", "--s"): b"abc",
    ("--c", "abc", "-s"): None,
    ("-t", "abc", "--i", VOTER): None,
    ("-t", "abc", "--in", VOTER): b"abc",
    ("-t", "abc", "--n"): b"abc",
    ("-t", "abc", "-s", "--r", "4.0", "--ig", "--f=group.version=0"): b"abc",
    ("-t", "abc", "--Standalone"): None,
    # Neither files nor flags with values.
    ("-t", "@/nowhere", "-s"): None,
    ("-t@/nowhere", "-s"): b"@/nowhere",
    ("-t", "abc", "--standalone=x"): None,
    ("-t", "abc", "-s", "extra"): None,
    ("-t", "abc", "-s", "--", "extra"): None,
    ("-t", "abc", "-s", ""): None,
    ("-t", "abc", "-sx"): None,
    ("-t", "abc", "-sN"): None,
    ("-t", "abc", "-s", "-r"): None,
    # Whichever comes first: help or what is wrong.
    ("-h",): b"help",
    ("--he",): b"help",
    ("-t", "abc", "-sh", "--bogus"): b"help",
    ("-s", "-N", "-h"): None,
}


def outcome(root: Path, code: int, refused: str | None) -> bytes | None:
    assert refused is None
    if code != 0:
        return None
    file = root / "data" / "meta.properties"
    if not file.exists():
        return b"help"
    (found,) = [line for line in file.read_bytes().splitlines() if line.startswith(b"cluster.id")]
    return found.removeprefix(b"cluster.id=")


@pytest.mark.parametrize("args", LINES, ids=" ".join)
def test_arguments_are_read_as_kafka_s_tool_reads_them(
    args: tuple[str, ...], tmp_path: Path
) -> None:
    done = run_format(Case("", args, cluster=None).arguments(tmp_path), tmp_path)
    assert outcome(tmp_path, done.code, done.refused) == LINES[args]


@pytest.fixture(scope="module")
def kafka() -> Iterator[StorageTool]:
    with StorageTool() as tool:
        yield tool


@pytest.mark.oracle
@pytest.mark.parametrize("args", LINES, ids=" ".join)
def test_kafka_s_tool_reads_them_so(
    args: tuple[str, ...], kafka: StorageTool, tmp_path: Path
) -> None:
    done = kafka.run(["format", *Case("", args, cluster=None).arguments(tmp_path)])
    assert outcome(tmp_path, done.code, done.refused) == LINES[args]


def test_a_file_of_arguments_stands_for_its_lines(tmp_path: Path) -> None:
    args = Case("", ("-g",)).arguments(tmp_path)
    (tmp_path / "args").write_text("\n".join([*args, "--standalone", ""]) + "\n")
    assert CliRunner().invoke(command, [f"@{tmp_path}/args"]).exit_code == 2  # the empty line
    (tmp_path / "args").write_text("\n".join([*args, "--standalone"]))
    assert CliRunner().invoke(command, [f"@{tmp_path}/args"]).exit_code == 0


def test_own_options_do_not_make_kafka_s_ambiguous(tmp_path: Path) -> None:
    """--co is Kafka's --config, not our --controller-listener; ours are written in full."""
    path = Case("").arguments(tmp_path)[1]
    done = CliRunner().invoke(command, ["--co", path, "-t", "x", "--no"])
    assert done.exit_code == 0, done.output
    assert CliRunner().invoke(command, ["--log-d", str(tmp_path / "y")]).exit_code == 2


def test_a_value_with_a_dash_is_told_how_to_be_written() -> None:
    done = CliRunner().invoke(command, ["-t", "-abc", "--log-dir", "x"])
    assert "if '-abc' is it, write --cluster-id=-abc" in done.output


def test_an_empty_cluster_id_is_remarked_upon(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, Case("", ("-t", "", "-s"), cluster=None).arguments(tmp_path))
    assert (done.exit_code, "--cluster-id is empty" in done.stderr) == (0, True)
