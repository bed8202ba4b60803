"""Members of classic groups: how they join, wait, are told what they read, and go."""

from __future__ import annotations

import time
from typing import Any

from kraftline.schema.api.delete_groups import DeleteGroupsRequest
from kraftline.schema.api.describe_groups import DescribeGroupsRequest
from kraftline.schema.api.heartbeat import HeartbeatRequest
from kraftline.schema.api.join_group import JoinGroupResponse
from kraftline.schema.api.leave_group import LeaveGroupRequest, MemberIdentity
from kraftline.schema.api.sync_group import SyncGroupRequest
from tests.groups.offset_stories import _listed, commit
from tests.groups.telling import (
    Groups,
    Story,
    but,
    joined,
    joining,
    member_id,
    subscription,
    syncing,
)


def beat(group: str, member: JoinGroupResponse, instance: str | None = None) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id=group,
        generation_id=member.generation_id,
        member_id=member.member_id,
        group_instance_id=instance,
    )


def leaving(group: str, *members: tuple[str, str | None]) -> LeaveGroupRequest:
    return LeaveGroupRequest(
        group_id=group,
        members=tuple(
            MemberIdentity(member_id=each, group_instance_id=instance) for each, instance in members
        ),
    )


def described(broker: Groups, group: str, version: int = 6) -> object:
    """A group that there is. Kafka tells of a new one once its record is on enough replicas, which
    may be after its first member was answered."""
    deadline = time.monotonic() + 60
    while True:
        answer: Any = broker.message(DescribeGroupsRequest(groups=(group,)), version)
        if answer.groups[0].group_state != "Dead" or time.monotonic() > deadline:
            return broker.plain(answer)


def stable(
    broker: Groups, group: str, *clients: str, protocols: Any = None, version: int = 9
) -> dict[str, JoinGroupResponse]:
    """Members by client, each with an assignment of its own; the first leads."""
    fields = {} if protocols is None else {"protocols": protocols}
    first, *others = clients
    members = {first: joined(broker, group, first, **fields)}
    if others:
        ids = {each: member_id(broker, group, each, **fields) for each in others}
        for each, id in ids.items():
            broker.send(each, joining(group, id, **fields), version)
        until_rebalancing(broker, group, first, members[first])
        again = joining(group, members[first].member_id, **fields)
        broker.send(first, again, version)
        for each in clients:
            members[each] = broker.heard(each)
            assert members[each].error_code == 0
    given = [(each.member_id, name.encode()) for name, each in members.items()]
    leader = next(name for name, each in members.items() if each.member_id == each.leader)
    for name, member in members.items():
        broker.send(name, syncing(group, member, *(given if name == leader else ())), 5)
    for name in clients:
        assert broker.heard(name).assignment == name.encode()
    return members


def until_rebalancing(broker: Groups, group: str, client: str, member: JoinGroupResponse) -> None:
    while True:
        told: Any = broker.message(beat(group, member), 4, client)
        if told.error_code == 27:
            return
        assert told.error_code == 0


def one_member_in_every_version(broker: Groups) -> list[object]:
    topic = broker.topic("t")
    said: list[object] = []
    for version in range(10):
        group = broker.group(f"g-{version}")
        first: Any = broker.message(joining(group), version)
        said.append(broker.plain(first))
        if first.error_code:
            request = joining(group, first.member_id)
            member: Any = broker.message(request, version)
            said += [broker.plain(member), broker.ask(request, version)]
        else:
            member = first
        said.append(described(broker, group, min(version, 6)))
        syncs = min(version, 5)
        sync = syncing(group, member, (member.member_id, b"part"), version=syncs)
        said += [broker.ask(sync, syncs), broker.ask(sync, syncs)]
        said.append(broker.ask(beat(group, member), min(version, 4)))
        said.append(described(broker, group, min(version, 6)))
        mine: dict[str, Any] = {
            "member_id": member.member_id,
            "generation_id_or_member_epoch": member.generation_id,
        }
        commits = max(2, version)
        said.append(broker.ask(commit(group, (topic, ((0, 1),)), version=commits, **mine), commits))
        said += _listed(broker, group, min(version, 5))
        leaves = min(version, 5)
        if leaves < 3:
            leave = LeaveGroupRequest(group_id=group, member_id=member.member_id)
        else:
            leave = leaving(group, (member.member_id, None))
        said += [broker.ask(leave, leaves), broker.ask(leave, leaves)]
        said.append(described(broker, group, min(version, 6)))
        said += _listed(broker, group, min(version, 5))
    return said


