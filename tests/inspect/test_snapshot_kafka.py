"""Real Kafka reads the snapshots that are written and edited here, and starts from them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from click.testing import CliRunner, Result

from kraftline.cli.main import verbs
from kraftline.storage.meta_properties import read_meta_properties
from kraftline.storage.snapshot_file import SnapshotReader
from tests.inspect.damage import FIXTURES, copy
from tests.metadata.replaying import digest
from tests.oracle.driver import Driver, wait_until
from tests.oracle.dump import Decoder, dump_text, parse_log
from tests.oracle.image import ImageOracle
from tests.oracle.java import run as java
from tests.oracle.kafka import KraftCluster, NodeSpec
from tests.oracle.lines import Json
from tests.oracle.shell import listed

pytestmark = pytest.mark.oracle
METADATA = "__cluster_metadata-0"
OLDER = "3.9.2"


def snapshot(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(verbs, ["snapshot", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result


def made(*arguments: str | Path, out: Path) -> Path:
    """Write or edit a snapshot into a new directory; the file."""
    out.mkdir()
    snapshot(*arguments, "--out", out)
    (file,) = out.iterdir()
    return file


def put_in_place(file: Path, data: Path, *, keep_quorum_state: bool = True) -> Path:
    """What `snapshot edit --help` says: the log moved away, the snapshot alone in its place."""
    before = data / METADATA
    aside = data.parent / f"moved-{file.name}"
    before.rename(aside)
    before.mkdir()
    shutil.copy(file, before / file.name)
    if keep_quorum_state:
        shutil.copy(aside / "quorum-state", before / "quorum-state")
    return aside


def configs_of(topic: str, bootstrap: str) -> str:
    return java(
        "kafka.admin.ConfigCommand",
        ["--bootstrap-server", bootstrap, "--describe", "--topic", topic],
    )


def topics(bootstrap: str) -> list[str]:
    text = java("org.apache.kafka.tools.TopicCommand", ["--bootstrap-server", bootstrap, "--list"])
    return sorted(line for line in text.split() if not line.startswith("__"))


@pytest.fixture(scope="module")
def lived_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KraftCluster]:
    """A controller that is a broker too, and two brokers of which one is dead; all are down."""
    nodes = [NodeSpec(1), NodeSpec(2, "broker"), NodeSpec(3, "broker")]
    with KraftCluster(tmp_path_factory.mktemp("lived-in"), nodes, dynamic=True) as kafka:
        kafka.start(1)
        kafka.start(2, 3)
        with Driver(kafka.bootstrap) as driver:
            driver.do("createTopic", name="orders", assignments=[[1, 2, 3], [3, 2, 1]])
            driver.do("createTopic", name="huge", assignments=[[2, 1]])
            driver.do("createTopic", name="alone", assignments=[[3]])
            driver.do("config", type="topic", name="huge", set={"retention.ms": "1000"})
            driver.wait_isr("orders", 3)
            driver.produce("orders", [{"v": "before"}], partition=1)
            kafka.kill(3)
            driver.wait_isr("orders", 2)
        kafka.stop(2)
        kafka.stop(1)
        yield kafka


def test_kafka_starts_from_a_snapshot_of_the_logs_end(
    lived_in: KraftCluster, tmp_path: Path
) -> None:
    data = lived_in.data(1)
    file = made("write", data, out=tmp_path / "out")
    put_in_place(file, data)
    lived_in.start(1)
    lived_in.start(2)
    with Driver(lived_in.bootstrap) as driver:
        driver.wait_isr("orders", 2)
        assert driver.partitions("orders")[1]["replicas"] == [3, 2, 1]
        assert driver.produce("orders", [{"v": "after"}], partition=1, producer="p") == [1]
        assert topics(lived_in.bootstrap) == ["alone", "huge", "orders"]
        assert "retention.ms=1000" in configs_of("huge", lived_in.bootstrap)
    lived_in.stop(2)
    lived_in.stop(1)
    assert not (data / METADATA / "00000000000000000000.log").exists()


@pytest.mark.soak
def test_kafka_starts_from_an_edited_snapshot_and_brokers_follow_it(
    lived_in: KraftCluster, tmp_path: Path
) -> None:
    data = lived_in.data(1)
    file = made(
        "edit",
        data,
        "--remove-broker",
        "3",
        "--delete-orphans",
        "--delete-topic",
        "huge",
        "--set-config",
        "topic:orders:retention.ms=86400000",
        out=tmp_path / "out",
    )
    put_in_place(file, data)
    # The log of broker 2 is the old one, and longer or shorter does not matter.
    lived_in.start(1)
    lived_in.start(2)
    with Driver(lived_in.bootstrap) as driver:
        driver.wait_isr("orders", 2)
        found = driver.partitions("orders")
        assert [each["replicas"] for each in found] == [[1, 2], [2, 1]]
        assert topics(lived_in.bootstrap) == ["orders"]
        assert "retention.ms=86400000" in configs_of("orders", lived_in.bootstrap)
        assert driver.produce("orders", [{"v": "mended"}], partition=1, producer="p")
        consumed = driver.do("consume", consumer="c", topics=["orders"], settings={"group.id": "g"})
        assert consumed["seen"] != 0
        wait_until(
            lambda: (lived_in.data(2) / METADATA / file.name).exists(),
            "broker 2 to fetch the snapshot",
        )
        assert "retention.ms=1000" not in configs_of("huge", lived_in.bootstrap)
    lived_in.stop(2)
    lived_in.stop(1)
    for node in (1, 2):  # nobody's data is deleted in haste
        (left,) = lived_in.data(node).glob("huge-0*")
        assert left.name.endswith("-stray")
    said = (lived_in.directory(1) / "server.log").read_text()
    assert "Encountered fatal fault" not in said


@pytest.mark.soak
def test_kafka_3_9_starts_from_a_snapshot_that_was_written_for_it(tmp_path: Path) -> None:
    """Of a log of 4.x: what 3.9 has no words for is left out, and the rest goes on."""
    with KraftCluster(tmp_path / "cluster", dynamic=True) as kafka:
        kafka.start()
        with Driver(kafka.bootstrap) as driver:
            driver.do("createTopic", name="orders", partitions=2)
            driver.do("config", type="topic", name="orders", set={"retention.ms": "1000000"})
            driver.wait_isr("orders", 1)
            driver.produce("orders", [{"v": "by 4.x"}], partition=1)
        # A clean stop takes the last replica from the ISR into the ELR, which 3.9 does not have.
        kafka.kill()
        data = kafka.data(1)
        older = ("write", data, "--release-version", "3.9", "--accept-loss")
        put_in_place(made(*older, out=tmp_path / "out"), data)
        # It names the version that the cluster began with, which 3.9 does not know.
        (data / "bootstrap.checkpoint").unlink()
        kafka.version = OLDER
        kafka.configure(1)
        kafka.start()
        with Driver(kafka.bootstrap) as driver:
            driver.wait_isr("orders", 1)
            assert topics(kafka.bootstrap) == ["orders"]
            assert "retention.ms=1000000" in configs_of("orders", kafka.bootstrap)
            assert driver.produce("orders", [{"v": "by 3.9"}], partition=1, producer="p") == [1]
            driver.do("createTopic", name="more")
        said = java(
            "org.apache.kafka.tools.FeatureCommand",
            ["--bootstrap-server", kafka.bootstrap, "describe"],
            version=OLDER,
        )
        assert "FinalizedVersionLevel: 3.9-IV0" in said
    assert "Encountered fatal fault" not in (kafka.directory(1) / "server.log").read_text()


def test_kafka_3_9_starts_from_a_snapshot_of_its_own_log(tmp_path: Path) -> None:
    kafka = KraftCluster(tmp_path / "cluster", version=OLDER)
    kafka.directory(1).mkdir(parents=True)
    data = kafka.data(1)
    copy(FIXTURES / "metadata_3_9" / "data" / "node-1", tmp_path).rename(data)
    put_in_place(made("write", data, "--release-version", "3.9", out=tmp_path / "out"), data)
    with kafka:
        kafka.start()
        assert "orders" in topics(kafka.bootstrap)
    assert "Encountered fatal fault" not in (kafka.directory(1) / "server.log").read_text()


@pytest.mark.soak
@pytest.mark.parametrize("keep", [True, False], ids=["quorum-state", "nothing"])
def test_one_node_goes_on_alone_after_its_quorum_is_lost(tmp_path: Path, keep: bool) -> None:
    root = tmp_path / "cluster"
    nodes = [NodeSpec(1), NodeSpec(2, "controller"), NodeSpec(3, "controller")]
    with KraftCluster(root, nodes) as three:
        three.start()
        with Driver(three.bootstrap) as driver:
            driver.do("createTopic", name="orders", partitions=2)
    alone = KraftCluster(root, [NodeSpec(1)], dynamic=True)
    data = alone.data(1)
    directory = read_meta_properties(data / "meta.properties").directory_id
    host, port = alone.controller_endpoint(1)
    file = made("edit", data, "--voters", f"1@{host}:{port}:{directory}", out=tmp_path / "out")
    with SnapshotReader(file) as reader:
        assert reader.kraft_version == 1
    put_in_place(file, data, keep_quorum_state=keep)
    with alone:
        alone.start()
        with Driver(alone.bootstrap) as driver:
            driver.wait_isr("orders", 1)
            driver.do("createTopic", name="more")
        said = java(
            "org.apache.kafka.tools.MetadataQuorumCommand",
            ["--bootstrap-server", alone.bootstrap, "describe", "--status"],
        )
        assert '"id": 1' in said.split("CurrentVoters")[1].split("\n")[0]
        assert '"id": 2' not in said


@pytest.mark.soak
def test_kafkas_tools_read_what_is_written(tmp_path: Path) -> None:
    with ImageOracle() as oracle:
        for number, node in enumerate(sorted(FIXTURES.glob("*/data/*/__cluster_metadata-0"))):
            file = made("write", node, out=tmp_path / f"out-{number}")
            with SnapshotReader(file) as reader:
                count = sum(1 for _ in reader.records())
            dumped = parse_log(dump_text([file], Decoder.METADATA)[file])
            records = [cast("list[Json]", batch["records"]) for batch in dumped]
            assert sum(map(len, records[1:-1])) == count
            assert "SnapshotHeader" in str(records[0])
            assert "SnapshotFooter" in str(records[-1])
            # Kafka's own classes make the same image of it as of the log.
            (ours,) = oracle.replay(snapshot=file, each=False)
            (theirs,) = oracle.replay(sorted(node.glob("*.log")), each=False)
            images = [cast("list[Json]", line["image"]) for line in (ours, theirs)]
            assert digest(images[0]) == digest(images[1]), node


def test_kafkas_shell_browses_what_is_written(tmp_path: Path) -> None:
    file = made("write", FIXTURES / "metadata_4_3" / "data" / "node-1", out=tmp_path / "out")
    assert "orders" in listed(file, "image/topics/byName")
