"""What members of the new protocol say, to real Kafka and to us."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from kraftline.schema.api.consumer_group_describe import ConsumerGroupDescribeRequest
from kraftline.schema.api.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
)
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.find_coordinator import FindCoordinatorRequest
from kraftline.schema.api.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraftline.schema.uuids import Uuid
from tests.groups.telling import Groups

_OF_GROUPS = 32
# Of its own nature different: when something was written, and hashes over ids of topics.
_OWN = {"assignment_timestamp", "timestamp", "version", "metadata_hash"}
_MADE_ID = re.compile(r"[A-Za-z0-9_-]{22}")
_REBALANCE_MS = 30_000


class ConsumerGroups(Groups):
    """Groups that assign at once, unless told otherwise: by default Kafka waits a second between
    two targets."""

    def topic(
        self, name: str, settings: Mapping[str, str] | None = None, *, partitions: int = 1
    ) -> tuple[str, Uuid]:
        """Known to the coordinator of groups too, which hears of it a moment later."""
        own, id = super().topic(name, settings, partitions=partitions)
        deadline = time.monotonic() + 60
        for turn in itertools.count():
            probe = f"probe-{turn}-{own}"  # another one each time: it assigns at once
            self.message(FindCoordinatorRequest(key_type=0, coordinator_keys=(probe,)), 6)
            told: Any = self.message(join(probe, "probe", own), 1)
            self.message(leave(probe, "probe"), 1)
            if told.assignment is not None and told.assignment.topic_partitions:
                return own, id
            assert time.monotonic() < deadline, told
            time.sleep(0.02)
        raise AssertionError

    def consumer_group(self, name: str, **settings: str) -> str:
        group = self.group(name)
        request = ConsumerGroupDescribeRequest(group_ids=(group,))
        answer: Any = self.message(request, 0)
        while answer.groups[0].error_code != ErrorCode.GROUP_ID_NOT_FOUND:
            answer = self.message(request, 0)  # its partition is being loaded
        self.configure(group, {"consumer.assignment.interval.ms": "0", **settings})
        # Metadata comes in order: who knows this topic knows what was configured before.
        self.topic(f"after-{name}")
        return group

    def go_on_from(self, other: ConsumerGroups) -> None:
        """Of the same topics and groups, at another address."""
        self._names, self._ids, self._groups = other._names, other._ids, other._groups

    def known_as(self, own: str, told: str) -> str:
        """A text that has a part of its own here goes by another in the story."""
        self._names = {own: told, **self._names}
        return own

    def configure(self, group: str, settings: dict[str, str]) -> None:
        request = IncrementalAlterConfigsRequest(
            resources=(
                AlterConfigsResource(
                    resource_type=_OF_GROUPS,
                    resource_name=group,
                    configs=tuple(
                        AlterableConfig(name=name, config_operation=0, value=value)
                        for name, value in settings.items()
                    ),
                ),
            )
        )
        answer: Any = self.message(request, 1)
        assert answer.responses[0].error_code == 0, answer

    def plain(self, value: Any, name: str = "") -> Any:
        if name in _OWN and isinstance(value, int):
            return "its own" if value else value
        if name in ("member_id", "leader") and isinstance(value, str) and _MADE_ID.fullmatch(value):
            return self._random.setdefault(value, f"<{len(self._random) + 1}>")
        return super().plain(value, name)

    def beat(self, request: ConsumerGroupHeartbeatRequest, version: int = 1) -> object:
        return self.ask(request, version)

    def described(self, *groups: str, version: int = 1, allowed: bool = False) -> object:
        request = ConsumerGroupDescribeRequest(
            group_ids=groups, include_authorized_operations=allowed
        )
        return self.ask(request, version)

    def until(
        self,
        request: ConsumerGroupHeartbeatRequest,
        is_so: Callable[[ConsumerGroupHeartbeatResponse], bool],
    ) -> object:
        """Repeat a heartbeat until its answer is such: metadata takes a moment to arrive."""
        deadline = time.monotonic() + 60
        while True:
            answer: Any = self.message(request, 1)
            if is_so(answer):
                return self.plain(answer)
            assert time.monotonic() < deadline, answer
            time.sleep(0.02)

    def until_written(self, type: str) -> None:
        """What is looked up in the background is in the log some time later."""
        deadline = time.monotonic() + 60
        while all(record[0] != type for record in self.records()):
            assert time.monotonic() < deadline
            time.sleep(0.02)


Story: TypeAlias = "Callable[[ConsumerGroups], list[object]]"
Held: TypeAlias = "tuple[tuple[Uuid, tuple[int, ...]], ...]"


def compare(story: Story, real: tuple[str, int], ours: tuple[str, int]) -> None:
    """Answers, and what is written to the log about them."""
    answers = []
    written = []
    for address in (real, ours):
        broker = ConsumerGroups(address)
        try:
            answers.append(story(broker))
            written.append(broker.records())
        finally:
            broker.close()
    expected, got = answers
    for number, (theirs, mine) in enumerate(zip(expected, got, strict=True)):
        assert mine == theirs, f"answer {number}"
    assert _in_runs(written[1]) == _in_runs(written[0])


def _in_runs(written: list[Any]) -> list[Any]:
    """Records of one type that follow one another are in the order of a hash map."""
    return [
        each
        for _, run in itertools.groupby(written, key=lambda record: record[0])
        for each in sorted(run, key=str)
    ]


def join(
    group: str, member: str, *topics: str, regex: str | None = None, **fields: Any
) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=0,
        **{
            "rebalance_timeout_ms": _REBALANCE_MS,
            "subscribed_topic_names": topics if topics or regex is None else None,
            "subscribed_topic_regex": regex,
            "topic_partitions": (),
            **fields,
        },
    )


def alive(
    group: str, member: str, epoch: int, held: Held | None = None, **fields: Any
) -> ConsumerGroupHeartbeatRequest:
    """A member says that it lives; and what it has, where that is given."""
    partitions = None
    if held is not None:
        partitions = tuple(
            ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic, partitions=each)
            for topic, each in held
        )
    return ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        topic_partitions=partitions,
        **fields,
    )


def leave(
    group: str, member: str, instance: str | None = None, epoch: int = -1
) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=group, member_id=member, member_epoch=epoch, instance_id=instance
    )
