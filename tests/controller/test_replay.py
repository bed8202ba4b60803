"""Whatever a controller was asked: replaying its log gives the state that it decides on."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import msgspec
import pytest

from kraftline.controller.controller import Controller
from kraftline.metadata.bootstrap import read_bootstrap
from kraftline.metadata.image import EMPTY, MetadataImage
from kraftline.metadata.image.metadata import PARTS, Provenance
from kraftline.metadata.loader import MetadataLoader, RoleFaultHandler
from kraftline.node.standalone import format_if_new, standalone_config
from kraftline.raft import EmbeddedLog
from kraftline.schema.types import Message
from kraftline.storage.snapshot_file import now
from tests.controller.broker_stories import CLUSTER, Known, random_story
from tests.controller.telling import ask_controller, learn
from tests.controller.topic_requests import create, creations, delete, topic


@pytest.mark.parametrize("seed", range(3))
def test_replaying_the_log_gives_the_controllers_state(seed: int, tmp_path: Path) -> None:
    config = standalone_config(
        {"log.dirs": str(tmp_path / "data"), "listeners": "PLAINTEXT://127.0.0.1:0"}
    )
    format_if_new(config)
    random = Random(seed)

    async def main() -> None:
        data = tmp_path / "data"
        async with await EmbeddedLog.open(data, node_id=1) as log:
            # From here on the controller's clocks stand still: nothing is due by time.
            controller = Controller(
                log, EMPTY, now, config=config, cluster_id=CLUSTER, monotonic=lambda: 0
            )
            await controller.activate(read_bootstrap(data))
            await _ask_at_random(controller, random)
            await controller.close()
            loader = MetadataLoader(
                high_watermark=lambda: log.view.end_offset, faults=RoleFaultHandler(fatal=True)
            )
            loader.start()
            await log.register(loader).caught_up()
            assert loader.failure is None
            assert loader.image.offset == controller.image.offset == log.end_offset - 1
            _hold_equal(loader.image, controller.image)
            await loader.close()

    asyncio.run(main())


async def _ask_at_random(controller: Controller, random: Random) -> None:
    known = Known()
    odd = list(creations(2))
    for step in random_story(random, 200):
        await _ask(controller, *step(known), known)
        if random.random() < 0.3:
            await _ask(controller, *random.choice(odd), known)
        if random.random() < 0.1:
            names = sorted(controller.image.topics.ids)
            await _ask(controller, delete(*random.sample(names, min(3, len(names)))), 5, known)
        if random.random() < 0.1:
            name = f"drawn-{random.randrange(40)}"
            request = create(topic(name, random.randint(1, 20), random.randint(1, 3)))
            await _ask(controller, request, 7, known)


async def _ask(controller: Controller, request: Message, version: int, known: Known) -> None:
    learn(known, request, await ask_controller(controller, request))


def _hold_equal(one: MetadataImage, other: MetadataImage) -> None:
    for part in PARTS:
        assert getattr(one, part) == getattr(other, part), part
    same = msgspec.structs.replace
    assert same(one, provenance=Provenance()) == same(other, provenance=Provenance())
