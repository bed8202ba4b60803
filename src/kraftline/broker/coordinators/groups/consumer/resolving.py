"""What regular expressions match, and what follows for the group."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from kraftline.broker.coordinators.groups.consumer import records, regexes
from kraftline.broker.coordinators.groups.consumer.deciding import Ground
from kraftline.broker.coordinators.groups.consumer.group import ConsumerGroup
from kraftline.broker.coordinators.groups.consumer.subscriptions import Resolved
from kraftline.broker.coordinators.state import Change
from kraftline.metadata.image import MetadataImage

_NONE: Final = Resolved()
# So many topics are asked about before others in the event loop have their turn.
_AT_ONCE: Final = 500


async def resolve(
    wanted: frozenset[str],
    image: MetadataImage,
    now: int,
    may_describe: Callable[[str], bool] | None,
) -> dict[str, Resolved]:
    """The topics that each of them matches and that the one who asked may know of."""
    loop = asyncio.get_running_loop()
    found = await loop.run_in_executor(None, regexes.matched, wanted, image.topics.ids)
    if may_describe is not None:
        denied = set()
        for at, name in enumerate(set().union(*found.values()), 1):
            if not may_describe(name):
                denied.add(name)
            if at % _AT_ONCE == 0:
                await asyncio.sleep(0)
        found = {regex: topics - denied for regex, topics in found.items()}
    return {
        regex: Resolved(frozenset(topics), image.offset, now) for regex, topics in found.items()
    }


def resolved(
    group: ConsumerGroup, found: Mapping[str, Resolved], ground: Ground
) -> tuple[list[Change], bool]:
    """The records; and whether the group has a new epoch, since other topics match now."""
    changes = []
    together = group.subscriptions.copy()
    must = False
    for regex, new in found.items():
        if regex not in group.subscriptions.regexes:
            continue  # whoever had it is gone
        old = group.resolved.get(regex, _NONE)
        if old.topics != new.topics:
            must = True
            together.add_matches(old.topics, -1)
            together.add_matches(new.topics)
        changes.append(records.regex(group.group_id, regex, new))
    hashed = ground.hashes.of(together.topics, ground.image)
    if must or hashed != group.metadata_hash:
        changes.append(records.group_epoch(group.group_id, group.epoch + 1, hashed))
        return changes, True
    return changes, False
