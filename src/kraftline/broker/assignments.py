"""Tells the controller in which directories the replicas of this broker are.

A publisher, behind the partitions: whatever they found to be elsewhere than the metadata says is
told, many at a time and one request after the other, until the metadata says so too.
"""

from __future__ import annotations

import asyncio
import logging
from itertools import islice
from typing import Final

from kraftline.broker.partitions import Partitions
from kraftline.controller.controller import Controller
from kraftline.errors import KraftlineError
from kraftline.metadata.image import MetadataDelta, MetadataImage
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

# What Kafka's brokers tell at once.
_MOST: Final = 2250


class DirectoryAssignments(MetadataPublisher):
    def __init__(self, controller: Controller, partitions: Partitions) -> None:
        self._controller = controller
        self._partitions = partitions
        self._task: asyncio.Task[None] | None = None
        self._told: dict[tuple[Uuid, int], Uuid] = {}

    @property
    def name(self) -> str:
        return "DirectoryAssignments"

    def on_metadata_update(
        self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest
    ) -> None:
        version = image.features.metadata_version
        wanted = self._partitions.assignments
        self._told = {key: at for key, at in self._told.items() if wanted.get(key) == at}
        is_known = image.cluster.brokers.get(self._partitions.broker_id) is not None
        if version is not None and version.directory_assignment_supported and is_known:
            self._tell(image)

    def on_controller_change(self, leader: LeaderAndEpoch) -> None:
        """Makes no difference here."""

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _tell(self, image: MetadataImage) -> None:
        if self._task is not None and not self._task.done():
            return
        wanted = self._partitions.assignments
        new = {key: at for key, at in wanted.items() if self._told.get(key) != at}
        if new:
            self._task = asyncio.create_task(self._tell_all(image), name="directory-assignments")

    async def _tell_all(self, image: MetadataImage) -> None:
        broker = self._partitions.broker_id
        epoch = image.cluster.broker_epoch(broker)
        while True:
            wanted = self._partitions.assignments
            new = ((key, at) for key, at in wanted.items() if self._told.get(key) != at)
            some = dict(islice(new, _MOST))
            if not some:
                return
            try:
                response = await self._controller.assign_replicas_to_dirs(
                    _request(broker, epoch, some)
                )
            except KraftlineError as problem:
                _logger.warning("directories of replicas were not told: %s", problem)
                return
            if response.error_code == ErrorCode.STALE_BROKER_EPOCH:
                return  # of an earlier life: the registration of this one is the next update
            if response.error_code:
                code = ErrorCode(response.error_code).name
                _logger.warning("the controller does not take directories of replicas: %s", code)
                return
            self._told |= some


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
