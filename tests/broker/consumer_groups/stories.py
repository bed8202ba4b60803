"""Members of consumer groups: they join, give partitions up, get them, come back and go."""

from __future__ import annotations

from typing import Any

from kraftline.schema.api.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kraftline.schema.api.delete_groups import DeleteGroupsRequest
from kraftline.schema.api.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kraftline.schema.api.describe_groups import DescribeGroupsRequest
from kraftline.schema.api.list_groups import ListGroupsRequest
from kraftline.schema.api.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.broker.consumer_groups.telling import ConsumerGroups, Story, alive, join, leave
from tests.groups.offset_stories import commit


def listed(broker: ConsumerGroups, group: str, *types: str) -> list[object]:
    answer: Any = broker.message(ListGroupsRequest(types_filter=types), 5)
    return [broker.plain(each) for each in answer.groups if each.group_id == group]


def three_members_come_and_go(broker: ConsumerGroups) -> list[object]:
    name, id = broker.topic("t", partitions=6)
    group = broker.consumer_group("g")
    said: list[object] = [broker.beat(join(group, "a", name))]
    said += [broker.described(group), *listed(broker, group)]
    said.append(broker.beat(alive(group, "a", 2)))
    said.append(broker.beat(join(group, "b", name)))
    said += [broker.described(group), *listed(broker, group, "Consumer")]
    said.append(broker.beat(alive(group, "b", 3)))
    # The first is told to give three up, keeps some of them for a while, and then lets go.
    said.append(broker.beat(alive(group, "a", 2)))
    said += [broker.described(group), broker.described(group, version=0)]
    said.append(broker.beat(alive(group, "a", 2)))
    said.append(broker.beat(alive(group, "a", 2, ((id, (0, 1, 2, 3)),))))
    said.append(broker.beat(alive(group, "b", 3)))
    said.append(broker.beat(alive(group, "a", 2, ((id, (0, 1, 2)),))))
    said.append(broker.beat(alive(group, "b", 3)))
    said.append(broker.beat(alive(group, "b", 3, ((id, (3, 4, 5)),))))
    said.append(broker.described(group, allowed=True))
    # A third joins while nothing has moved yet, and says everything anew.
    said.append(broker.beat(join(group, "c", name)))
    said.append(broker.beat(join(group, "c", name)))
    for member, held in (("a", (0, 1)), ("b", (3, 4)), ("a", (0, 1)), ("b", (3, 4))):
        said.append(broker.beat(alive(group, member, 3)))
        said.append(broker.beat(alive(group, member, 3, ((id, held),))))
        said.append(broker.beat(alive(group, "c", 4)))
    said.append(broker.described(group))
    said.append(broker.beat(leave(group, "b")))
    said.append(broker.described(group))
    said += [broker.beat(alive(group, each, 4)) for each in "abc"]
    said += [broker.beat(leave(group, each)) for each in "acc"]
    said += [broker.described(group), *listed(broker, group)]
    said.append(broker.ask(DeleteGroupsRequest(groups_names=(group,)), 2))
    said += [broker.described(group), *listed(broker, group)]
    return said


def what_is_wrong_whatever_the_group_is(broker: ConsumerGroups) -> list[object]:
    name, _ = broker.topic("t")
    group = broker.consumer_group("g")
    wrong = [
        join("", "a", name),
        join("  ", "a", name),
        join(group, "", name),
        join(group, " ", name),
        join(group, "a", name, instance_id=""),
        join(group, "a", name, rack_id=" "),
        join(group, "a", name, rebalance_timeout_ms=-1),
        join(group, "a", name, topic_partitions=None),
        join(group, "a", subscribed_topic_names=None),
        join(group, "a", name, server_assignor="sticky"),
        join(group, "a", name, server_assignor=""),
        alive(group, "a", -3),
        alive(group, "", 5),
        alive(group, "a", 5, server_assignor="sticky"),
        alive(group, "a", 5),
        alive(group, "a", 5, instance_id="i"),
        leave(group, "a"),
        leave(group, ""),
        leave(group, "a", epoch=-2),
        leave(group, "a", "i", epoch=-2),
    ]
    said: list[object] = []
    for version in (0, 1):
        for request in wrong:
            if version == 0 and request.member_id == "" and request.member_epoch == 0:
                continue  # this one is right
            said.append(broker.beat(request, version))
    said.append(broker.described(group, "", "nobody", version=0))
    return said


