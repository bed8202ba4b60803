"""Each step of the broker's publishers: their order, and what the first image is for."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import kraftline
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.image.local_changes import LocalChanges
from kraftline.metadata.registrations import BrokerRegistration
from kraftline.node.node import StoppedEarly
from kraftline.node.thread import NodeThread
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kraftline.schema.api.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from kraftline.storage.log import Logs
from tests.broker.stories import batch
from tests.broker.talking import Talk
from tests.broker.test_partitions import World, topic
from tests.node.running import kraftline as verb
from tests.oracle.kafka import KraftCluster, NodeSpec

FUTURE = f"orders-0.{'a' * 32}-future"


def wait_for(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def talk_to(node: NodeThread) -> Talk:
    return Talk(("127.0.0.1", node.node.addresses[0].port))


def registered(node: NodeThread) -> BrokerRegistration:
    """This broker as its own cache has it."""
    return node.node.broker.cache.image.cluster.brokers[1]


def test_publishers_come_in_kafkas_order() -> None:
    """What is told, then logs, then coordinators, then what changes while running, then who may do
    what; what asks the controller comes after everything else that acts."""
    kind = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    with kraftline.Node({"authorizer.class.name": kind}) as node:
        names = node.node.loader.publishers
    assert names == (
        *("MetadataCache", "Partitions"),
        *("Coordinator of __consumer_offsets", "Coordinator of __transaction_state"),
        *("DynamicConfigs", "DynamicClientQuotaPublisher"),
        *("AclPublisher", "RegistrationTracker", "DirectoryAssignments", "SnapshotGenerator"),
    )


def test_upkeep_begins_at_the_end_of_the_first_image(tmp_path: Path) -> None:
    async def main() -> None:
        world = World(tmp_path)
        seen = []
        lead = world.partitions._apply

        def applied(changes: LocalChanges, image: MetadataImage) -> None:
            seen.append((world.partitions.first_published, len(world.partitions._upkeep._tasks)))
            lead(changes, image)

        world.partitions._apply = applied  # type: ignore[method-assign]  # to look in between
        world.publish(*topic(1))
        begun = len(world.partitions._upkeep._tasks)
        world.publish(*topic(2))
        assert seen == [(False, 0), (True, begun)]
        assert begun == len(world.partitions._upkeep._tasks) > 0
        await world.close()

    asyncio.run(main())


def test_high_watermarks_are_checkpointed_without_a_stop(tmp_path: Path) -> None:
    settings = {"log.dirs": tmp_path, "replica.high.watermark.checkpoint.interval.ms": 20}
    with kraftline.Node(settings) as node:
        node.create_topic("orders")
        wait_for(lambda: "orders 0 0" in _text(tmp_path / "replication-offset-checkpoint"))
        partition = node.node.broker.partitions.get("orders", 0)
        assert partition is not None

        async def append() -> None:
            partition.log.append(batch(b"one"), partition.leader_epoch)
            partition.advanced()

        node.run(append)
        wait_for(lambda: "orders 0 1" in _text(tmp_path / "replication-offset-checkpoint"))


def test_a_log_that_the_metadata_does_not_have_is_a_stray(tmp_path: Path) -> None:
    with kraftline.Node({"log.dirs": tmp_path}) as node:
        node.create_topic("orders")
    shutil.copytree(tmp_path / "orders-0", tmp_path / "orders-7")
    with kraftline.Node({"log.dirs": tmp_path}) as node:
        assert node.node.partitions == 1
    names = sorted(os.listdir(tmp_path))
    assert [each for each in names if each.startswith("orders-7.") and each.endswith("-stray")]
    assert "orders-7" not in names


@pytest.fixture
def abandoned(tmp_path: Path) -> tuple[Path, Path]:
    """Two directories: one with a copy that the metadata takes for the log, and one with the log as
    it was before; and another copy that is still on its way."""
    cluster = KraftCluster(tmp_path, [NodeSpec(1, log_dirs=2)], dynamic=True)
    places = cluster.data(1), cluster.data(1, 1)
    with kraftline.Node({"log.dirs": places}) as node:
        node.create_topic("orders")
        node.create_topic("other")
        partition = node.node.broker.partitions.get("orders", 0)
        assert partition is not None
        here = Path(partition.log.directory).parent
    there = next(each for each in places if each != here)
    os.rename(here / "orders-0", here / FUTURE)
    shutil.copytree(here / FUTURE, there / "orders-0")
    is_here = (here / "other-0").exists()
    source, target = (here, there) if is_here else (there, here)
    shutil.copytree(source / "other-0", target / FUTURE.replace("orders", "other"))
    return here, there


def _names(place: Path, topic: str) -> list[str]:
    return sorted(
        each.rpartition("-")[2] for each in os.listdir(place) if each.startswith(f"{topic}-0")
    )


def _hold_promoted(here: Path, there: Path) -> None:
    assert _names(here, "orders") == ["0"]
    assert _names(there, "orders") in ([], ["delete"])


def test_a_copy_that_a_failed_disk_abandoned_becomes_the_log(abandoned: tuple[Path, Path]) -> None:
    others = {place: _names(place, "other") for place in abandoned}
    with kraftline.Node({"log.dirs": abandoned}) as node:
        partition = node.node.broker.partitions.get("orders", 0)
        assert partition is not None
        assert Path(partition.log.directory) == abandoned[0] / "orders-0"
        _hold_promoted(*abandoned)
        # Where the metadata has the log elsewhere, the move goes on.
        target = next(place for place in abandoned if "future" in others[place])
        wait_for(lambda: "0" in _names(target, "other"))
        wait_for(lambda: "future" not in _names(target, "other"))


@pytest.mark.oracle
@pytest.mark.soak
def test_kafka_takes_an_abandoned_copy_for_the_log_too(
    abandoned: tuple[Path, Path], tmp_path: Path
) -> None:
    cluster = KraftCluster(tmp_path, [NodeSpec(1, log_dirs=2)], dynamic=True)
    cluster.configure(1)
    cluster.start()
    try:
        wait_for(lambda: FUTURE not in os.listdir(abandoned[0]))
        _hold_promoted(*abandoned)
    finally:
        cluster.kill()


def test_a_node_that_is_stopped_before_its_first_image_fails_its_start_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    loading, go_on = asyncio.Event(), threading.Event()
    opened = Logs.open

    async def main() -> None:
        loop = asyncio.get_running_loop()

        def slow(*arguments: object, **more: object) -> Logs:
            loop.call_soon_threadsafe(loading.set)
            go_on.wait(30)
            return opened(*arguments, **more)  # type: ignore[arg-type]  # as they came

        monkeypatch.setattr(Logs, "open", slow)
        node = kraftline.Node({"log.dirs": tmp_path})
        starting = asyncio.create_task(node.start())
        await loading.wait()
        stopping = asyncio.create_task(node.stop())
        await stopping
        loop.call_later(0.01, go_on.set)
        with pytest.raises(StoppedEarly, match="stopped while it started"):
            await asyncio.wait_for(starting, 30)
        monkeypatch.undo()
        await node.start()  # everything was given back
        await node.stop()

    asyncio.run(main())


def test_a_directory_that_is_cordoned_while_running_is_told_and_gets_no_new_logs(
    tmp_path: Path,
) -> None:
    places = tmp_path / "one", tmp_path / "two"
    with kraftline.Node({"log.dirs": places}) as node:
        config = AlterableConfig(name="cordoned.log.dirs", value=str(places[0]))
        resource = AlterConfigsResource(resource_type=4, resource_name="1", configs=(config,))
        request = IncrementalAlterConfigsRequest(resources=(resource,))
        with talk_to(node) as talk:
            (told,) = talk.ask_for(IncrementalAlterConfigsResponse, request, 1).responses
        assert told.error_code == ErrorCode.NONE, told.error_message
        logs = node.node.broker.partitions.logs
        (identity,) = (key for key, each in logs.items() if each.path == str(places[0]))
        wait_for(lambda: registered(node).cordoned_directories == (identity,))
        for number in range(4):
            node.create_topic(f"new-{number}")
        assert not [each for each in os.listdir(places[0]) if each.startswith("new-")]
        assert len([each for each in os.listdir(places[1]) if each.startswith("new-")]) == 4


def test_a_broker_registers_again_when_the_cluster_comes_to_know_directories(
    tmp_path: Path,
) -> None:
    data, voters = tmp_path / "data", "1@127.0.0.1:9093"
    properties = tmp_path / "server.properties"
    properties.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
        "listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0\n"
        f"controller.quorum.voters={voters}\nlog.dirs={data}\n"
    )
    arguments = ["format", "-t", "kraftlineoracleclustrA", "-c", str(properties)]
    done = verb(*arguments, "--release-version", "3.6-IV2")
    assert done.returncode == 0, done.stderr
    with kraftline.Node({"log.dirs": data, "controller.quorum.voters": voters}) as node:
        before = registered(node)
        assert before.directories == ()
        update = FeatureUpdateKey(feature="metadata.version", max_version_level=25, upgrade_type=1)
        request = UpdateFeaturesRequest(feature_updates=(update,), timeout_ms=10_000)
        with talk_to(node) as talk:
            told = talk.ask_for(UpdateFeaturesResponse, request, 1)
        assert told.error_code == ErrorCode.NONE, told
        wait_for(lambda: registered(node).directories != ())
        assert registered(node).epoch == before.epoch
        assert not registered(node).fenced


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""
