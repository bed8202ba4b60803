"""Groups that go from one protocol to the other, and members of both in one group."""

from __future__ import annotations

from typing import Any

from kraftline.schema.api.delete_groups import DeleteGroupsRequest
from kraftline.schema.api.describe_groups import DescribeGroupsRequest
from kraftline.schema.api.join_group import JoinGroupResponse
from kraftline.schema.coordinator.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscriptionTopicPartition,
)
from kraftline.schema.coordinator.embedded import encode_embedded
from tests.broker.consumer_groups.telling import ConsumerGroups, Story, alive, join, leave
from tests.groups.classic_stories import beat, leaving
from tests.groups.offset_stories import commit
from tests.groups.telling import but, joined, joining, member_id, subscription, syncing


def wanting(topic: str, *owned: int, version: int = 3) -> tuple[tuple[str, bytes], ...]:
    """What a consumer of the classic protocol says in JoinGroup: it reads a topic, and has some of
    its partitions."""
    had = (ConsumerProtocolSubscriptionTopicPartition(topic=topic, partitions=owned),)
    data = subscription(topic, version=version, owned_partitions=had if owned else ())
    return (("range", data), ("cooperative-sticky", data))


def given(topic: str, *partitions: int) -> bytes:
    part = ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=partitions)
    return encode_embedded(ConsumerProtocolAssignment(assigned_partitions=(part,)), 3)


def classic_group(
    broker: ConsumerGroups, group: str, topic: str, *partitions: int
) -> JoinGroupResponse:
    """A classic group with one member that has the partitions."""
    member = joined(broker, group, "old", protocols=wanting(topic))
    sync = syncing(group, member, (member.member_id, given(topic, *partitions)))
    told: Any = broker.message(sync, 5, "old")
    assert told.error_code == 0
    return member


def up_and_down_again(broker: ConsumerGroups) -> list[object]:
    name, id = broker.topic("t", partitions=4)
    group = broker.consumer_group("g")
    old = classic_group(broker, group, name, 0, 1, 2, 3)
    mine: dict[str, Any] = {
        "member_id": old.member_id,
        "generation_id_or_member_epoch": old.generation_id,
    }
    said: list[object] = [broker.ask(commit(group, ((name, id), ((0, 3),)), **mine), 9, "old")]
    # The first of the new protocol takes the group with it.
    said.append(broker.beat(join(group, "new", name)))
    said.append(broker.described(group))
    said.append(broker.ask(DescribeGroupsRequest(groups=(group,)), 6))
    said.append(broker.ask(commit(group, ((name, id), ((0, 4),)), **mine), 8, "old"))
    said.append(broker.ask(beat(group, old), 4, "old"))
    sync = syncing(group, old)
    said.append(broker.ask(sync, 5, "old"))
    again = joining(group, old.member_id, protocols=wanting(name, 0, 1, 2, 3))
    member: Any = broker.message(again, 9, "old")
    said.append(broker.plain(member))
    said.append(broker.ask(syncing(group, member), 5, "old"))
    said.append(broker.ask(beat(group, member), 4, "old"))
    # It has let go of what it was not given, and says so by joining again.
    again = joining(group, old.member_id, protocols=wanting(name, 0, 1))
    member = broker.message(again, 9, "old")
    said.append(broker.plain(member))
    said.append(broker.ask(syncing(group, member), 5, "old"))
    said.append(broker.ask(beat(group, member), 4, "old"))
    said.append(broker.ask(beat(group, but(member, generation_id=99)), 4, "old"))
    said.append(broker.ask(beat(group, but(member, member_id="new")), 4, "old"))
    said.append(broker.ask(syncing(group, but(member, protocol_name="other")), 5, "old"))
    said.append(broker.beat(alive(group, "new", member.generation_id)))
    said.append(broker.described(group))
    # The new one goes, and with it the new protocol.
    said.append(broker.beat(leave(group, "new")))
    said.append(broker.described(group))
    said.append(broker.ask(beat(group, member), 4, "old"))
    told: Any = broker.message(
        joining(group, old.member_id, protocols=wanting(name, 0, 1)), 9, "old"
    )
    said.append(broker.plain(told))
    said.append(broker.ask(syncing(group, told, (old.member_id, given(name, 0))), 5, "old"))
    said.append(broker.ask(DescribeGroupsRequest(groups=(group,)), 6))
    return said


def classic_members_join_a_consumer_group(broker: ConsumerGroups) -> list[object]:
    name, id = broker.topic("t", partitions=2)
    group = broker.consumer_group("g")
    said: list[object] = [broker.beat(join(group, "new", name))]
    said.append(broker.ask(joining(group, protocols=wanting(name), type="connect"), 9, "old"))
    said.append(broker.ask(joining(group, "strange", protocols=wanting(name)), 9, "old"))
    said.append(broker.ask(leaving(group, ("strange", None)), 5, "old"))
    request = joining(group, protocols=wanting(name))
    first: Any = broker.message(request, 9, "old")
    said.append(broker.plain(first))
    member: Any = broker.message(joining(group, first.member_id, protocols=wanting(name)), 9, "old")
    said.append(broker.plain(member))
    said.append(broker.ask(syncing(group, member), 5, "old"))
    said.append(broker.ask(beat(group, member), 4, "old"))
    said.append(broker.beat(alive(group, "new", 2)))
    said.append(broker.beat(alive(group, "new", 2, ((id, (0,)),))))
    said.append(broker.ask(beat(group, member), 4, "old"))
    member = broker.message(joining(group, first.member_id, protocols=wanting(name)), 9, "old")
    said.append(broker.plain(member))
    said.append(broker.ask(syncing(group, member), 5, "old"))
    said.append(broker.described(group))
    said.append(broker.ask(syncing(group, but(member, member_id="nobody")), 5, "old"))
    said.append(broker.ask(leaving(group, ("nobody", None), (first.member_id, None)), 5, "old"))
    said.append(broker.described(group))
    return said


