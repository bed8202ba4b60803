"""Partitions that come to be: which replicas they may be given, and their records."""

from __future__ import annotations

from collections.abc import Sequence

from kraftline.controller import leaders
from kraftline.controller.refusal import Refusal
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.write_options import Versioned
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.metadata.partition_record import PartitionRecord
from kraftline.schema.uuids import Uuid


def check_assignment(
    image: MetadataImage, number: int, replicas: Sequence[int], factor: int | None
) -> None:
    """Refusal of replicas that a new partition cannot have; `factor` is how many others have."""
    check_replicas(image, replicas, factor)
    if not any(leaders.is_active(image, each) for each in replicas):
        raise bad_assignment(
            "All brokers specified in the manual partition assignment for partition "
            f"{number} are fenced or in controlled shutdown."
        )


def check_replicas(image: MetadataImage, replicas: Sequence[int], factor: int | None) -> None:
    """Refusal of replicas that no partition can have."""
    the = "The manual partition assignment includes"
    if not replicas:
        raise bad_assignment(f"{the} an empty replica list.")
    before = None
    for broker in sorted(replicas):
        if broker not in image.cluster.brokers:
            raise bad_assignment(f"{the} broker {broker}, but no such broker is registered.")
        if broker == before:
            raise bad_assignment(f"{the} the broker {broker} more than once.")
        before = broker
    count = len(replicas)
    if factor is not None and count != factor:
        raise bad_assignment(
            f"{the} a partition with {count} replica(s), but this is not consistent with previous "
            f"partitions, which have {factor} replica(s)."
        )


def bad_assignment(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)


def partition_records(
    image: MetadataImage, topic_id: Uuid, placed: Sequence[tuple[int, ...]], first: int = 0
) -> list[Versioned]:
    """Partitions from a number on, each in sync wherever its brokers are up."""
    version = image.features.metadata_version
    assert version is not None
    active = {each for each in image.cluster.brokers if leaders.is_active(image, each)}
    directory = {each: leaders.default_directory(image, each) for each in image.cluster.brokers}
    records: list[Versioned] = []
    for number, replicas in enumerate(placed, first):
        isr = tuple(each for each in replicas if each in active)
        record = PartitionRecord(
            partition_id=number,
            topic_id=topic_id,
            replicas=replicas,
            isr=isr,
            leader=isr[0],
            leader_epoch=0,
            partition_epoch=0,
            directories=(
                tuple(directory[each] for each in replicas)
                if version.directory_assignment_supported
                else ()
            ),
        )
        records.append((record, version.partition_record_version))
    return records
