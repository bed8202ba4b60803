"""What happened to a topic as a whole: created, deleted, grown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from kraftline.metadata.partition import PartitionRegistration
from kraftline.metadata.words.change import Change
from kraftline.metadata.words.values import config_value, numbers, plural
from kraftline.schema.uuids import Uuid


def topic_created(
    name: str,
    topic_id: Uuid,
    partitions: Mapping[int, PartitionRegistration],
    configs: Mapping[str, str] | None = None,
) -> Change:
    """`configs` are those that it was created with."""
    text = f"topic {name} created: {shape(partitions)}"
    if configs:
        said = [f"{key} {config_value(key, value)}" for key, value in sorted(configs.items())]
        text += f"; {', '.join(said)}"
    return Change(
        kind="topic.created",
        subject=f"topic {name}",
        text=text,
        after={
            "topic_id": str(topic_id),
            "partitions": len(partitions),
            "replicas": {str(number): list(p.replicas) for number, p in partitions.items()},
        },
        topic=name,
    )


def topic_deleted(
    name: str, topic_id: Uuid, partitions: Mapping[int, PartitionRegistration]
) -> Change:
    return Change(
        kind="topic.deleted",
        subject=f"topic {name}",
        text=f"topic {name} deleted (it had {shape(partitions)})",
        before={"topic_id": str(topic_id), "partitions": len(partitions)},
        topic=name,
    )


def partitions_added(name: str, added: Mapping[int, PartitionRegistration], total: int) -> Change:
    before, more = total - len(added), plural(len(added), "partition")
    where = ""
    if len(added) == 1:
        ((number, partition),) = added.items()
        where = f": {name}-{number} on {numbers(partition.replicas)}"
    return Change(
        kind="partitions.added",
        subject=f"topic {name}",
        text=f"topic {name} got {more} more ({before} -> {total}){where}",
        before={"partitions": before},
        after={
            "partitions": total,
            "replicas": {str(number): list(p.replicas) for number, p in added.items()},
        },
        topic=name,
    )


def partitions_removed(name: str, removed: Mapping[int, PartitionRegistration]) -> Change:
    """No Kafka does this; two images may differ so all the same."""
    return Change(
        kind="partitions.removed",
        subject=f"topic {name}",
        text=f"topic {name} has {plural(len(removed), 'partition')} less: {numbers(removed)}",
        before=list(removed),
        topic=name,
    )


def elr_cleared(name: str) -> Change:
    """`name` is empty for all topics."""
    what = f"topic {name}" if name else "all topics"
    return Change(
        kind="elr.cleared",
        subject=what,
        text=f"eligible leader replicas of {what} were cleared: min.insync.replicas was set",
        topic=name or None,
        minor=True,
    )


def shape(partitions: Mapping[int, PartitionRegistration]) -> str:
    """`12 partitions with 3 replicas`; where they differ, the most usual first."""
    factors = Counter(len(each.replicas) for each in partitions.values())
    if not factors:
        return "no partitions"
    said = " or ".join(str(factor) for factor, _ in factors.most_common())
    plain = said == "1"
    return f"{plural(len(partitions), 'partition')} with {said} replica{'' if plain else 's'}"
