"""The partitions of this broker: which it leads, and the logs that are theirs.

A publisher, in Kafka's order: what has to go first (deletions, and at the first image whatever the
metadata does not have here), then leaders, then followers, then topics' configs. A log is looked
for in every directory; a new one goes to the directory that the metadata names, else to the one
with the fewest. Where metadata and disk differ, the disk is right and `assignments` says so.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Final

import msgspec

from kraftline.broker.cleaning import CleanerThreads
from kraftline.broker.moving import Moves
from kraftline.broker.partition import Partition
from kraftline.broker.upkeep import Upkeep
from kraftline.config.effective import Config
from kraftline.metadata.image import MetadataDelta, MetadataImage
from kraftline.metadata.image.configs import BROKER, TOPIC
from kraftline.metadata.image.local_changes import LocalChanges, LocalPartition, TopicPartition
from kraftline.metadata.image.topics import TopicsImage
from kraftline.metadata.loader import LeaderAndEpoch, Manifest, MetadataPublisher
from kraftline.metadata.partition import UNASSIGNED
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.uuids import Uuid
from kraftline.storage.log import (
    DirectoryOffline,
    InconsistentTopicId,
    LogConfig,
    Logs,
    PartitionLog,
    StorageFailed,
)

_logger = logging.getLogger(__name__)

_MOVING_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"
# So many new logs take longer than a turn of the event loop should.
_MANY: Final = 20


class Partitions(MetadataPublisher):
    """`logs` are those of each log directory, by its id. `config_of` gives what a topic's log is
    kept by. `threads` do what takes the disk's time for requests. `missing` is how many more
    directories there should be, which could not be opened."""

    def __init__(
        self,
        broker_id: int,
        logs: Mapping[Uuid, Logs],
        config_of: Callable[[MetadataImage, str], LogConfig],
        config: Config,
        missing: int = 0,
    ) -> None:
        self.broker_id = broker_id
        self.logs = logs
        self.threads = ThreadPoolExecutor(2 + 2 * len(logs), thread_name_prefix="logs")
        # Replicas whose directory the metadata does not know, or knows otherwise: by topic id and
        # partition, the id of the directory that they are in.
        self.assignments: dict[tuple[Uuid, int], Uuid] = {}
        self.first_published = False
        # Directories that get new logs only where there are no others.
        self.cordoned: frozenset[Uuid] = frozenset()
        self._config_of = config_of
        self._directories = len(logs) + missing
        self._all: dict[tuple[str, int], Partition] = {}
        self._offline: set[tuple[str, int]] = set()
        self.moves = Moves(self)
        self._upkeep = Upkeep(tuple(logs.values()), config)
        self.cleaner_threads = CleanerThreads(tuple(logs.values()), config)
        # Told the id of a directory that has gone offline.
        self.on_directory_failure: Callable[[Uuid], None] | None = None
        # Called when there is a new one of `assignments` that no metadata led to.
        self.on_assignment: Callable[[], None] | None = None

    @property
    def name(self) -> str:
        return "Partitions"

    @property
    def offline_count(self) -> int:
        """Replicas whose log cannot be used."""
        return len(self._offline) + sum(each.is_offline for each in self._all.values())

    def get(self, topic: str, partition: int) -> Partition | None:
        return self._all.get((topic, partition))

    def find(self, topic: str, partition: int, topics: TopicsImage) -> Partition | ErrorCode:
        """A partition that can be used, or what a client is told of one that cannot."""
        found = self._all.get((topic, partition))
        if found is not None:
            return ErrorCode.KAFKA_STORAGE_ERROR if found.is_offline else found
        image = topics.named(topic)
        if image is None or image.partition(partition) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if (topic, partition) in self._offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NOT_LEADER_OR_FOLLOWER

    def __iter__(self) -> Iterator[Partition]:
        return iter(tuple(self._all.values()))

    def __len__(self) -> int:
        return len(self._all)

    def moved(self, partition: Partition) -> None:
        """A replica is in another directory now: the controller is to know."""
        log = partition.log
        actual = next(key for key, each in self.logs.items() if each.disk is log.disk)
        self.assignments[partition.topic_id, log.partition] = actual
        if self.on_assignment is not None:
            self.on_assignment()

    async def prepare(self, delta: MetadataDelta) -> None:
        """Make the logs of many new partitions in a thread, before their publication finds them:
        the event loop has other work than to wait for a thousand directories. Whatever fails here
        is tried again there, and told."""
        if delta.topics is None or not self.first_published:
            return
        changes = delta.topics.local_changes(self.broker_id)
        new = [
            (where, local)
            for where, local in chain(changes.leaders.items(), changes.followers.items())
            if where not in self._all
            and where not in self._offline
            # One that takes the place of another of its name waits until that is gone.
            and where not in changes.deletes
        ]
        if len(new) < _MANY:
            return
        configs = delta.image.configs if delta.configs is None else delta.configs.apply()
        image = msgspec.structs.replace(delta.image, configs=configs)
        await asyncio.get_running_loop().run_in_executor(self.threads, self._make, new, image)

    def on_metadata_update(
        self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest
    ) -> None:
        if not self.first_published:
            self._set_strays_aside(image.topics)
            self._drop_second_copies(image.topics)
        if delta.topics is not None:
            self._apply(delta.topics.local_changes(self.broker_id), image)
        if delta.configs is not None and self.first_published:
            self._configure(delta, image)
        if not self.first_published:
            self.first_published = True
            self.moves.bytes_per_second = self._moving_rate(image)
            self.moves.resume()
            self._upkeep.start(self._directory_failed)
            self.cleaner_threads.start()

    def on_controller_change(self, leader: LeaderAndEpoch) -> None:
        """Makes no difference here."""

    async def close(self) -> None:
        """The logs are closed by whoever opened them."""
        await self.moves.close()
        await self._upkeep.stop()
        await self.cleaner_threads.stop()
        await asyncio.to_thread(self.threads.shutdown)

    def flush_later(self, partition: Partition) -> None:
        """A segment was closed: it is flushed without anyone waiting."""
        self.threads.submit(_flush, partition.log)

    def _set_strays_aside(self, topics: TopicsImage) -> None:
        """A log that the metadata does not give to this broker keeps its files under another name.
        One without a topic id never had data."""
        for logs in self.logs.values():
            for log in logs:
                known = log.topic_id and topics.partition(log.topic_id, log.partition)
                if not known or self.broker_id not in known.replicas:
                    _logger.warning(
                        "%s: the metadata has no such partition on this broker; its files are set "
                        "aside",
                        log.directory,
                    )
                    _attempt(partial(logs.set_aside, log.topic, log.partition), log.directory)

    def _drop_second_copies(self, topics: TopicsImage) -> None:
        """A crash at the end of a move leaves the log in both directories, with the same in it."""
        places: dict[tuple[str, int], list[tuple[int, bool, Logs]]] = {}
        for key, logs in self.logs.items():
            for log in logs:
                known = (
                    None if log.topic_id is None else topics.partition(log.topic_id, log.partition)
                )
                is_named = known is not None and known.directory(self.broker_id) == key
                found = places.setdefault((log.topic, log.partition), [])
                found.append((log.end_offset, is_named, logs))
        for where, found in places.items():
            if len(found) > 1:
                kept = max(found, key=itemgetter(0, 1))
                for each in found:
                    if each is not kept:
                        _logger.warning(
                            "%s-%d is in two log directories; the copy in %s goes",
                            *where,
                            each[2].path,
                        )
                        _attempt(partial(each[2].delete, *where), each[2].path)

    def _apply(self, changes: LocalChanges, image: MetadataImage) -> None:
        for where in changes.deletes:
            self._delete(where)
        for where, local in changes.leaders.items():
            partition = self._opened(where, local, image)
            if partition is not None:
                partition.lead(local.partition)
        for where, local in changes.followers.items():
            partition = self._opened(where, local, image)
            if partition is not None:
                partition.follow(local.partition)
        for topic_id, topic, number in changes.directory_ids:
            self._note_assignment(topic_id, TopicPartition(topic, number), image)

    def _opened(
        self, where: TopicPartition, local: LocalPartition, image: MetadataImage
    ) -> Partition | None:
        found = self._all.get(where)
        if found is not None and found.topic_id == local.topic_id:
            return found
        try:
            log = self._log(where, local, image)
        except (StorageFailed, InconsistentTopicId) as problem:
            _logger.error("%s-%d is offline: %s", *where, problem)
            self._offline.add(where)
            self._all.pop(where, None)
            return None
        self._offline.discard(where)
        found = self._all[where] = Partition(self.broker_id, log, local.topic_id)
        return found

    def _log(
        self, where: TopicPartition, local: LocalPartition, image: MetadataImage
    ) -> PartitionLog:
        config = self._config_of(image, where.topic)
        for logs in self.logs.values():
            log = logs.get(*where)
            if log is not None:
                log.claim(local.topic_id)
                log.configure(config)
                return log
        named = local.partition.directory(self.broker_id)
        online = {key: each for key, each in self.logs.items() if each.disk.failure is None}
        # The log may be in the directory that is not there. One that the metadata gave no directory
        # may be anywhere, unless it is new: nothing that the first image has is.
        is_old = not self.first_published or where in self._offline
        is_elsewhere = named != UNASSIGNED or is_old
        if named not in online and is_elsewhere and len(online) < self._directories:
            raise DirectoryOffline("its log directory is offline")
        if not online:
            raise DirectoryOffline("every log directory is offline")
        target = None if named is None else online.get(named)
        if target is None:
            open_to_new = [each for key, each in online.items() if key not in self.cordoned]
            target = min(open_to_new or online.values(), key=len)
        return target.create(*where, local.topic_id, config)

    def _make(
        self, new: Iterable[tuple[TopicPartition, LocalPartition]], image: MetadataImage
    ) -> None:
        for where, local in new:
            with contextlib.suppress(StorageFailed, InconsistentTopicId):
                self._log(where, local, image)

    def _note_assignment(self, topic_id: Uuid, where: TopicPartition, image: MetadataImage) -> None:
        partition = self._all.get(where)
        known = image.topics.partition(topic_id, where.partition)
        if partition is None or known is None:
            return
        actual = next(key for key, logs in self.logs.items() if logs.get(*where) is partition.log)
        if known.directory(self.broker_id) == actual:
            self.assignments.pop((topic_id, where.partition), None)
        else:
            self.assignments[topic_id, where.partition] = actual

    def _delete(self, where: TopicPartition) -> None:
        gone = self._all.pop(where, None)
        self._offline.discard(where)
        for logs in self.logs.values():
            _attempt(partial(logs.delete, *where), f"{where.topic}-{where.partition}")
        if gone is not None:
            self.assignments.pop((gone.topic_id, where.partition), None)
            gone.stop()

    def _configure(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Topics whose configs changed; all of them where the broker's own did."""
        assert delta.configs is not None
        changed = delta.configs.changes
        brokers = {(BROKER, ""), (BROKER, str(self.broker_id))}
        everything = not brokers.isdisjoint(changed)
        if everything:
            self.moves.bytes_per_second = self._moving_rate(image)
        configs: dict[str, LogConfig] = {}
        for (topic, _), partition in self._all.items():
            if everything or (TOPIC, topic) in changed:
                if topic not in configs:
                    configs[topic] = self._config_of(image, topic)
                partition.log.configure(configs[topic])

    def _moving_rate(self, image: MetadataImage) -> float:
        """How many bytes a second may go from one log directory to another."""
        for name in (str(self.broker_id), ""):
            value = image.configs.of(BROKER, name).get(_MOVING_RATE)
            if value is not None:
                return int(value)
        return math.inf

    def _directory_failed(self, logs: Logs) -> None:
        """A directory is offline from now on: nobody shall wait for its partitions."""
        for partition in self:
            if partition.log.disk is logs.disk:
                partition.wake()
        if self.on_directory_failure is not None:
            self.on_directory_failure(next(key for key, each in self.logs.items() if each is logs))


def _attempt(work: Callable[[], object], what: str) -> None:
    try:
        work()
    except StorageFailed as problem:
        _logger.error("%s: %s", what, problem)


def _flush(log: PartitionLog) -> None:
    _attempt(log.flush, log.name)
