"""Committing, reading and deleting offsets: what is right, what is odd, in every version."""

from __future__ import annotations

from typing import Any

from kraftline.schema.api.delete_groups import DeleteGroupsRequest
from kraftline.schema.api.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kraftline.schema.api.describe_groups import DescribeGroupsRequest
from kraftline.schema.api.find_coordinator import FindCoordinatorRequest
from kraftline.schema.api.list_groups import ListGroupsRequest
from kraftline.schema.api.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kraftline.schema.api.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kraftline.schema.api.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kraftline.schema.uuids import Uuid
from tests.broker.stories import STRANGE
from tests.groups.telling import Groups, Story, but, joined, subscription, syncing

Topic = tuple[str, Uuid]


def commit(
    group: str,
    *topics: tuple[Topic, tuple[tuple[Any, ...], ...]],
    version: int = 9,
    **fields: Any,
) -> OffsetCommitRequest:
    """Of each topic partitions, offsets, and perhaps metadata and leader epochs."""
    return OffsetCommitRequest(
        group_id=group,
        topics=tuple(
            OffsetCommitRequestTopic(
                name=topic[0] if version < 10 else "",
                topic_id=topic[1] if version >= 10 else Uuid(bytes(16)),
                partitions=tuple(
                    OffsetCommitRequestPartition(
                        partition_index=each[0],
                        committed_offset=each[1],
                        committed_metadata=each[2] if len(each) > 2 else "",
                        committed_leader_epoch=each[3] if len(each) > 3 and version >= 6 else -1,
                    )
                    for each in partitions
                ),
            )
            for topic, partitions in topics
        ),
        **fields,
    )


def fetch(
    group: str,
    *topics: tuple[Topic, tuple[int, ...]],
    version: int = 9,
    everything: bool = False,
    stable: bool = False,
    **fields: Any,
) -> OffsetFetchRequest:
    if version < 8:
        alone = tuple(
            OffsetFetchRequestTopic(name=topic[0], partition_indexes=numbers)
            for topic, numbers in topics
        )
        return OffsetFetchRequest(
            group_id=group,
            topics=None if everything else alone,
            require_stable=stable and version >= 7,
        )
    asked = tuple(
        OffsetFetchRequestTopics(
            name=topic[0] if version < 10 else "",
            topic_id=topic[1] if version >= 10 else Uuid(bytes(16)),
            partition_indexes=numbers,
        )
        for topic, numbers in topics
    )
    return OffsetFetchRequest(
        groups=(
            OffsetFetchRequestGroup(group_id=group, topics=None if everything else asked, **fields),
        ),
        require_stable=stable,
    )


def delete(group: str, *topics: tuple[str, tuple[int, ...]]) -> OffsetDeleteRequest:
    return OffsetDeleteRequest(
        group_id=group,
        topics=tuple(
            OffsetDeleteRequestTopic(
                name=name,
                partitions=tuple(
                    OffsetDeleteRequestPartition(partition_index=each) for each in partitions
                ),
            )
            for name, partitions in topics
        ),
    )


def commits_in_every_version(broker: Groups) -> list[object]:
    group = broker.group("g")
    topic = broker.topic("t", partitions=2)
    nowhere = ("nowhere", STRANGE)
    said = []
    for version in range(2, 11):
        request = commit(
            group,
            (topic, ((0, version, "note", 3), (1, 10 + version, None), (7, 1))),
            (nowhere, ((0, 5),)),
            version=version,
        )
        said.append(broker.ask(request, version))
        for reading in range(1, 11):
            asked = fetch(group, (topic, (1, 0, 7)), (nowhere, (0,)), version=reading)
            said.append(broker.ask(asked, reading))
    return said


def all_offsets_of_a_group(broker: Groups) -> list[object]:
    group = broker.group("g")
    topics = [broker.topic(name, partitions=3) for name in ("a", "b")]
    for at, topic in enumerate(topics):
        broker.ask(commit(group, (topic, ((0, at), (2, 7 + at)))), 9)
    said = []
    for version in range(2, 11):
        for stable in (False, True):
            said.append(broker.ask(fetch(group, version=version, everything=True), version))
            said.append(
                broker.ask(
                    fetch("no-group", version=version, everything=True, stable=stable), version
                )
            )
    return said


