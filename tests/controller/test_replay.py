"""Whatever a controller was asked: replaying its log gives the state that it decides on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import msgspec
import pytest

from kraftline.controller.controller import Controller
from kraftline.controller.refusal import Refusal
from kraftline.inspect.history import open_history
from kraftline.metadata.bootstrap import read_bootstrap
from kraftline.metadata.image import EMPTY, MetadataImage
from kraftline.metadata.image.metadata import PARTS, Provenance
from kraftline.metadata.loader import MetadataLoader, RoleFaultHandler
from kraftline.node.standalone import format_if_new, standalone_config
from kraftline.raft import EmbeddedLog
from kraftline.schema.types import Message
from kraftline.storage.snapshot_file import now
from tests.controller.broker_stories import CLUSTER, Known, random_story
from tests.controller.random_admin import random_request
from tests.controller.telling import ask_controller, learn
from tests.controller.topic_requests import create, creations, delete, topic
from tests.effort import rounds


@pytest.mark.parametrize("seed", range(3))
def test_replaying_the_log_gives_the_controllers_state(seed: int, tmp_path: Path) -> None:
    random = Random(seed)

    async def main() -> None:
        async with _controlled(tmp_path) as (log, controller):
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


@pytest.mark.parametrize("seed", range(rounds(4)))
def test_every_answer_stands_on_an_image_that_the_log_gives_again(
    seed: int, tmp_path: Path
) -> None:
    """Brokers and administrators at random: the state after each answer is what a replay has at
    that offset, and what only asks whether something could be done leaves no trace."""
    random = Random(seed)

    async def main() -> None:
        async with _controlled(tmp_path) as (log, controller):
            answered = {}
            known = Known()
            for step in random_story(random, 150):
                await _ask(controller, *step(known), known)
                for _ in range(random.randrange(3)):
                    request = random_request(random)
                    before = log.end_offset
                    await _ask(controller, request, 0, known)
                    if getattr(request, "validate_only", False):
                        assert log.end_offset == before, request
                answered[controller.image.offset] = controller.image
            await controller.close()
        history = open_history([str(tmp_path)])
        (leg,) = history.legs
        assert leg.last_offset == max(answered)
        replayed = history.in_order(leg, sorted(answered))
        assert history.trouble == []
        for offset, image in zip(sorted(answered), replayed, strict=True):
            _hold_equal(image, answered[offset])

    asyncio.run(main())


@asynccontextmanager
async def _controlled(data: Path) -> AsyncIterator[tuple[EmbeddedLog, Controller]]:
    """A controller of a new directory, and its log. Its clocks stand still: nothing is due by
    time."""
    config = standalone_config({"log.dirs": str(data), "listeners": "PLAINTEXT://127.0.0.1:0"})
    format_if_new(config)
    async with await EmbeddedLog.open(data, node_id=1) as log:
        controller = Controller(
            log, EMPTY, now, config=config, cluster_id=CLUSTER, monotonic=lambda: 0
        )
        await controller.activate(read_bootstrap(data))
        yield log, controller


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


_SECURITY = {
    30: "create_acls",
    31: "delete_acls",
    49: "alter_client_quotas",
    51: "alter_scram_credentials",
    70: "register_controller",
}


async def _ask(controller: Controller, request: Message, version: int, known: Known) -> None:
    key = request.SPEC.key
    assert key is not None
    try:
        if key in _SECURITY:
            await getattr(controller, _SECURITY[key])(request)
        elif key == 33:
            await controller.admin.alter_configs(request)  # type: ignore[arg-type]  # by its key
        else:
            learn(known, request, await ask_controller(controller, request))
    except Refusal:
        return  # of all of a request


def _hold_equal(one: MetadataImage, other: MetadataImage) -> None:
    for part in PARTS:
        assert getattr(one, part) == getattr(other, part), part
    same = msgspec.structs.replace
    assert same(one, provenance=Provenance()) == same(other, provenance=Provenance())