def ids_that_the_coordinator_makes(broker: ConsumerGroups) -> list[object]:
    name, _ = broker.topic("t")
    group = broker.consumer_group("g")
    answer: Any = broker.message(join(group, "", name), 0)
    said: list[object] = [broker.plain(answer)]
    said.append(broker.beat(alive(group, answer.member_id, 2), 0))
    said.append(broker.described(group))
    return said


def members_that_missed_something(broker: ConsumerGroups) -> list[object]:
    """Epochs that are too old, too new, or the one before."""
    name, id = broker.topic("t", partitions=2)
    group = broker.consumer_group("g")
    said: list[object] = [broker.beat(join(group, "a", name))]
    said.append(broker.beat(alive(group, "a", 3)))
    said.append(broker.beat(alive(group, "a", 1)))
    said.append(broker.beat(alive(group, "z", 2)))
    said.append(broker.beat(join(group, "b", name)))
    said.append(broker.beat(alive(group, "a", 2)))
    said.append(broker.beat(alive(group, "a", 2, ((id, (0,)),))))
    # It did not hear of epoch 3.
    said.append(broker.beat(alive(group, "a", 2)))
    said.append(broker.beat(alive(group, "a", 2, ((id, (0, 1)),))))
    said.append(broker.beat(alive(group, "a", 2, ((id, (0,)),))))
    said.append(broker.beat(alive(group, "a", 2, ())))
    said.append(broker.beat(alive(group, "a", 1, ((id, (0,)),))))
    said.append(broker.beat(alive(group, "b", 3)))
    said.append(broker.beat(alive(group, "b", 2, ((id, (1,)),))))
    said.append(broker.beat(join(group, "b", name)))
    said.append(broker.described(group))
    return said


def static_members(broker: ConsumerGroups) -> list[object]:
    name, id = broker.topic("t", partitions=4)
    group = broker.consumer_group("g")
    said: list[object] = [broker.beat(join(group, "a", name, instance_id="one"))]
    said.append(broker.beat(join(group, "b", name, instance_id="two")))
    said.append(broker.beat(alive(group, "a", 2, instance_id="one")))
    said.append(broker.beat(alive(group, "a", 2, ((id, (0, 1)),), instance_id="one")))
    said.append(broker.beat(alive(group, "b", 3, instance_id="two")))
    # Others may not take an instance that lives, nor speak for it.
    said.append(broker.beat(join(group, "c", name, instance_id="one")))
    said.append(broker.beat(alive(group, "c", 3, instance_id="one")))
    said.append(broker.beat(alive(group, "a", 3, instance_id="three")))
    said.append(broker.beat(leave(group, "c", "one", -2)))
    said.append(broker.beat(leave(group, "a", "three", -2)))
    # One goes for a while and comes back as another: everything is as before.
    said.append(broker.beat(leave(group, "a", "one", -2)))
    said.append(broker.described(group))
    said.append(broker.beat(alive(group, "a", 3, instance_id="one")))
    said.append(broker.beat(join(group, "c", name, instance_id="one")))
    said.append(broker.described(group))
    said.append(broker.beat(alive(group, "b", 3, instance_id="two")))
    said.append(broker.beat(alive(group, "a", 3, instance_id="one")))
    # It comes back with the id that it had, too, and with another subscription.
    said.append(broker.beat(leave(group, "c", "one", -2)))
    said.append(broker.beat(join(group, "c", name, instance_id="one")))
    other, _ = broker.topic("u")
    said.append(broker.beat(leave(group, "c", "one", -2)))
    said.append(broker.beat(join(group, "d", other, instance_id="one")))
    said.append(broker.described(group))
    said.append(broker.beat(alive(group, "b", 3, instance_id="two")))
    said.append(broker.beat(leave(group, "b", "two")))
    said.append(broker.beat(leave(group, "d")))
    said.append(broker.described(group))
    return said