def several_groups_at_once(broker: Groups) -> list[object]:
    names = [broker.group(name) for name in ("one", "two")]
    topic = broker.topic("t")
    broker.ask(commit(names[0], (topic, ((0, 5),))), 9)
    said = []
    for version in (8, 9, 10):
        some = fetch(names[0], (topic, (0,)), version=version).groups[0]
        request = OffsetFetchRequest(
            groups=(
                some,
                but(some, group_id=names[1]),
                but(some, group_id="", topics=None),
                but(some, group_id="nobody", topics=None),
                but(some, topics=()),
            )
        )
        said.append(broker.ask(request, version))
    return said


def offsets_kept_for_a_time(broker: Groups) -> list[object]:
    group = broker.group("g")
    topic = broker.topic("t", partitions=3)
    said = []
    for version in (2, 3, 4):
        for partition, keep in enumerate((-1, 100_000, 0)):
            request = commit(
                group, (topic, ((partition, 5, "x"),)), version=version, retention_time_ms=keep
            )
            said.append(broker.ask(request, version))
    said.append(broker.ask(fetch(group, everything=True), 9))
    return said


def notes_of_all_sizes(broker: Groups) -> list[object]:
    group = broker.group("g")
    topic = broker.topic("t", partitions=4)
    said = []
    for version in (2, 7, 8, 9, 10):
        request = commit(
            group,
            (
                topic,
                (
                    (0, 1, "x" * 4096),
                    (1, 2, "x" * 4097),
                    (2, 3, "\N{GREEK SMALL LETTER ALPHA}" * 4096),
                    (3, 4, "\N{GRINNING FACE}" * 2049),
                ),
            ),
            version=version,
        )
        said.append(broker.ask(request, version))
    said.append(broker.ask(fetch(group, everything=True), 9))
    return said


def commits_of_nobody(broker: Groups) -> list[object]:
    """Members, generations and instances of groups that are not there, or have no members."""
    topic = broker.topic("t")
    said = []
    for version in (2, 7, 8, 9, 10):
        for who in ("", "somebody"):
            for generation in (-1, -2, 0, 3):
                for instance in (None, "i") if version >= 7 else (None,):
                    group = broker.group(f"g-{version}-{who}-{generation}-{instance}")
                    request = commit(
                        group,
                        (topic, ((0, 1),)),
                        version=version,
                        member_id=who,
                        generation_id_or_member_epoch=generation,
                        group_instance_id=instance,
                    )
                    said += [broker.ask(request, version), broker.ask(request, version)]
    return said


def groups_without_a_name(broker: Groups) -> list[object]:
    topic = broker.topic("t")
    said = [
        broker.ask(commit("", (topic, ((0, 1),)), version=version), version)
        for version in (2, 8, 9, 10)
    ]
    said.append(broker.ask(fetch("", (topic, (0,))), 9))
    said.append(broker.ask(delete("", (topic[0], (0,))), 0))
    said += [broker.ask(DescribeGroupsRequest(groups=("",)), version) for version in range(7)]
    said.append(broker.ask(DeleteGroupsRequest(groups_names=("",)), 2))
    return said


def offsets_deleted(broker: Groups) -> list[object]:
    group = broker.group("g")
    topic, other = broker.topic("t", partitions=3), broker.topic("other")
    said = [broker.ask(delete(group, (topic[0], (0,))), 0)]
    broker.ask(commit(group, (topic, ((0, 1), (1, 2), (2, 3))), (other, ((0, 9),))), 9)
    said.append(
        broker.ask(delete(group, (topic[0], (0, 2, 9)), ("nowhere", (0,)), (other[0], ())), 0)
    )
    said.append(broker.ask(delete(group, (topic[0], (0,))), 0))
    said.append(broker.ask(delete(group), 0))
    said.append(broker.ask(delete(group, ("nowhere", (0,))), 0))
    said.append(broker.ask(fetch(group, everything=True), 9))
    return said