def static_members_change_sides(broker: ConsumerGroups) -> list[object]:
    name, _ = broker.topic("t", partitions=2)
    group = broker.consumer_group("g")
    said: list[object] = [broker.beat(join(group, "new", name, instance_id="one"))]
    # Back as a classic member: the only one, so that the group is classic from now on.
    request = joining(group, instance="one", protocols=wanting(name, 0, 1))
    first: Any = broker.message(request, 9, "old")
    said.append(broker.plain(but(first, member_id="made")))
    described: Any = broker.message(DescribeGroupsRequest(groups=(group,)), 6)
    said.append(described.groups[0].group_state)
    said.append(broker.ask(syncing(group, first, instance="one"), 5, "old"))
    # And as one of the new protocol again.
    said.append(broker.beat(join(group, "newer", name, instance_id="one")))
    said.append(broker.described(group))
    said.append(broker.beat(leave(group, "newer", "one")))
    return said


def empty_groups_make_room(broker: ConsumerGroups) -> list[object]:
    name, _ = broker.topic("t")
    group = broker.consumer_group("g")
    old = classic_group(broker, group, name, 0)
    said: list[object] = [broker.ask(leaving(group, (old.member_id, None)), 5, "old")]
    said.append(broker.beat(join(group, "new", name)))
    said.append(broker.described(group))
    said.append(broker.beat(leave(group, "new")))
    said.append(broker.ask(beat(group, old), 4, "old"))
    said.append(broker.ask(syncing(group, old), 5, "old"))
    said.append(broker.ask(leaving(group, (old.member_id, None)), 5, "old"))
    id = member_id(broker, group, "again", protocols=wanting(name))
    member: Any = broker.message(joining(group, id, protocols=wanting(name)), 9, "again")
    said.append(broker.plain(member))
    said.append(broker.described(group))
    said.append(broker.ask(DeleteGroupsRequest(groups_names=(group,)), 2))
    return said


def groups_that_may_not_move(broker: ConsumerGroups) -> list[object]:
    name, _ = broker.topic("t")
    said: list[object] = []
    other = broker.consumer_group("other")
    member = joined(broker, other, "connect", type="connect")
    said.append(broker.ask(syncing(other, member, (member.member_id, b"x")), 5, "connect"))
    said.append(broker.beat(join(other, "new", name)))
    odd = broker.consumer_group("odd")
    member = joined(broker, odd, "odd", protocols=(("range", b"\0"),))
    said.append(broker.ask(syncing(odd, member, (member.member_id, b"")), 5, "odd"))
    said.append(broker.beat(join(odd, "new", name)))
    own = broker.consumer_group("own")
    member = joined(broker, own, "own", protocols=wanting(name))
    data = encode_embedded(ConsumerProtocolAssignment(user_data=b"mine"), 3)
    said.append(broker.ask(syncing(own, member, (member.member_id, data)), 5, "own"))
    said.append(broker.beat(join(own, "new", name)))
    return said


STORIES: tuple[Story, ...] = (
    up_and_down_again,
    classic_members_join_a_consumer_group,
    static_members_change_sides,
    empty_groups_make_room,
    groups_that_may_not_move,
)


def moves_as_far_as_is_allowed(broker: ConsumerGroups) -> list[object]:
    """Told to brokers with any migration policy and any size of groups."""
    name, id = broker.topic("t", partitions=2)
    group = broker.consumer_group("up")
    old = classic_group(broker, group, name, 0, 1)
    said: list[object] = [broker.beat(join(group, "new", name))]
    said += [broker.described(group), broker.ask(beat(group, old), 4, "old")]
    group = broker.consumer_group("down")
    said.append(broker.beat(join(group, "new", name)))
    said.append(broker.beat(join(group, "newer", name)))
    said.append(broker.beat(leave(group, "newer")))
    first: Any = broker.message(joining(group, protocols=wanting(name)), 9, "old")
    said.append(broker.plain(first))
    member: Any = broker.message(joining(group, first.member_id, protocols=wanting(name)), 9, "old")
    said.append(broker.plain(member))
    said.append(broker.beat(alive(group, "new", 2)))
    said.append(broker.beat(alive(group, "new", 2, ((id, (0,)),))))
    said += [broker.beat(leave(group, "new")), broker.described(group)]
    said.append(broker.ask(DescribeGroupsRequest(groups=(group,)), 6))
    return said
