"""Directories that a node must not start with, or may: real Kafka is asked the same."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from kraftline.cli.format import command
from kraftline.config.effective import read_config
from kraftline.config.node_settings import node_settings
from kraftline.metadata.directories import WrongDirectory
from kraftline.node.directories import take_directories
from kraftline.storage.checkpoints import RECOVERY_POINTS
from tests.another_user import another_user, open_directory
from tests.node.running import READY, OurNode
from tests.oracle.kafka import KraftCluster, NodeSpec

CLUSTER = "kraftlineoracleclustrA"
SEED = "bootstrap.checkpoint"
RESERVED = "AAAAAAAAAAAAAAAAAAAAAQ"


@dataclass(frozen=True)
class Case:
    """Two formatted directories, the first with the metadata log, are changed by `change`. What is
    refused must be told with `words`; None where the node starts. `kafka_starts` where we are
    stricter: on bytes that are not what was written."""

    name: str
    change: Callable[[Path, Path], object]
    words: str | None = None
    kafka_starts: bool = False


def meta(folder: Path) -> Path:
    return folder / "meta.properties"


def change(pattern: str, text: str, *folders: Path) -> None:
    for folder in folders:
        changed = re.sub(pattern, text, meta(folder).read_text(), flags=re.M)
        meta(folder).write_text(changed)


def clear(*folders: Path) -> None:
    for folder in folders:
        shutil.rmtree(folder)
        folder.mkdir()


def gone(*folders: Path) -> None:
    for folder in folders:
        shutil.rmtree(folder)


def no_seed(*folders: Path) -> None:
    for folder in folders:
        (folder / SEED).unlink()


def copied_id(a: Path, b: Path) -> None:
    (found,) = re.findall(r"^directory\.id=(.*)$", meta(a).read_text(), re.M)
    change(r"^directory\.id=.*", f"directory.id={found}", b)


def zookeeper(*folders: Path) -> None:
    change(r"^version=1", "version=0", *folders)
    change(r"^node\.id", "broker.id", *folders)


def a_file(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("")


def cut(file: Path, at: int) -> None:
    file.write_bytes(file.read_bytes()[:at])


def flip(file: Path, at: int) -> None:
    data = bytearray(file.read_bytes())
    data[at] ^= 255
    file.write_bytes(data)


CASES = (
    Case("all as it should be", lambda a, b: None),
    Case(
        "nothing is formatted",
        clear,
        "No readable meta.properties .*kraftline format",
    ),
    Case(
        "nothing is there",
        gone,
        "No readable meta.properties",
    ),
    Case(
        "the second is not formatted",
        lambda a, b: clear(b),
        "No `meta.properties` found in log directory {b}.*format",
    ),
    Case(
        "the second is not there",
        lambda a, b: shutil.rmtree(b),
        "No `meta.properties` found in log directory {b}",
    ),
    Case(
        "the metadata log's is not formatted",
        lambda a, b: clear(a),
        "No `meta.properties` found in metadata log directory {a}",
    ),
    Case(
        "the second has a seed but no meta.properties",
        lambda a, b: meta(b).unlink(),
        "No `meta.properties` found in log directory {b}",
    ),
    Case("no seed", no_seed),
    Case(
        "interrupted write of meta.properties",
        lambda a, b: (b / "meta.properties.tmp").write_text("half"),
    ),
    Case(
        "another node's",
        lambda a, b: change("^node.id=1", "node.id=2", a, b),
        "Stored node id 2 doesn't match previous node id 1 in {a}/meta.properties",
    ),
    Case(
        "the second is another node's",
        lambda a, b: change("^node.id=1", "node.id=2", b),
        "Stored node id 2 .* 1 in {b}/meta.properties",
    ),
    Case("another cluster's", lambda a, b: change("^cluster.id=.*", "cluster.id=other", a, b)),
    Case(
        "the second is another cluster's",
        lambda a, b: change("^cluster.id=.*", "cluster.id=other", b),
        f"Invalid cluster.id in: {{b}}/meta.properties. Expected {CLUSTER}, but read other",
    ),
    Case("an empty cluster id", lambda a, b: change("^cluster.id=.*", "cluster.id=", a, b)),
    Case("the second is a copy", copied_id, "Duplicate directory ID .* {a}.* {b}"),
    Case(
        "the second has a reserved id",
        lambda a, b: change("^directory.id=.*", f"directory.id={RESERVED}", b),
        f"Invalid reserved directory ID {RESERVED} found in {{b}}",
    ),
    Case("the second has no id yet", lambda a, b: change("^directory.id=.*\n", "", b)),
    Case(
        "the second has an id that is none",
        lambda a, b: change("^directory.id=.*", "directory.id=x", b),
    ),
    Case("the second has an unknown version", lambda a, b: change("^version=1", "version=7", b)),
    Case(
        "the metadata log's has an unknown version",
        lambda a, b: change("^version=1", "version=7", a),
        "metadata log directory {a}",
    ),
    Case("the second has no node id", lambda a, b: change("^node.id=.*\n", "", b)),
    Case("the second has no cluster id", lambda a, b: change("^cluster.id=.*\n", "", b)),
    Case(
        "the metadata log's has no cluster id",
        lambda a, b: change("^cluster.id=.*\n", "", a),
        "metadata log directory {a}",
    ),
    Case(
        "the second is empty of properties",
        lambda a, b: meta(b).write_text(""),
        "there is no broker.id in {b}/meta.properties",
    ),
    Case("the second is of a ZooKeeper broker", lambda a, b: zookeeper(b)),
    Case("both are of a ZooKeeper broker", zookeeper),
    Case("the second is a file", lambda a, b: a_file(b)),
    Case("the metadata log's is a file", lambda a, b: a_file(a), "metadata log directory {a}"),
    Case(
        "the second has a metadata log too",
        lambda a, b: (b / "__cluster_metadata-0").mkdir(),
        "unexpected metadata location in data directory `{b}`",
    ),
    Case(
        "the seed is cut",
        lambda a, b: cut(a / SEED, 100),
        "{a}/bootstrap.checkpoint, position 83: the snapshot does not end",
    ),
    Case(
        "the seed has lost its last byte",
        lambda a, b: cut(a / SEED, -1),
        "{a}/bootstrap.checkpoint, .*does not end",
        kafka_starts=True,
    ),
    Case(
        "the seed has a wrong checksum",
        lambda a, b: flip(a / SEED, 120),
        "{a}/bootstrap.checkpoint, position 83, .*the checksum",
        kafka_starts=True,
    ),
    Case(
        "no voters",
        lambda a, b: shutil.rmtree(a / "__cluster_metadata-0"),
        "{a}/__cluster_metadata-0: nobody has a vote.*--standalone",
    ),
    Case(
        "the metadata log's has no id yet",
        lambda a, b: change("^directory.id=.*\n", "", a),
        "{a}/__cluster_metadata-0: the voters are 1 in directory",
    ),
    Case(
        "the metadata log's has another id",
        lambda a, b: change("^directory.id=.*", "directory.id=JEXY6aqzQY-32P5TStzaFg", a),
        "{a}/__cluster_metadata-0: the voters are 1 in directory .* JEXY6aqzQY-32P5TStzaFg",
    ),
    Case("the seed of the second is cut", lambda a, b: (b / SEED).write_bytes(b"x")),
    Case(
        "the seed is empty",
        lambda a, b: (a / SEED).write_bytes(b""),
        "{a}/bootstrap.checkpoint, position 0: there is no whole batch",
    ),
)


def ours(root: Path, case: Case) -> tuple[bool, str]:
    node = OurNode(root, log_dirs=2)
    formatted(node.configure())
    case.change(*node.log_dirs)
    node.launch()
    try:
        while node.is_running():
            if READY.search(node.output()):
                return True, node.output()
            time.sleep(0.02)
        return False, node.output()
    finally:
        node.kill()


def theirs(root: Path, case: Case) -> tuple[bool, str]:
    nodes = [NodeSpec(1, log_dirs=2)]
    cluster = KraftCluster(root, nodes, dynamic=True)
    formatted(cluster.configure(1))
    case.change(cluster.data(1), cluster.data(1, 1))
    server = cluster.launch(1)
    try:
        deadline = time.monotonic() + 40
        while server.running() and time.monotonic() < deadline:
            if "Kafka Server started" in server.output():
                return True, server.output()
            time.sleep(0.1)
        return False, server.output()
    finally:
        server.kill()


def formatted(file: Path) -> None:
    done = CliRunner().invoke(command, ["-t", CLUSTER, "-c", str(file), "--standalone"])
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_node_says_which_directory_is_wrong_and_how(case: Case, tmp_path: Path) -> None:
    started, said = ours(tmp_path, case)
    assert started == (case.words is None), said
    if case.words is not None:
        a, b = (re.escape(str(tmp_path / name)) for name in ("data", "data-2"))
        assert re.search(case.words.replace("{a}", a).replace("{b}", b), said, re.S), said


@pytest.mark.oracle
@pytest.mark.soak
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_kafka_starts_with_the_same_ones(case: Case, tmp_path: Path) -> None:
    started, said = theirs(tmp_path, case)
    assert started == (case.words is None or case.kafka_starts), said


def test_a_directory_that_became_read_only_is_offline_and_a_new_one_is_refused() -> None:
    """So does real Kafka, asked with a read-only file system: it cannot make the checkpoints of a
    directory that nobody used before."""
    with open_directory() as root:
        node = OurNode(root, log_dirs=2)
        formatted(node.configure())
        config = read_config(root / "server.properties")
        second = node.log_dirs[1]
        second.chmod(0o555)
        node.data.chmod(0o777)
        with another_user(), ExitStack() as held, pytest.raises(WrongDirectory) as refused:
            take_directories(node_settings(config), held)
        assert re.match(
            f"{second} cannot be written to, .*take it out of log.dirs", str(refused.value)
        )
        (second / RECOVERY_POINTS).write_text("0\n0\n")
        (node.data / ".lock").unlink(missing_ok=True)
        with another_user(), ExitStack() as held:
            assert list(take_directories(node_settings(config), held).unreadable) == [str(second)]
