"""Real Kafka starts from directories that we formatted, and finds in them what was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kraftline.cli.format import command
from kraftline.metadata.bootstrap import default_bootstrap, read_bootstrap
from kraftline.metadata.directories import check_directories
from kraftline.metadata.features import METADATA_VERSION
from kraftline.schema.metadata.frame import decode_record
from kraftline.storage.segment import SegmentReader
from tests.fixtures.formatted import outcomes
from tests.fixtures.formatted.cases import DIRECTORY, OTHER_DIRECTORY, cases
from tests.fixtures.formatted.make import ask
from tests.metadata.formatted import describe
from tests.oracle.driver import Driver
from tests.oracle.java import run
from tests.oracle.kafka import HOST, KraftCluster, NodeSpec
from tests.oracle.storage import StorageTool

pytestmark = pytest.mark.oracle
SCRAM = "SCRAM-SHA-256"
LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required"
SASL = {
    "sasl.enabled.mechanisms": f"PLAIN,{SCRAM}",
    f"listener.name.sasl_plaintext.{SCRAM.lower()}.sasl.jaas.config": f"{LOGIN};",
}


class Formatted(KraftCluster):
    """Nodes of real Kafka whose directories our `format` made."""

    def format(self, node_id: int) -> None:
        args = ["-t", self.cluster_id, "-c", str(self.configure(node_id))]
        done = CliRunner().invoke(command, [*args, *self._format_args])
        assert done.exit_code == 0, done.output


def settings(user: str, password: str) -> Mapping[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": SCRAM,
        "sasl.jaas.config": f'{LOGIN} username="{user}" password="{password}";',
    }


def written(cluster: KraftCluster, node_id: int = 1) -> list[Any]:
    """The records of a stopped node's metadata log."""
    found: list[Any] = []
    for path in sorted((cluster.data(node_id) / "__cluster_metadata-0").glob("*.log")):
        with SegmentReader(path) as reader:
            for batch, _ in reader.batches():
                if not batch.is_control:
                    found += [decode_record(record.value or b"")[0] for record in batch.records()]
    return found


def test_standalone_node_starts_and_its_user_logs_in(tmp_path: Path) -> None:
    args = [
        "--standalone",
        "-S",
        f"{SCRAM}=[name=alice,password=a secret]",
        "-f",
        "share.version=0",
    ]
    nodes = [NodeSpec(1, log_dirs=2)]
    with Formatted(tmp_path, nodes, dynamic=True, properties=SASL, format_args=args) as kafka:
        seed = read_bootstrap(kafka.data(1))
        kafka.start()
        with Driver(kafka.sasl_bootstrap, settings("alice", "a secret")) as driver:
            driver.do("createTopic", name="hers")
            assert [p["leader"] for p in driver.partitions("hers")] == [1]
        users = ["--bootstrap-server", kafka.bootstrap, "--describe", "--entity-type", "users"]
        assert f"'alice' are {SCRAM}=iterations=4096" in configs(users)
        kafka.stop()
        assert [each for each in written(kafka) if each in seed.records] == list(seed.records)
        log_dirs = [str(kafka.data(1, n)) for n in range(2)]
        check_directories(log_dirs, log_dirs[0], node_id=1, cluster_id=kafka.cluster_id)


@pytest.mark.soak
def test_static_quorum_of_the_oldest_version_starts(tmp_path: Path) -> None:
    with Formatted(tmp_path, format_args=["--release-version", "3.3-IV3"]) as kafka:
        kafka.start()
        said = [line.split() for line in features(kafka).splitlines()]
        assert [line[-3] for line in said if METADATA_VERSION in line] == ["3.3-IV3"]


@pytest.mark.soak
def test_quorum_of_initial_controllers_forms(tmp_path: Path) -> None:
    nodes = [NodeSpec(1), NodeSpec(2)]
    with_voters = Formatted(tmp_path, nodes, dynamic=True)
    ports = {n: with_voters.controller_endpoint(n)[1] for n in (1, 2)}
    voters = f"1@{HOST}:{ports[1]}:{DIRECTORY},2@{HOST}:{ports[2]}:{OTHER_DIRECTORY}"
    with_voters._format_args = ["--initial-controllers", voters]
    with with_voters as kafka:
        kafka.start()
        args = ["--bootstrap-server", kafka.bootstrap, "describe", "--status"]
        said = run("org.apache.kafka.tools.MetadataQuorumCommand", args)
        assert DIRECTORY in said
        assert OTHER_DIRECTORY in said
        assert "CurrentObservers:       []" in said
        # Half of a quorum cannot stop cleanly: it waits for the other half.
        kafka.kill()


@pytest.mark.parametrize(("version", "release"), [("3.9.2", "3.9"), ("3.3.2", "3.3")])
def test_older_kafka_starts_from_what_is_formatted_for_it(
    version: str, release: str, tmp_path: Path
) -> None:
    with Formatted(tmp_path, version=version, format_args=["-r", release]) as kafka:
        kafka.start()
        with Driver(kafka.bootstrap) as driver:
            driver.do("createTopic", name="old")
            assert [p["leader"] for p in driver.partitions("old")] == [1]


def test_dynamic_quorum_of_3_9_starts(tmp_path: Path) -> None:
    args = ["--standalone", "-r", "3.9"]
    with Formatted(tmp_path, version="3.9.2", dynamic=True, format_args=args) as kafka:
        kafka.start()


@pytest.mark.soak
def test_without_a_seed_kafka_begins_with_its_default(tmp_path: Path) -> None:
    with Formatted(tmp_path, dynamic=True, format_args=["--standalone"]) as kafka:
        (kafka.data(1) / "bootstrap.checkpoint").unlink()
        kafka.start()
        kafka.stop()
        seeds = [each for each in written(kafka) if type(each).__name__ == "FeatureLevelRecord"]
        assert seeds == list(default_bootstrap().records)


@pytest.mark.soak
def test_fixture_is_what_kafka_does_today(tmp_path: Path) -> None:
    kept = outcomes()
    with StorageTool() as tool:
        for number, case in enumerate(cases()):
            now = ask(tool, case, tmp_path / str(number))
            then = kept[case.name]
            assert (now.code, now.refused) == (then.code, then.refused)
            now.write(tmp_path / f"{number}-now")
            then.write(tmp_path / f"{number}-then")
            assert describe(tmp_path / f"{number}-now", salted=False) == describe(
                tmp_path / f"{number}-then", salted=False
            )


def configs(args: list[str]) -> str:
    return run("kafka.admin.ConfigCommand", args, errors=True)


def features(kafka: KraftCluster) -> str:
    args = ["--bootstrap-server", kafka.bootstrap, "describe"]
    return run("org.apache.kafka.tools.FeatureCommand", args)
