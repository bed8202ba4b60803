"""Everything that one partition of `__consumer_offsets` says: offsets, and groups of all kinds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from kraftline.broker.coordinators.groups.group import Group
from kraftline.broker.coordinators.groups.offsets import Offsets
from kraftline.broker.coordinators.shard import Shard
from kraftline.broker.coordinators.state import Change, Producer, State
from kraftline.broker.coordinators.timers import Timers
from kraftline.config.effective import Config
from kraftline.metadata.image import MetadataImage
from kraftline.schema.coordinator.group.legacy_offset_commit import LegacyOffsetCommitKey
from kraftline.schema.coordinator.group.offset_commit import OffsetCommitKey

_Replay: TypeAlias = Callable[[Any, Any, Producer | None], None]


class GroupsState(State):
    """`image` gives the cluster's metadata as it is now. `groups` are those of all kinds; only
    `replay` puts one there or takes one away. `is_loaded` is so once timers may run."""

    def __init__(
        self, shard: Shard[GroupsState], config: Config, image: Callable[[], MetadataImage]
    ) -> None:
        self.shard = shard
        self.config = config
        self.image = image
        self.timers = Timers()
        self.groups: dict[str, Group] = {}
        self.offsets = Offsets()
        self.is_loaded = False
        self._replays: dict[type, _Replay] = {
            LegacyOffsetCommitKey: self.offsets.replay,
            OffsetCommitKey: self.offsets.replay,
        }

    def replay(self, change: Change, producer: Producer | None) -> None:
        replay = self._replays.get(type(change.key))
        if replay is not None:
            replay(change.key, change.value, producer)

    def end_transaction(self, producer: Producer, *, is_committed: bool) -> None:
        self.offsets.end_transaction(producer, is_committed=is_committed)

    def loaded(self) -> None:
        """Timers begin here."""
        self.is_loaded = True

    def close(self) -> None:
        self.timers.close()
        for group in self.groups.values():
            group.close()