def subscriptions_change(broker: ConsumerGroups) -> list[object]:
    first, id = broker.topic("t", partitions=2)
    second, other_id = broker.topic("u", partitions=2)
    group = broker.consumer_group("g")
    said: list[object] = [broker.beat(join(group, "a", first, "not-there"))]
    said.append(broker.beat(alive(group, "a", 2, subscribed_topic_names=(first, second))))
    said.append(broker.beat(alive(group, "a", 3, subscribed_topic_names=(second,))))
    said.append(broker.described(group))
    said.append(broker.beat(alive(group, "a", 3, ((other_id, (0, 1)),))))
    said.append(broker.beat(alive(group, "a", 4, subscribed_topic_names=(second,))))
    said.append(broker.beat(alive(group, "a", 4, rack_id="r", server_assignor="range")))
    said.append(broker.described(group))
    said.append(broker.beat(alive(group, "a", 4, subscribed_topic_names=())))
    said.append(broker.beat(alive(group, "a", 4, ())))
    said.append(broker.beat(alive(group, "a", 5, subscribed_topic_names=("not-there",))))
    said.append(broker.described(group))
    full = alive(
        group,
        "a",
        6,
        (),
        rebalance_timeout_ms=1000,
        subscribed_topic_names=(first,),
    )
    said += [broker.beat(full), broker.beat(full)]
    said.append(broker.beat(alive(group, "a", 7, ((id, (0, 1)),))))
    return said


def assignors_by_vote(broker: ConsumerGroups) -> list[object]:
    first, _ = broker.topic("t", partitions=3)
    second, _ = broker.topic("u", partitions=3)
    group = broker.consumer_group("g")
    said: list[object] = []
    for member in ("a", "b"):
        request = join(group, member, first, second, server_assignor="range")
        said.append(broker.beat(request))
    said.append(broker.beat(alive(group, "a", 2)))
    said.append(broker.described(group))
    said.append(broker.beat(alive(group, "a", 2, ())))
    said.append(broker.beat(alive(group, "b", 3)))
    said.append(broker.beat(alive(group, "b", 3, server_assignor="uniform")))
    said.append(broker.described(group))
    said.append(broker.beat(alive(group, "a", 3, server_assignor="uniform")))
    said.append(broker.described(group))
    return said


def topics_come_grow_and_go(broker: ConsumerGroups) -> list[object]:
    first, id = broker.topic("t", partitions=1)
    later = first.replace("t-", "later-")
    group = broker.consumer_group("g")
    said: list[object] = [broker.beat(join(group, "a", first, later))]
    made, made_id = broker.topic("later", partitions=2)
    assert made == later
    said.append(broker.until(alive(group, "a", 2), lambda told: told.member_epoch == 3))
    said.append(broker.beat(alive(group, "a", 3, ((id, (0,)), (made_id, (0, 1))))))
    more = CreatePartitionsRequest(
        topics=(CreatePartitionsTopic(name=first, count=3, assignments=None),), timeout_ms=10_000
    )
    said.append(broker.ask(more, 3))
    said.append(broker.until(alive(group, "a", 3), lambda told: told.member_epoch == 4))
    gone = DeleteTopicsRequest(topics=(DeleteTopicState(name=later),), timeout_ms=10_000)
    said.append(broker.ask(gone, 6))
    # Nothing of it is told any more, though the member has it until it lets go.
    said.append(broker.until(alive(group, "a", 4), lambda told: told.assignment is not None))
    said.append(broker.beat(alive(group, "a", 4, ((id, (0, 1, 2)),))))
    said.append(broker.described(group))
    return said


def fetched(group: str, topic: str, member: str | None, epoch: int) -> OffsetFetchRequest:
    return OffsetFetchRequest(
        groups=(
            OffsetFetchRequestGroup(
                group_id=group,
                member_id=member,
                member_epoch=epoch,
                topics=(OffsetFetchRequestTopics(name=topic, partition_indexes=(0, 1)),),
            ),
        )
    )


