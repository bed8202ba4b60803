"""One topic: its partitions, and what changed in them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import msgspec

from kraftline.metadata.faults import ReplayError
from kraftline.metadata.image.local_changes import LocalChanges, add_local_changes
from kraftline.metadata.image.partitions import Partitions, changed, in_rows
from kraftline.metadata.partition import RECOVERING, USUAL, PartitionRegistration, from_record
from kraftline.metadata.write_options import Versioned, WriteOptions
from kraftline.schema.metadata.partition_change_record import PartitionChangeRecord
from kraftline.schema.metadata.partition_record import PartitionRecord
from kraftline.schema.metadata.topic_record import TopicRecord
from kraftline.schema.uuids import Uuid


class TopicImage(msgspec.Struct, frozen=True, gc=False):
    """`partitions` are in the order of their ids, which are 0, 1, 2 ... unless `sparse` names them:
    only a log that no controller wrote leaves holes."""

    name: str
    id: Uuid
    partitions: Partitions = ()
    sparse: tuple[int, ...] | None = None

    @property
    def partition_ids(self) -> Sequence[int]:
        return range(len(self.partitions)) if self.sparse is None else self.sparse

    def partition(self, partition: int) -> PartitionRegistration | None:
        at = partition
        if self.sparse is not None:
            at = bisect_left(self.sparse, partition)
            if at == len(self.sparse) or self.sparse[at] != partition:
                return None
        return self.partitions[at] if 0 <= at < len(self.partitions) else None

    def items(self) -> Iterable[tuple[int, PartitionRegistration]]:
        """Partitions with their ids."""
        if self.sparse is None:
            return enumerate(self.partitions)
        return zip(self.sparse, self.partitions, strict=True)

    def write(self, options: WriteOptions) -> Iterator[Versioned]:
        yield TopicRecord(name=self.name, topic_id=self.id), 0
        version = options.version.partition_record_version
        for partition, registration in self.items():
            yield registration.to_record(self.id, partition, options), version


class Elections(msgspec.Struct, gc=False):
    """How often each partition got a leader that may lack records, or one out of its ELR."""

    unclean: dict[int, int] = {}
    eligible: dict[int, int] = {}


class TopicDelta(msgspec.Struct, gc=False):
    """`changes` has the partitions that are new or different, as they stand; `elections` is made
    when the first is counted."""

    image: TopicImage
    changes: dict[int, PartitionRegistration] = {}
    elections: Elections | None = None

    @property
    def name(self) -> str:
        return self.image.name

    @property
    def id(self) -> Uuid:
        return self.image.id

    def partition(self, partition: int) -> PartitionRegistration | None:
        """The partition as it stands in this delta."""
        return self.changes.get(partition) or self.image.partition(partition)

    def replay_partition(self, record: PartitionRecord) -> None:
        partition, changes = record.partition_id, self.changes
        after = from_record(record)
        if partition in changes or self.image.partitions:
            before = self.partition(partition)
            if before is not None:
                self._count_election(partition, before, record)
        changes[partition] = after

    def replay_change(self, record: PartitionChangeRecord) -> None:
        partition, changes = record.partition_id, self.changes
        before = changes.get(partition)
        if before is None:
            before = self.image.partition(partition)
            if before is None:
                raise ReplayError(
                    f"Unable to find partition {record.topic_id}:{partition}", record=record
                )
        after = before.merge(record)
        if before.unusual is not USUAL or record.leader_recovery_state == RECOVERING:
            self._count_election(partition, before, record)
        changes[partition] = after

    def _count_election(
        self,
        partition: int,
        before: PartitionRegistration,
        record: PartitionRecord | PartitionChangeRecord,
    ) -> None:
        unclean = record.leader_recovery_state == RECOVERING
        eligible = record.leader in before.elr
        if not unclean and not eligible:
            return
        if self.elections is None:
            self.elections = Elections()
        if unclean:
            counts = self.elections.unclean
            counts[partition] = counts.get(partition, 0) + 1
        if eligible:
            counts = self.elections.eligible
            counts[partition] = counts.get(partition, 0) + 1

    def clear_elr(self) -> None:
        for partition in (*self.changes, *self.image.partition_ids):
            found = self.partition(partition)
            # One in both places is empty when it comes the second time.
            if found is not None and (found.elr or found.last_known_elr):
                self.changes[partition] = found.without_elr()

    def apply(self) -> TopicImage:
        """The same image if all is as before."""
        image, changes = self.image, self.changes
        if not changes:
            return image
        before = image.partitions
        if image.sparse is None:
            if before or tuple(changes) != _first(len(changes)):
                after = changed(before, changes)
            else:
                after = in_rows(changes.values())
            if after is not None:
                return image if after == before else TopicImage(image.name, image.id, after)
        both = {**dict(image.items()), **changes}
        ids = tuple(sorted(both))
        sparse = None if ids == _first(len(ids)) else ids
        after = in_rows([both[partition] for partition in ids])
        if after == before and sparse == image.sparse:
            return image
        return TopicImage(image.name, image.id, after, sparse)

    def local_changes(self, broker: int) -> LocalChanges:
        """What this delta means to one broker."""
        out = LocalChanges()
        add_local_changes(out, broker, self.image, self.changes)
        return out


@lru_cache(64)
def _first(count: int) -> tuple[int, ...]:
    return tuple(range(count))