def three_members_come_and_go(broker: Groups) -> list[object]:
    group = broker.group("g")
    members = stable(broker, group, "a", "b", "c")
    said: list[object] = [described(broker, group)]
    said += [broker.ask(beat(group, each), 4, name) for name, each in members.items()]
    said.append(broker.ask(leaving(group, (members["b"].member_id, None)), 5, "b"))
    said += [broker.ask(beat(group, members[name]), 4, name) for name in ("a", "b", "c")]
    said.append(described(broker, group))
    topic = broker.topic("t")
    mine: dict[str, Any] = {
        "member_id": members["a"].member_id,
        "generation_id_or_member_epoch": members["a"].generation_id,
    }
    said.append(broker.ask(commit(group, (topic, ((0, 1),)), **mine), 9, "a"))
    said.append(broker.ask(syncing(group, members["a"]), 5, "a"))
    for name in ("a", "c"):
        broker.send(name, joining(group, members[name].member_id), 9)
    again = {name: broker.heard(name) for name in ("a", "c")}
    said += [broker.plain(but(each, members=())) for each in again.values()]
    mine["generation_id_or_member_epoch"] = again["a"].generation_id
    said.append(broker.ask(commit(group, (topic, ((0, 2),)), **mine), 9, "a"))
    said.append(broker.ask(beat(group, again["a"]), 4, "a"))
    said.append(described(broker, group))
    follower = next(n for n, each in again.items() if each.member_id != each.leader)
    leader = next(n for n, each in again.items() if each.member_id == each.leader)
    broker.send(follower, syncing(group, again[follower]), 5)
    said.append(
        broker.ask(syncing(group, again[leader], (again[leader].member_id, b"all")), 5, leader)
    )
    said.append(broker.hear(follower))
    said.append(broker.ask(DeleteGroupsRequest(groups_names=(group,)), 2))
    both = leaving(group, *((each.member_id, None) for each in again.values()))
    said.append(broker.ask(both, 5, "a"))
    said.append(described(broker, group))
    said.append(broker.ask(DeleteGroupsRequest(groups_names=(group,)), 2))
    return said


def members_join_again(broker: Groups) -> list[object]:
    """With nothing new, with other metadata, as leader and as follower, in every phase."""
    group = broker.group("g")
    members = stable(broker, group, "a", "b")
    leader = next(n for n, each in members.items() if each.member_id == each.leader)
    follower = next(n for n in members if n != leader)
    said: list[object] = []
    request = joining(group, members[follower].member_id)
    said.append(broker.ask(request, 9, follower))
    said.append(broker.ask(request, 4, follower))
    broker.send(leader, joining(group, members[leader].member_id), 9)
    until_rebalancing(broker, group, follower, members[follower])
    broker.send(follower, request, 9)
    members = {name: broker.heard(name) for name in (leader, follower)}
    said += [broker.plain(each) for each in members.values()]
    said.append(broker.ask(joining(group, members[leader].member_id), 9, leader))
    said.append(broker.ask(request, 9, follower))
    other = joining(group, members[follower].member_id, protocols=(("range", subscription("u")),))
    broker.send(leader, syncing(group, members[leader]), 5)
    said.append(broker.hear(leader))
    broker.send(follower, other, 9)
    until_rebalancing(broker, group, leader, members[leader])
    broker.send(leader, joining(group, members[leader].member_id), 9)
    said += [broker.hear(name) for name in (leader, follower)]
    return said


