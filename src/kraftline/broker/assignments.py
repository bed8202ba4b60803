"""Tells the controller in which directories the replicas of this broker are.

A publisher, behind the partitions: whatever they found to be elsewhere than the metadata says is
told, many at a time and one request after the other, until the metadata says so too. What the
controller does not take is told again, after a pause that doubles; what is out of date by then is
not told any more.
"""

from __future__ import annotations

import asyncio
import logging
from itertools import islice
from typing import Final

from kraftline.broker.partitions import Partitions
from kraftline.controller.controller import Controller
from kraftline.errors import KraftlineError
from kraftline.metadata.image import EMPTY, MetadataDelta, MetadataImage
from kraftline.metadata.loader import LeaderAndEpoch, Manifest, MetadataPublisher
from kraftline.schema.api.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsRequestDirectoryData,
    AssignReplicasToDirsRequestPartitionData,
    AssignReplicasToDirsRequestTopicData,
)
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.uuids import Uuid

_logger = logging.getLogger(__name__)

# What Kafka's brokers tell at once, and how long they wait before they tell it again (s).
_MOST: Final = 2250
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 10.0


class DirectoryAssignments(MetadataPublisher):
    def __init__(self, controller: Controller, partitions: Partitions) -> None:
        self._controller = controller
        self._partitions = partitions
        self._task: asyncio.Task[None] | None = None
        self._told: dict[tuple[Uuid, int], Uuid] = {}
        self._image: MetadataImage = EMPTY
        partitions.on_assignment = self._look

    @property
    def name(self) -> str:
        return "DirectoryAssignments"

    def on_metadata_update(
        self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest
    ) -> None:
        wanted = self._partitions.assignments
        self._image = image
        self._told = {key: at for key, at in self._told.items() if wanted.get(key) == at}
        self._look()

    def on_controller_change(self, leader: LeaderAndEpoch) -> None:
        """Makes no difference here."""

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _look(self) -> None:
        """Is there something to tell, and somebody who takes it?"""
        version = self._image.features.metadata_version
        is_known = self._image.cluster.brokers.get(self._partitions.broker_id) is not None
        is_taken = version is not None and version.directory_assignment_supported and is_known
        if is_taken and (self._task is None or self._task.done()) and self._untold():
            self._task = asyncio.create_task(self._tell_all(), name="directory-assignments")

    def _untold(self) -> dict[tuple[Uuid, int], Uuid]:
        """Some that the controller has not taken yet, as they are now."""
        wanted = self._partitions.assignments
        return dict(
            islice(((key, at) for key, at in wanted.items() if self._told.get(key) != at), _MOST)
        )

    async def _tell_all(self) -> None:
        pause = _FIRST_PAUSE
        while some := self._untold():
            if await self._told_some(some):
                pause = _FIRST_PAUSE
                continue
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _told_some(self, some: dict[tuple[Uuid, int], Uuid]) -> bool:
        """Whether the controller took all of them."""
        broker = self._partitions.broker_id
        epoch = self._image.cluster.broker_epoch(broker)
        try:
            response = await self._controller.assign_replicas_to_dirs(_request(broker, epoch, some))
        except KraftlineError as problem:
            _logger.warning("directories of replicas were not told: %s", problem)
            return False
        if response.error_code:
            # A stale epoch is that of an earlier life: the registration of this one comes soon.
            if response.error_code != ErrorCode.STALE_BROKER_EPOCH:
                code = ErrorCode(response.error_code).name
                _logger.warning("the controller does not take directories of replicas: %s", code)
            return False
        refused = {
            (topic.topic_id, each.partition_index): ErrorCode(each.error_code).name
            for directory in response.directories
            for topic in directory.topics
            for each in topic.partitions
            if each.error_code
        }
        for (topic_id, number), code in refused.items():
            _logger.warning("the directory of %s-%d is not taken: %s", topic_id, number, code)
        self._told |= {key: at for key, at in some.items() if key not in refused}
        return not refused


def _request(
    broker: int, epoch: int, assignments: dict[tuple[Uuid, int], Uuid]
) -> AssignReplicasToDirsRequest:
    by_directory: dict[Uuid, dict[Uuid, list[int]]] = {}
    for (topic, partition), directory in assignments.items():
        by_directory.setdefault(directory, {}).setdefault(topic, []).append(partition)
    return AssignReplicasToDirsRequest(
        broker_id=broker,
        broker_epoch=epoch,
        directories=tuple(
            AssignReplicasToDirsRequestDirectoryData(
                id=directory,
                topics=tuple(
                    AssignReplicasToDirsRequestTopicData(
                        topic_id=topic,
                        partitions=tuple(
                            AssignReplicasToDirsRequestPartitionData(partition_index=each)
                            for each in partitions
                        ),
                    )
                    for topic, partitions in topics.items()
                ),
            )
            for directory, topics in by_directory.items()
        ),
    )
