"""How the controller is told of directories: in batches, again if refused, and nothing stale."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kraftline.broker.assignments import DirectoryAssignments
from kraftline.errors import KraftlineError
from kraftline.metadata.image import MetadataDelta, MetadataImage, Provenance
from kraftline.metadata.loader.manifests import SnapshotManifest
from kraftline.schema.api.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    AssignReplicasToDirsResponseDirectoryData,
    AssignReplicasToDirsResponsePartitionData,
    AssignReplicasToDirsResponseTopicData,
)
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.uuids import Uuid
from tests.broker.scripted import run, until
from tests.controller.broker_stories import directory
from tests.controller.images import broker, image_of

TOPIC = Uuid(bytes(15) + b"\xaa")


class Partitions:
    """What they found, for one broker."""

    broker_id = 1

    def __init__(self, count: int) -> None:
        self.assignments = {(TOPIC, number): directory(1) for number in range(count)}


class Controller:
    """Takes what it is told, but for what `answers` says first: an error, or an exception, or a
    partition that is refused."""

    def __init__(self, *answers: ErrorCode | KraftlineError | int) -> None:
        self.told: list[AssignReplicasToDirsRequest] = []
        self._answers = list(answers)

    async def assign_replicas_to_dirs(
        self, request: AssignReplicasToDirsRequest
    ) -> AssignReplicasToDirsResponse:
        self.told.append(request)
        await asyncio.sleep(0)
        answer = self._answers.pop(0) if self._answers else ErrorCode.NONE
        if isinstance(answer, KraftlineError):
            raise answer
        if isinstance(answer, ErrorCode):
            return AssignReplicasToDirsResponse(error_code=answer)
        refused = AssignReplicasToDirsResponsePartitionData(
            partition_index=answer, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )
        topic = AssignReplicasToDirsResponseTopicData(topic_id=TOPIC, partitions=(refused,))
        place = AssignReplicasToDirsResponseDirectoryData(id=directory(1), topics=(topic,))
        return AssignReplicasToDirsResponse(directories=(place,))

    @property
    def numbers(self) -> list[list[int]]:
        """The partitions of each request."""
        return [
            [
                each.partition_index
                for place in request.directories
                for topic in place.topics
                for each in topic.partitions
            ]
            for request in self.told
        ]


def publish(assignments: DirectoryAssignments, image: MetadataImage | None = None) -> None:
    image = image_of(broker(1)) if image is None else image
    manifest = SnapshotManifest(Provenance(), 0)
    assignments.on_metadata_update(MetadataDelta(image), image, manifest)


def play(partitions: Partitions, controller: Controller, is_done: Callable[[], bool]) -> None:
    async def main() -> None:
        assignments = DirectoryAssignments(controller, partitions)  # type: ignore[arg-type]  # all that is asked of them
        publish(assignments)
        await until(is_done)
        await assignments.close()

    run(main())


def test_more_than_a_request_holds_is_told_in_batches_one_after_the_other() -> None:
    controller = Controller()
    play(Partitions(5_000), controller, lambda: len(controller.told) == 3)
    assert [len(each) for each in controller.numbers] == [2250, 2250, 500]
    assert controller.told[0].broker_epoch == 1


def test_what_is_refused_is_told_again() -> None:
    controller = Controller(1)
    play(Partitions(3), controller, lambda: len(controller.told) == 2)
    assert controller.numbers == [[0, 1, 2], [1]]


def test_a_controller_that_cannot_is_asked_again_after_a_pause_that_doubles() -> None:
    controller = Controller(
        ErrorCode.STALE_BROKER_EPOCH, KraftlineError("away"), ErrorCode.NOT_CONTROLLER
    )

    async def main() -> None:
        assignments = DirectoryAssignments(controller, Partitions(1))  # type: ignore[arg-type]  # all that is asked of them
        loop = asyncio.get_running_loop()
        began = loop.time()
        publish(assignments)
        await until(lambda: len(controller.told) == 4)
        assert loop.time() - began >= 0.1 + 0.2 + 0.4
        await assignments.close()

    run(main())


def test_what_is_out_of_date_by_then_is_not_told_again() -> None:
    partitions = Partitions(2)
    controller = Controller(KraftlineError("away"))

    async def main() -> None:
        assignments = DirectoryAssignments(controller, partitions)  # type: ignore[arg-type]  # all that is asked of them
        publish(assignments)
        await until(lambda: len(controller.told) == 1)
        del partitions.assignments[TOPIC, 0]  # deleted, or the metadata says so by now
        await until(lambda: len(controller.told) == 2)
        await assignments.close()

    run(main())
    assert controller.numbers == [[0, 1], [1]]


def test_nothing_is_told_of_a_broker_that_is_not_registered() -> None:
    controller = Controller()

    async def main() -> None:
        assignments = DirectoryAssignments(controller, Partitions(1))  # type: ignore[arg-type]  # all that is asked of them
        publish(assignments, image_of())
        publish(assignments, image_of(broker(1), level=16))  # knows no directories
        await asyncio.sleep(0)
        await assignments.close()

    run(main())
    assert not controller.told