def static_members(broker: Groups) -> list[object]:
    said: list[object] = []
    topic = broker.topic("t")
    for version in range(5, 10):
        group = broker.group(f"g-{version}")
        first: Any = broker.message(joining(group, instance="one"), version, "a")
        said.append(broker.plain(first))
        sync = syncing(group, first, (first.member_id, b"part"), instance="one")
        said.append(broker.ask(sync, 5, "a"))
        second: Any = broker.message(joining(group, instance="one"), version, "b")
        said += [broker.plain(second), described(broker, group)]
        for member in (first, second):
            for instance in ("one", "two", None):
                said.append(broker.ask(beat(group, member, instance), 4, "a"))
                said.append(broker.ask(but(sync, member_id=member.member_id), 5, "a"))
                request = commit(
                    group,
                    (topic, ((0, 1),)),
                    member_id=member.member_id,
                    generation_id_or_member_epoch=member.generation_id,
                    group_instance_id=instance,
                )
                said.append(broker.ask(request, 8, "a"))
        said.append(broker.ask(joining(group, first.member_id, instance="one"), version, "a"))
        said.append(broker.ask(joining(group, "strange", instance="one"), version, "a"))
        said.append(broker.ask(joining(group, second.member_id, instance="two"), version, "a"))
        said.append(broker.ask(leaving(group, (first.member_id, "one")), 5, "a"))
        said.append(broker.ask(leaving(group, ("", "two"), ("", None), ("x", None)), 3, "a"))
        said.append(broker.ask(leaving(group, ("", "one")), 4, "a"))
        said.append(described(broker, group))
    return said


def a_static_member_asks_for_another_protocol(broker: Groups) -> list[object]:
    group = broker.group("g")
    first: Any = broker.message(joining(group, instance="one"), 9, "a")
    said: list[object] = [broker.ask(syncing(group, first, instance="one"), 5, "a")]
    other = joining(group, instance="one", protocols=(("roundrobin", b""),))
    said.append(broker.ask(other, 9, "b"))
    said.append(described(broker, group))
    said.append(broker.ask(beat(group, first, "one"), 4, "a"))
    return said


def a_static_member_is_replaced_while_it_waits(broker: Groups) -> list[object]:
    group = broker.group("g")
    member = stable(broker, group, "a")["a"]
    broker.send("b", joining(group, instance="one"), 9)
    until_rebalancing(broker, group, "a", member)
    broker.send("c", joining(group, instance="one"), 9)
    said = [broker.plain(but(broker.heard("b"), member_id=""))]
    broker.send("a", joining(group, member.member_id), 9)
    again = {name: broker.heard(name) for name in ("a", "c")}
    said += [broker.plain(but(again[name], members=())) for name in ("a", "c")]
    broker.send("c", syncing(group, again["c"], instance="one"), 5)
    broker.send("d", joining(group, instance="one"), 9)
    said.append(broker.hear("c"))
    said.append(broker.ask(beat(group, again["a"]), 4, "a"))
    return said


def what_may_not_join(broker: Groups) -> list[object]:
    group = broker.group("g")
    said: list[object] = []
    for version in (0, 3, 4, 5, 6, 7, 9):
        said += [
            broker.ask(joining(group, session=session), version)
            for session in (0, -1, 5_999, 1_800_001)
        ]
        said.append(broker.ask(joining(""), version))
        said.append(broker.ask(joining("", "somebody"), version))
        said.append(broker.ask(joining(group, "somebody"), version))
        said.append(broker.ask(joining(broker.group(f"a-{version}"), protocols=()), version))
        said.append(broker.ask(joining(broker.group(f"b-{version}"), type=""), version))
    members = stable(broker, group, "a")
    for version in (0, 4, 9):
        said.append(broker.ask(joining(group, type="other"), version))
        said.append(broker.ask(joining(group, protocols=(("other", b""),)), version))
        said.append(broker.ask(joining(group, members["a"].member_id, type="other"), version))
        said.append(broker.ask(joining(group, "somebody"), version))
    said.append(described(broker, group))
    return said


