"""What depends on a broker's settings: sizes, delays, sessions, retention, and who may do what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraftline.metadata.access import Operation, Resource
from kraftline.schema.api.create_acls import AclCreation, CreateAclsRequest
from kraftline.schema.api.delete_groups import DeleteGroupsRequest
from kraftline.schema.api.describe_groups import DescribeGroupsRequest
from kraftline.schema.api.find_coordinator import FindCoordinatorRequest
from kraftline.schema.api.heartbeat import HeartbeatRequest
from kraftline.schema.api.leave_group import LeaveGroupRequest
from kraftline.schema.api.list_groups import ListGroupsRequest
from kraftline.schema.api.offset_fetch import OffsetFetchRequest
from kraftline.schema.api.sync_group import SyncGroupRequest
from kraftline.schema.types import Message
from tests.groups.classic_stories import beat, described, leaving, stable, until_rebalancing
from tests.groups.offset_stories import _listed, commit, delete, fetch
from tests.groups.telling import Groups, Story, but, joined, joining, member_id, syncing

SETTINGS = {
    "group.initial.rebalance.delay.ms": "400",
    "group.max.size": "2",
    "group.min.session.timeout.ms": "100",
    "group.max.session.timeout.ms": "60000",
    "offset.metadata.max.bytes": "10",
    "offsets.retention.check.interval.ms": "300",
    "offsets.topic.num.partitions": "1",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


def before_there_is_a_coordinator(broker: Groups) -> list[object]:
    """Nobody has asked for one yet, so there is no topic."""
    topic = broker.topic("t")
    sync = SyncGroupRequest(group_id="x", member_id="m")
    named = but(sync, protocol_type="consumer", protocol_name="range")
    leave = LeaveGroupRequest(group_id="x", member_id="m")
    asked: list[tuple[Message, int]] = [
        *((joining("x", "m"), version) for version in range(10)),
        *((named if version == 5 else sync, version) for version in range(6)),
        *((leave if v < 3 else leaving("x", ("m", None)), v) for v in range(6)),
        *((HeartbeatRequest(group_id="x", member_id="m"), version) for version in range(5)),
        *((ListGroupsRequest(), version) for version in range(6)),
        *((DescribeGroupsRequest(groups=("x", "y")), version) for version in range(7)),
        *((commit("x", (topic, ((0, 1), (9, 1))), version=v), v) for v in range(2, 11)),
        *((fetch("x", (topic, (0, 9)), version=v), v) for v in range(1, 11)),
        *((fetch("x", version=v, everything=True), v) for v in range(2, 11)),
        *((DeleteGroupsRequest(groups_names=("x", "y")), version) for version in range(3)),
        (delete("x", (topic[0], (0, 9))), 0),
    ]
    return [broker.ask(request, version) for request, version in asked]


def a_group_is_full(broker: Groups) -> list[object]:
    group = _kept_group(broker, "g")
    members = stable(broker, group, "a", "b")
    said: list[object] = []
    for version in (0, 3, 4, 9):
        said.append(broker.ask(joining(group), version, "c"))
        said.append(broker.ask(joining(group, "somebody"), version, "c"))
        if version >= 5:
            said.append(broker.ask(joining(group, instance="i"), version, "c"))
    said.append(broker.ask(leaving(group, (members["b"].member_id, None)), 5, "b"))
    until_rebalancing(broker, group, "a", members["a"])
    id = member_id(broker, group, "c")
    broker.send("c", joining(group, id), 9)
    broker.send("a", joining(group, members["a"].member_id), 9)
    said += [broker.plain(but(broker.heard(name), members=())) for name in ("a", "c")]
    return said


def the_first_generation_waits_for_more(broker: Groups) -> list[object]:
    group = _kept_group(broker, "g")
    ids = {name: member_id(broker, group, name) for name in ("a", "b")}
    for name, id in ids.items():
        broker.send(name, joining(group, id), 9)
    heard = {name: broker.heard(name) for name in ids}
    return [
        sorted((each.generation_id, len(each.members) in (0, 2)) for each in heard.values()),
        len({each.leader for each in heard.values()}),
    ]


def sessions_end(broker: Groups) -> list[object]:
    group = _kept_group(broker, "g")
    member = joined(broker, group, "a", session=1500, rebalance=1500)
    said: list[object] = [broker.ask(syncing(group, member, (member.member_id, b"x")), 5, "a")]
    _until(broker, lambda: "Empty" in str(described(broker, group)))
    said.append(described(broker, group))
    said.append(broker.ask(beat(group, member), 4, "a"))
    said.append(broker.ask(joining(group, member.member_id), 9, "a"))
    said.append(broker.ask(syncing(group, member), 5, "a"))
    return said


def who_does_not_join_again_in_time(broker: Groups) -> list[object]:
    group = _kept_group(broker, "g")
    first = joined(broker, group, "a", rebalance=1000)
    broker.ask(syncing(group, first, (first.member_id, b"x")), 5, "a")
    id = member_id(broker, group, "b", rebalance=1000)
    broker.send("b", joining(group, id, rebalance=1000), 9)
    said = [broker.plain(broker.heard("b"))]
    said.append(broker.ask(beat(group, first), 4, "a"))
    return said


def who_does_not_sync_in_time(broker: Groups) -> list[object]:
    group = _kept_group(broker, "g")
    first = joined(broker, group, "a", rebalance=1000)
    said: list[object] = [broker.ask(beat(group, first), 4, "a")]
    _until(broker, lambda: "Empty" in str(described(broker, group)))
    said.append(described(broker, group))
    said.append(broker.ask(beat(group, first), 4, "a"))
    return said


def offsets_that_have_expired(broker: Groups) -> list[object]:
    group = broker.group("g")
    topic = broker.topic("t", partitions=2)
    said = [broker.ask(commit(group, (topic, ((0, 5),)), version=2, retention_time_ms=1), 2)]
    said.append(broker.ask(commit(group, (topic, ((1, 6),)), version=2), 2))
    _until(broker, lambda: "committed_offset=5" not in str(_everything(broker, group)))
    said.append(broker.ask(fetch(group, everything=True), 9))
    other = broker.group("other")
    said.append(broker.ask(commit(other, (topic, ((0, 5),)), version=3, retention_time_ms=1), 3))
    _until(broker, lambda: "group_id" not in str(_listed(broker, other, 5)))
    said += _listed(broker, other, 5)
    return said


def short_notes(broker: Groups) -> list[object]:
    group = broker.group("g")
    topic = broker.topic("t", partitions=2)
    return [
        broker.ask(commit(group, (topic, ((0, 1, "x" * 10), (1, 2, "x" * 11)))), 9),
        broker.ask(fetch(group, everything=True), 9),
        broker.ask(joining(group, session=99), 9),
        broker.ask(joining(group, session=60_001), 9),
    ]


def who_may_do_what(broker: Groups) -> list[object]:
    """Each API, with groups and topics of which one may do nothing, describe, read, or delete."""
    groups = {name: broker.group(name) for name in ("nothing", "describe", "read", "delete")}
    topics = {name: broker.topic(f"t-{name}") for name in ("nothing", "describe", "read")}
    allowed = {
        "nothing": Operation.ALTER_CONFIGS,
        "describe": Operation.DESCRIBE,
        "read": Operation.READ,
        "delete": Operation.DELETE,
    }
    for topic in topics.values():
        for group in groups.values():
            broker.ask(commit(group, (topic, ((0, 1),))), 9)
    for name, operation in allowed.items():
        _allow(broker, Resource.GROUP, groups[name], operation)
        if name in topics:
            _allow(broker, Resource.TOPIC, topics[name][0], operation)
    said: list[object] = []
    asked = tuple((topic, ((0, 2),)) for topic in topics.values())
    read = tuple((topic, (0,)) for topic in topics.values())
    for group in groups.values():
        for version in (2, 9, 10):
            said.append(broker.ask(commit(group, *asked, version=version), version))
            said.append(broker.ask(fetch(group, *read, version=version), version))
            said.append(broker.ask(fetch(group, version=version, everything=True), version))
        said.append(broker.ask(fetch(group, *read, version=1), 1))
        said.append(broker.ask(delete(group, *((topic[0], (0,)) for topic in topics.values())), 0))
        said.append(broker.ask(FindCoordinatorRequest(key=group), 3))
        said.append(broker.ask(FindCoordinatorRequest(coordinator_keys=(group,)), 4))
        said += [broker.ask(joining(group, "x"), version) for version in (4, 6, 9)]
        said.append(broker.ask(SyncGroupRequest(group_id=group, member_id="x"), 4))
        said.append(broker.ask(HeartbeatRequest(group_id=group, member_id="x"), 4))
        said.append(broker.ask(LeaveGroupRequest(group_id=group, member_id="x"), 2))
        said.append(broker.ask(leaving(group, ("x", None)), 5))
    everybody = tuple(groups.values())
    for version in (2, 5, 6):
        request = DescribeGroupsRequest(
            groups=everybody, include_authorized_operations=version >= 3
        )
        said.append(broker.ask(request, version))
    several = tuple(fetch(group, *read).groups[0] for group in everybody)
    said.append(broker.ask(OffsetFetchRequest(groups=several), 9))
    said.append(broker.ask(DeleteGroupsRequest(groups_names=everybody), 2))
    return said


def _kept_group(broker: Groups, name: str) -> str:
    """A group with an offset: one without is deleted when it is empty, with the next check."""
    group = broker.group(name)
    broker.ask(commit(group, (broker.topic(f"kept-{name}"), ((0, 1),))), 9)
    return group


def _allow(broker: Groups, resource: Resource, name: str, operation: Operation) -> None:
    creation = AclCreation(
        resource_type=resource,
        resource_name=name,
        resource_pattern_type=3,
        principal="User:ANONYMOUS",
        host="*",
        operation=operation,
        permission_type=3,
    )
    answer: Any = broker.message(CreateAclsRequest(creations=(creation,)), 3)
    assert not answer.results[0].error_code, answer
    # Until it counts: nobody is allowed what was allowed to everybody before.
    if resource is Resource.GROUP and operation is not Operation.READ:
        beat_ = HeartbeatRequest(group_id=name, member_id="x")
        _until(broker, lambda: "error_code=30" in str(broker.message(beat_, 4)))


def _everything(broker: Groups, group: str) -> object:
    return broker.message(fetch(group, everything=True), 9)


def _until(broker: Groups, is_so: Callable[[], bool]) -> None:
    while not is_so():
        broker.ask(FindCoordinatorRequest(coordinator_keys=("x",)), 6)


STORIES: tuple[Story, ...] = (
    before_there_is_a_coordinator,  # the first, so that it is so
    a_group_is_full,
    the_first_generation_waits_for_more,
    sessions_end,
    who_does_not_join_again_in_time,
    who_does_not_sync_in_time,
    offsets_that_have_expired,
    short_notes,
    who_may_do_what,
)