def commits_and_epochs(broker: ConsumerGroups) -> list[object]:
    topic = broker.topic("t", partitions=2)
    name, id = topic
    group = broker.consumer_group("g")
    said: list[object] = [broker.beat(join(group, "a", name))]

    def committed(member: str, epoch: int, version: int = 9, *partitions: int) -> object:
        request = commit(
            group,
            (topic, tuple((each, 7) for each in partitions or (0, 1))),
            member_id=member,
            generation_id_or_member_epoch=epoch,
        )
        return broker.ask(request, version)

    said += [committed("a", 2), committed("a", 2, 8), committed("a", 3), committed("a", 1)]
    said += [committed("b", 2), committed("", -1), committed("a", -1)]
    for member, epoch in (("a", 2), ("a", 3), ("a", 1), ("b", 2), (None, -1), ("", -1)):
        said.append(broker.ask(fetched(group, name, member, epoch), 9))
    said.append(broker.beat(join(group, "b", name)))
    said.append(broker.beat(alive(group, "a", 2)))
    said.append(committed("a", 2))
    said.append(broker.beat(alive(group, "a", 2, ((id, (0,)),))))
    # What it has had since epoch 2 it may commit in epoch 2; what it gave up it may not.
    said += [committed("a", 2), committed("a", 3), committed("a", 2, 9, 0)]
    said.append(broker.beat(alive(group, "b", 3)))
    said += [committed("b", 2), committed("b", 3), committed("b", 3, 9, 1)]
    said.append(broker.beat(leave(group, "a")))
    said += [committed("a", 3), committed("b", 3)]
    said.append(broker.beat(leave(group, "b")))
    said += [committed("", -1), committed("b", 3), committed("b", -1, 8)]
    said.append(broker.ask(fetched(group, name, None, -1), 9))
    return said


def groups_of_the_other_kind(broker: ConsumerGroups) -> list[object]:
    topic = broker.topic("t")
    group = broker.consumer_group("g")
    said: list[object] = [broker.ask(commit(group, (topic, ((0, 5),))), 8)]
    said += [broker.described(group), *listed(broker, group)]
    said.append(broker.beat(alive(group, "a", 3)))
    said.append(broker.beat(leave(group, "a")))
    said.append(broker.beat(join(group, "a", topic[0])))
    said += [broker.described(group), *listed(broker, group)]
    said.append(broker.ask(DescribeGroupsRequest(groups=(group,)), 6))
    said.append(broker.ask(DescribeGroupsRequest(groups=(group,)), 5))
    said.append(broker.ask(fetched(group, topic[0], "a", 2), 9))
    said.append(broker.ask(DeleteGroupsRequest(groups_names=(group,)), 2))
    return said


def times_of_a_group(broker: ConsumerGroups) -> list[object]:
    name, _ = broker.topic("t", partitions=2)
    group = broker.consumer_group("g")
    heartbeat = "consumer.heartbeat.interval.ms"
    broker.configure(group, {heartbeat: "7000"})
    request = join(group, "a", name)
    said: list[object] = [
        broker.until(request, lambda told: told.heartbeat_interval_ms == 7000),
        broker.described(group),
    ]
    # Who joins within the time between two targets waits for the next one.
    broker.configure(group, {"consumer.assignment.interval.ms": "15000", heartbeat: "8000"})
    said.append(broker.until(alive(group, "a", 2), lambda told: told.heartbeat_interval_ms == 8000))
    said.append(broker.beat(join(group, "b", name)))
    said += [broker.beat(alive(group, each, 2)) for each in ("a", "b")]
    said += [broker.described(group), *listed(broker, group)]
    broker.configure(group, {"consumer.assignment.interval.ms": "0", heartbeat: "9000"})
    said.append(broker.until(alive(group, "b", 2), lambda told: told.heartbeat_interval_ms == 9000))
    said.append(broker.described(group))
    return said


STORIES: tuple[Story, ...] = (
    three_members_come_and_go,
    what_is_wrong_whatever_the_group_is,
    ids_that_the_coordinator_makes,
    members_that_missed_something,
    static_members,
    subscriptions_change,
    assignors_by_vote,
    topics_come_grow_and_go,
    commits_and_epochs,
    groups_of_the_other_kind,
    times_of_a_group,
)