def who_is_not_of_this_generation(broker: Groups) -> list[object]:
    group = broker.group("g")
    nobody = SyncGroupRequest(group_id=group, generation_id=1, member_id="x")
    said: list[object] = []
    for version in range(6):
        named = but(nobody, protocol_type="consumer", protocol_name="range")
        request = named if version == 5 else nobody
        said.append(broker.ask(request, version))
        said.append(broker.ask(but(request, group_id=""), version))
    said.append(broker.ask(nobody, 5))
    said.append(broker.ask(but(nobody, protocol_type="consumer"), 5))
    for version in range(5):
        request_ = HeartbeatRequest(group_id=group, generation_id=1, member_id="x")
        said.append(broker.ask(request_, version))
        said.append(broker.ask(but(request_, group_id=""), version))
    for version in range(6):
        leave = LeaveGroupRequest(group_id=group, member_id="x")
        if version >= 3:
            leave = leaving(group, ("x", None), ("", None), ("", "i"))
        said.append(broker.ask(leave, version))
        said.append(broker.ask(but(leave, group_id=""), version))
    member = joined(broker, group, "a")
    for generation in (-1, 0, member.generation_id + 1):
        wrong = but(member, generation_id=generation)
        said.append(broker.ask(syncing(group, wrong), 5))
        said.append(broker.ask(beat(group, wrong), 4))
    sync = syncing(group, member)
    said.append(broker.ask(but(sync, protocol_type="other"), 5))
    said.append(broker.ask(but(sync, protocol_name="other"), 5))
    said.append(broker.ask(but(sync, member_id="other"), 5))
    said.append(broker.ask(but(sync, group_instance_id="other"), 5))
    said.append(broker.ask(beat(group, but(member, member_id="other")), 4))
    return said


def those_who_never_came_back(broker: Groups) -> list[object]:
    """Members that have been told an id, and leave before they join with it."""
    group = broker.group("g")
    said: list[object] = []
    id = member_id(broker, group, "a")
    said.append(described(broker, group))
    said += _listed(broker, group, 5)
    said.append(broker.ask(HeartbeatRequest(group_id=group, generation_id=0, member_id=id), 4))
    said.append(broker.ask(leaving(group, (id, None)), 5, "a"))
    said.append(broker.ask(leaving(group, (id, None)), 5, "a"))
    said.append(broker.ask(joining(group, id), 9, "a"))
    members = stable(broker, group, "b")
    other = member_id(broker, group, "c")
    broker.send("b", joining(group, members["b"].member_id), 9)
    said.append(broker.ask(leaving(group, (other, None)), 5, "c"))
    said.append(broker.hear("b"))
    return said


def protocols_are_voted_for(broker: Groups) -> list[object]:
    said: list[object] = []
    wishes = (
        (("x", "y"), ("y", "x")),
        (("x", "y", "z"), ("y", "z"), ("z", "y")),
        (("range", "roundrobin"), ("roundrobin", "range")),
        (("sticky", "a"), ("b", "sticky"), ("c", "sticky")),
        (("b", "a"), ("a", "b"), ("b", "a")),
        (("cooperative-sticky", "range"), ("range", "cooperative-sticky")),
    )
    for at, of_members in enumerate(wishes):
        group = broker.group(f"g-{at}")
        offers = [tuple((name, b"") for name in names) for names in of_members]
        first = joined(broker, group, "m0", protocols=offers[0], type="own")
        ids = [
            member_id(broker, group, f"m{n + 1}", protocols=offer, type="own")
            for n, offer in enumerate(offers[1:])
        ]
        for n, (id, offer) in enumerate(zip(ids, offers[1:], strict=True)):
            broker.send(f"m{n + 1}", joining(group, id, protocols=offer, type="own"), 9)
        until_rebalancing(broker, group, "m0", first)
        broker.send("m0", joining(group, first.member_id, protocols=offers[0], type="own"), 9)
        said += [broker.heard(f"m{n}").protocol_name for n in range(len(offers))]
    return said


STORIES: tuple[Story, ...] = (
    one_member_in_every_version,
    three_members_come_and_go,
    members_join_again,
    static_members,
    a_static_member_asks_for_another_protocol,
    a_static_member_is_replaced_while_it_waits,
    what_may_not_join,
    who_is_not_of_this_generation,
    those_who_never_came_back,
    protocols_are_voted_for,
)
