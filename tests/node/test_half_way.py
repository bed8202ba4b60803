"""A start that fails half-way gives everything back; a node that cannot go on says so and ends."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kraftline.broker.lifecycle import Lifecycle
from kraftline.broker.partitions import Partitions
from kraftline.config.effective import Config
from kraftline.errors import KraftlineError
from kraftline.metadata.loader import FatalFault
from kraftline.node import Node, standalone_config
from kraftline.node.standalone import format_if_new
from kraftline.raft import EmbeddedLog
from kraftline.storage.lock import DirectoryLock
from kraftline.storage.log import Logs
from tests.oracle.kafka import HOST, free_ports


class Trouble(KraftlineError):
    """What a test lets happen."""


@pytest.fixture
def config(tmp_path: Path) -> Config:
    (port,) = free_ports(1)
    found = standalone_config(
        {"listeners": f"PLAINTEXT://{HOST}:{port}", "log.dirs": f"{tmp_path}/a,{tmp_path}/b"}
    )
    assert format_if_new(found)
    assert not format_if_new(found)
    return found


@pytest.mark.parametrize(
    ("where", "what"),
    [
        (EmbeddedLog, "register"),
        (Logs, "open"),
        (Partitions, "on_metadata_update"),
        (Lifecycle, "start"),
    ],
)
def test_whatever_fails_everything_is_given_back(
    config: Config, where: type, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise Trouble("half-way")

    async def start_twice() -> None:
        node = Node(config)
        with monkeypatch.context() as patched:
            patched.setattr(where, what, fail)
            with pytest.raises((Trouble, FatalFault)):
                await node.start()
        for directory in config.texts("log.dirs"):
            DirectoryLock(directory).release()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        # Ports and directories are free: the same node starts now.
        async with node:
            assert node.partitions == 0

    asyncio.run(start_twice())


def test_a_node_whose_metadata_log_fails_cannot_go_on(config: Config) -> None:
    async def run() -> None:
        async with Node(config) as node:
            failed = asyncio.create_task(node.failed())
            await asyncio.sleep(0)
            node.log._commits.fail(OSError(5, "Input/output error"))
            with pytest.raises(KraftlineError, match="Input/output error"):
                await asyncio.wait_for(failed, 5)

    asyncio.run(run())


def test_a_node_that_is_stopped_twice_or_never_started_stops(config: Config) -> None:
    async def run() -> None:
        node = Node(config)
        await node.stop()
        await node.start()
        await node.stop()
        await node.stop()

    asyncio.run(run())