def offsets_of_topics_that_are_read(broker: Groups) -> list[object]:
    group = broker.group("g")
    read, other = broker.topic("read"), broker.topic("other")
    member = joined(broker, group, "a", **_reading(read[0]))
    broker.ask(syncing(group, member, (member.member_id, b"x")), 5, "a")
    mine: dict[str, Any] = {
        "member_id": member.member_id,
        "generation_id_or_member_epoch": member.generation_id,
    }
    said = [broker.ask(commit(group, (read, ((0, 1),)), (other, ((0, 2),)), **mine), 9)]
    said.append(broker.ask(delete(group, (read[0], (0,)), (other[0], (0,))), 0))
    said.append(broker.ask(fetch(group, everything=True), 9))
    return said


def _reading(topic: str) -> dict[str, Any]:
    return {"protocols": (("range", subscription(topic)),)}


def offsets_go_with_their_topic(broker: Groups) -> list[object]:
    group = broker.group("g")
    topic, other = broker.topic("t", partitions=2), broker.topic("other")
    broker.ask(commit(group, (topic, ((0, 1), (1, 2))), (other, ((0, 9),))), 9)
    gone = DeleteTopicsRequest(topics=(DeleteTopicState(name=topic[0]),), timeout_ms=10_000)
    said = [broker.ask(gone, 6)]
    while topic[0] in str(broker.message(fetch(group, everything=True), 9)):
        pass
    said.append(broker.ask(fetch(group, everything=True), 9))
    return said


def groups_that_only_commit(broker: Groups) -> list[object]:
    group = broker.group("g")
    topic = broker.topic("t")
    broker.ask(commit(group, (topic, ((0, 1),))), 9)
    said: list[object] = []
    for version in range(7):
        request = DescribeGroupsRequest(
            groups=(group, "nobody"), include_authorized_operations=version >= 3
        )
        said.append(broker.ask(request, version))
    for version in range(6):
        said += _listed(broker, group, version)
    for states in (("empty",), (" EMPTY ",), ("Stable",), ("strange",), ("stable", "Empty")):
        said += _listed(broker, group, 4, states_filter=states)
    for types in (("classic",), ("CLASSIC",), ("consumer",), ("strange",), ("Share", "Classic")):
        said += _listed(broker, group, 5, types_filter=types)
    for version in range(3):
        deleting = DeleteGroupsRequest(groups_names=("nobody", group, "nobody"))
        said.append(broker.ask(deleting, version))
    said.append(broker.ask(fetch(group, everything=True), 9))
    return said


def _listed(broker: Groups, group: str, version: int, **filters: Any) -> list[object]:
    answer: Any = broker.message(ListGroupsRequest(**filters), version)
    mine = tuple(each for each in answer.groups if each.group_id == group)
    return [broker.plain(but(answer, groups=mine))]


def coordinators_in_every_version(broker: Groups) -> list[object]:
    group = broker.group("g")
    said: list[object] = []
    for version in range(7):
        for kind in (0, 7) if version else (0,):
            keys = ("g", "other", "") if version >= 4 else ()
            request = FindCoordinatorRequest(
                key="" if version >= 4 else group, key_type=kind, coordinator_keys=keys
            )
            said.append(broker.ask(request, version))
    for version in (4, 5):
        request = FindCoordinatorRequest(key_type=2, coordinator_keys=("a:b:0",))
        said.append(broker.ask(request, version))
    return said


STORIES: tuple[Story, ...] = (
    commits_in_every_version,
    all_offsets_of_a_group,
    several_groups_at_once,
    offsets_kept_for_a_time,
    notes_of_all_sizes,
    commits_of_nobody,
    groups_without_a_name,
    offsets_deleted,
    offsets_of_topics_that_are_read,
    offsets_go_with_their_topic,
    groups_that_only_commit,
    coordinators_in_every_version,
)
