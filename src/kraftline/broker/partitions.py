"""The partitions of this broker: which it leads, and the logs that are theirs.

A publisher: logs are made, led, and deleted as the metadata says. One that the broker does not
lead is not served.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from kraftline.metadata.image import MetadataDelta, MetadataImage
from kraftline.metadata.image.local_changes import LocalChanges, LocalPartition, TopicPartition
from kraftline.metadata.loader import LeaderAndEpoch, Manifest, MetadataPublisher
from kraftline.metadata.partition import PartitionRegistration
from kraftline.schema.uuids import Uuid
from kraftline.storage.log import LogConfig, Logs, PartitionLog

_logger = logging.getLogger(__name__)


class Partition:
    """A partition that has a log here. `registration` is what the metadata says of it.

    `waiting` are those who want to know when something was appended or the high watermark moved:
    each is called once, and says so again if it still wants to know.
    """

    __slots__ = ("is_leader", "log", "registration", "topic_id", "waiting")

    def __init__(self, log: PartitionLog, topic_id: Uuid) -> None:
        self.log = log
        self.topic_id = topic_id
        self.registration: PartitionRegistration | None = None
        self.is_leader = False
        self.waiting: set[Callable[[], None]] = set()

    @property
    def leader_epoch(self) -> int:
        return -1 if self.registration is None else self.registration.leader_epoch

    def advanced(self) -> None:
        """Something was appended: with no replica but this one it is committed at once."""
        registration = self.registration
        if registration is not None and len(registration.isr) == 1:
            self.log.update_high_watermark(self.log.end_offset)
        self.wake()

    def wake(self) -> None:
        if self.waiting:
            waiting, self.waiting = self.waiting, set()
            for each in waiting:
                each()


class Partitions(MetadataPublisher):
    """`logs` are those of each log directory, by its id; a new partition goes to the directory that
    has the fewest. `config_of` gives what a topic's log is kept by."""

    def __init__(
        self,
        broker_id: int,
        logs: Mapping[Uuid, Logs],
        config_of: Callable[[MetadataImage, str], LogConfig],
    ) -> None:
        self.broker_id = broker_id
        self.logs = logs
        self._config_of = config_of
        self._all: dict[tuple[str, int], Partition] = {}
        self.first_published = False

    @property
    def name(self) -> str:
        return "Partitions"

    def get(self, topic: str, partition: int) -> Partition | None:
        return self._all.get((topic, partition))

    def __len__(self) -> int:
        return len(self._all)

    def on_metadata_update(
        self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest
    ) -> None:
        if delta.topics is not None:
            self._apply(delta.topics.local_changes(self.broker_id), image)
        if delta.configs is not None:
            self._configure(delta, image)
        self.first_published = True

    def on_controller_change(self, leader: LeaderAndEpoch) -> None:
        """Makes no difference here."""

    async def close(self) -> None:
        """The logs are closed by whoever opened them."""

    def _apply(self, changes: LocalChanges, image: MetadataImage) -> None:
        for where in changes.deletes:
            self._delete(where)
        for where, local in changes.leaders.items():
            self._lead(where, local, image)
        for where, local in changes.followers.items():
            partition = self._opened(where, local, image)
            partition.registration = local.partition
            partition.is_leader = False
            partition.wake()

    def _lead(self, where: TopicPartition, local: LocalPartition, image: MetadataImage) -> None:
        partition = self._opened(where, local, image)
        is_elected = partition.leader_epoch != local.partition.leader_epoch
        partition.registration = local.partition
        partition.is_leader = True
        if is_elected:
            partition.log.assign_epoch(local.partition.leader_epoch)
        partition.advanced()

    def _opened(
        self, where: TopicPartition, local: LocalPartition, image: MetadataImage
    ) -> Partition:
        found = self._all.get(where)
        if found is None or found.topic_id != local.topic_id:
            log = next(
                (log for logs in self.logs.values() if (log := logs.get(*where)) is not None), None
            )
            if log is None:
                emptiest = min(self.logs.values(), key=len)
                log = emptiest.create(*where, local.topic_id)
                log.configure(self._config_of(image, where.topic))
            found = self._all[where] = Partition(log, local.topic_id)
        return found

    def _delete(self, where: TopicPartition) -> None:
        gone = self._all.pop(where, None)
        for logs in self.logs.values():
            logs.delete(*where)
        if gone is not None:
            gone.is_leader = False
            gone.wake()

    def _configure(self, delta: MetadataDelta, image: MetadataImage) -> None:
        for (topic, _), partition in self._all.items():
            partition.log.configure(self._config_of(image, topic))
