"""Partitions in trouble: offline, under-replicated, near or below min.insync.replicas, moving."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from kraftline.metadata.image import MetadataImage
from kraftline.metadata.image.configs import BROKER, TOPIC
from kraftline.metadata.partition import (
    NO_LEADER,
    RECOVERING,
    USUAL,
    Directories,
    PartitionRegistration,
    Replicas,
)

MIN_ISR = "min.insync.replicas"
OFFLINE = "offline"
UNDER_MIN_ISR = "under min ISR"
AT_MIN_ISR = "at min ISR"
UNDER_REPLICATED = "under-replicated"
RECOVERING_STATE = "recovering"
REASSIGNING = "reassigning"
LOST_DIRECTORY = "directory offline"
NOT_PREFERRED = "not led by the preferred replica"
# The worst first.
TROUBLES = (
    OFFLINE,
    UNDER_MIN_ISR,
    RECOVERING_STATE,
    AT_MIN_ISR,
    UNDER_REPLICATED,
    LOST_DIRECTORY,
    REASSIGNING,
    NOT_PREFERRED,
)
_REMARKS = (NOT_PREFERRED,)


class InTrouble(msgspec.Struct, frozen=True):
    """`down` are replicas whose broker is fenced, shutting down or gone."""

    topic: str
    partition: int
    registration: PartitionRegistration
    troubles: tuple[str, ...]
    down: tuple[int, ...]


class Health:
    """Looks at partitions of one image."""

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        brokers = image.cluster.brokers
        self._up = {
            number
            for number, broker in brokers.items()
            if not broker.fenced and not broker.in_controlled_shutdown
        }
        # What files of brokers say is not in the log; Kafka's own default is 1.
        self._default = _number(image.configs.of(BROKER, "").get(MIN_ISR)) or 1
        # Millions of partitions have the same few lists.
        self._lost: dict[tuple[Replicas, Directories], bool] = {}

    def min_isr(self, topic: str) -> int:
        return _number(self._image.configs.of(TOPIC, topic).get(MIN_ISR)) or self._default

    def of(self, topic: str, partition: PartitionRegistration) -> tuple[str, ...]:
        """What is wrong with a partition, the worst first; nothing if it is well."""
        in_sync = len(partition.isr)
        lost = self._has_lost_directory(partition.replicas, partition.directories)
        if (
            in_sync == len(partition.replicas) > 0
            and partition.has_preferred_leader
            and partition.unusual is USUAL
            and not lost
        ):
            return ()  # as most are
        found = set()
        wanted = len(partition.replicas) - len(partition.adding_replicas)
        least = min(self.min_isr(topic), max(wanted, 1))
        if partition.leader == NO_LEADER:
            found.add(OFFLINE)
        if in_sync < least:
            found.add(UNDER_MIN_ISR)
        elif in_sync == least < wanted:
            found.add(AT_MIN_ISR)
        if in_sync < wanted:
            found.add(UNDER_REPLICATED)
        if partition.leader_recovery_state == RECOVERING:
            found.add(RECOVERING_STATE)
        if partition.adding_replicas or partition.removing_replicas:
            found.add(REASSIGNING)
        if partition.leader != NO_LEADER and not partition.has_preferred_leader:
            found.add(NOT_PREFERRED)
        if lost:
            found.add(LOST_DIRECTORY)
        return tuple(each for each in TROUBLES if each in found)

    def _has_lost_directory(self, replicas: Replicas, directories: Directories) -> bool:
        known = self._lost.get((replicas, directories))
        if known is None:
            brokers = self._image.cluster.brokers
            known = self._lost[replicas, directories] = any(
                replica in brokers and not brokers[replica].has_online_directory(directory)
                for replica, directory in zip(replicas, directories, strict=True)
            )
        return known

    def down(self, partition: PartitionRegistration) -> tuple[int, ...]:
        return tuple(each for each in partition.replicas if each not in self._up)

    def all(self, *, remarks: bool = False) -> Iterator[InTrouble]:
        """Every partition that is not well, by topic; `remarks`: also what is merely worth
        knowing."""
        topics = self._image.topics
        for topic in sorted(topics.by_id.values(), key=lambda each: each.name):
            for number, partition in topic.items():
                troubles = self.of(topic.name, partition)
                if not remarks:
                    troubles = tuple(each for each in troubles if each not in _REMARKS)
                if troubles:
                    down = self.down(partition)
                    yield InTrouble(topic.name, number, partition, troubles, down)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() else None
