"""Members that subscribe by a regular expression."""

from __future__ import annotations

from kraftline.schema.api.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from tests.broker.consumer_groups.telling import ConsumerGroups, Story, alive, join, leave


def has_partitions(told: ConsumerGroupHeartbeatResponse) -> bool:
    return told.assignment is not None and bool(told.assignment.topic_partitions)


def topics_are_found_by_expression(broker: ConsumerGroups) -> list[object]:
    first, id = broker.topic("regex-one", partitions=2)
    broker.topic("other")
    suffix = first.removeprefix("regex-one")
    regex = broker.known_as(f"regex-.*{suffix}", "regex-.*")
    group = broker.consumer_group("g")
    said: list[object] = [broker.beat(join(group, "a", regex=regex))]
    said.append(broker.until(alive(group, "a", 1), has_partitions))
    said.append(broker.described(group))
    said.append(broker.beat(alive(group, "a", 2, ((id, (0, 1)),))))
    # What another member has already is known at once.
    said.append(broker.beat(join(group, "b", regex=regex)))
    said.append(broker.beat(alive(group, "a", 2)))
    said.append(broker.beat(alive(group, "a", 2, ((id, (0,)),))))
    said.append(broker.beat(alive(group, "b", 3)))
    said.append(broker.described(group))
    # Names come on top of it; without it they are all there is.
    other, _ = broker.topic("by-name")
    said.append(broker.beat(alive(group, "b", 3, subscribed_topic_names=(other,))))
    said.append(broker.beat(alive(group, "b", 4, subscribed_topic_regex="")))
    said.append(broker.described(group))
    said.append(broker.beat(leave(group, "a")))
    said.append(broker.described(group))
    said.append(broker.beat(leave(group, "b")))
    return said


def expressions_that_are_none(broker: ConsumerGroups) -> list[object]:
    group = broker.consumer_group("g")
    return [
        broker.beat(join(group, "a", regex=regex))
        for regex in (
            "a(b",
            "[a",
            "a**",
            "a{2000}",
            "\\",
            "*a",
            "[z-a]",
            "(?=a)",
            "\\1",
            "(?P<n",
            "a)",
        )
    ]


def an_expression_that_matches_nothing(broker: ConsumerGroups) -> list[object]:
    name, _ = broker.topic("t")
    group = broker.consumer_group("g")
    said: list[object] = [broker.beat(join(group, "a", name, regex="nothing-at-all"))]
    broker.until_written("ConsumerGroupRegularExpressionKey")
    said.append(broker.beat(alive(group, "a", 2)))
    said.append(broker.described(group))
    return said


STORIES: tuple[Story, ...] = (
    topics_are_found_by_expression,
    expressions_that_are_none,
    an_expression_that_matches_nothing,
)
