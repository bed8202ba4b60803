"""States of groups without a node around them: written by hand, and read back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kraftline.broker.coordinators.groups.classic.group import ClassicGroup
from kraftline.broker.coordinators.groups.consumer.settings import Settings
from kraftline.broker.coordinators.groups.counts import Counts
from kraftline.broker.coordinators.groups.state import GroupsState
from kraftline.broker.coordinators.loading import Loading, load
from kraftline.config.effective import Config
from kraftline.metadata.image import EMPTY
from kraftline.node.standalone import standalone_config
from kraftline.schema.coordinator.frame import OFFSETS

NOW = 1_763_265_600_000


def config_of(**settings: object) -> Config:
    named = {name.replace("_", "."): str(value) for name, value in settings.items()}
    return standalone_config({"log.dirs": "/nowhere", **named})


class NoShard:
    """Of a state that is only read."""

    clock: Callable[[], int] = staticmethod(lambda: NOW)


def empty_state(config: Config | None = None, shard: Any = NoShard) -> GroupsState:
    config = config or config_of()
    return GroupsState(shard, config, lambda: EMPTY, Counts(), Settings(config))


class Batches:
    """As much of a log as loading asks for; batches follow each other from offset 0 on."""

    def __init__(self, batches: Sequence[bytes]) -> None:
        self._data = b"".join(batches)
        self._places: dict[int, int] = {}
        self.end_offset = at = 0
        for batch in batches:
            self._places[self.end_offset] = at
            self.end_offset += 1 + int.from_bytes(batch[23:27], "big")
            at += len(batch)

    def read(self, offset: int, most: int, *, up_to: int) -> Batches._Range:
        at = self._places.get(offset, len(self._data))
        return Batches._Range(self._data[at : at + most])

    class _Range:
        def __init__(self, data: bytes) -> None:
            self._data = data

        def read(self) -> bytes:
            return self._data


def loaded_from(batches: Sequence[bytes], state: GroupsState | None = None) -> Loaded:
    log: Any = Batches(batches)
    state = state or empty_state()
    progress = Loading(0, log.end_offset)
    load(log, OFFSETS, state, progress, lambda: True)
    assert progress.offset == log.end_offset
    return Loaded(state, progress)


class Loaded:
    def __init__(self, state: GroupsState, progress: Loading) -> None:
        self.state = state
        self.progress = progress


def told(state: GroupsState) -> object:
    """All that a state keeps, in plain values. A group that nobody joined and that has no offsets
    left is as good as none."""
    offsets = {
        (group, topic, partition): (
            each.offset,
            each.leader_epoch,
            each.metadata,
            each.committed_at,
            each.expires_at,
            each.topic_id,
        )
        for group, topics in state.offsets.of.items()
        for topic, partitions in topics.items()
        for partition, each in partitions.items()
    }
    pending = {
        (producer, *where): each.offset
        for producer, waiting in state.offsets.pending.items()
        for where, each in waiting.items()
    }
    groups = {}
    for group in state.groups.values():
        if isinstance(group, ClassicGroup) and (group.type or group.group_id in state.offsets.of):
            groups[group.group_id] = (
                group.type,
                group.protocol,
                group.generation,
                group.leader,
                group.state,
                sorted(
                    (
                        each.member_id,
                        each.instance_id or "",
                        each.client_id,
                        each.client_host,
                        each.session_timeout_ms,
                        each.rebalance_timeout_ms,
                        each.metadata(group.protocol),
                        each.assignment,
                    )
                    for each in group.members.values()
                ),
            )
    assert state.offsets.count == len(offsets)
    return offsets, pending, groups
