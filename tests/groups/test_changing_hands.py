"""A directory with groups and offsets goes from our node to real Kafka and back: members go on in
their generation, offsets are where they were, and Kafka's dump tool reads what we wrote."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kraftline.schema.api.describe_groups import DescribeGroupsRequest
from kraftline.schema.api.join_group import JoinGroupResponse
from tests.groups.classic_stories import beat
from tests.groups.offset_stories import commit, fetch
from tests.groups.telling import Groups, joining, syncing
from tests.node.running import Broker, OurNode, RealKafka
from tests.oracle.dump import Decoder, dump_text

pytestmark = pytest.mark.oracle
MEMBER = "a-static-member"
SETTINGS = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "1"}


def _address(node: Broker) -> tuple[str, int]:
    host, _, port = node.bootstrap.rpartition(":")
    return host, int(port)


def _asked(ask: Callable[[], Any]) -> Any:
    """Until a coordinator that has just come up is there."""
    while True:
        answer = ask()
        if not re.search(r"error_code=1[456]\b", str(answer)):
            return answer


def _offsets(broker: Groups, group: str) -> dict[tuple[str, int], tuple[int, str]]:
    answer = _asked(lambda: broker.message(fetch(group, everything=True), 9))
    return {
        (topic.name, each.partition_index): (each.committed_offset, each.metadata)
        for topic in answer.groups[0].topics
        for each in topic.partitions
    }


@pytest.mark.parametrize("ending", [pytest.param("stop", marks=pytest.mark.soak), "kill"])
def test_groups_go_on_under_who_has_the_directory(tmp_path: Path, ending: str) -> None:
    kafka = RealKafka(tmp_path / "kafka", SETTINGS)
    ours = OurNode(tmp_path / "ours", SETTINGS)
    ours.log_dirs = [kafka.data]
    ours.controller_port = kafka.cluster.controller_endpoint(1)[1]
    turns: tuple[Broker, ...] = (ours, kafka, ours)
    topic: Any = None
    member: Any = None
    group = alone = ""
    expected: dict[tuple[str, int], tuple[int, str]] = {}
    try:
        for turn, node in enumerate(turns):
            node.start()
            broker = Groups(_address(node))
            if turn == 0:
                topic = broker.topic("t", partitions=3)
                group, alone = broker.group("group"), broker.group("alone")
                member = _joined(broker, group)
            assert _offsets(broker, alone) == expected
            request = DescribeGroupsRequest(groups=(group,))
            answer = _asked(lambda: broker.message(request, 5))  # noqa: B023
            [described] = answer.groups
            assert described.group_state == "Stable"
            [found] = described.members
            assert (found.member_id, found.group_instance_id) == (member.member_id, MEMBER)
            assert found.member_assignment == b"assigned"
            assert "error_code" not in str(broker.message(beat(group, member, MEMBER), 4))
            mine: dict[str, Any] = {"member_id": member.member_id, "group_instance_id": MEMBER}
            for who, fields in (
                (alone, {}),
                (group, {**mine, "generation_id_or_member_epoch": member.generation_id}),
            ):
                request_ = commit(who, (topic, ((turn, 10 + turn, f"of turn {turn}"),)), **fields)
                assert "error_code" not in str(broker.message(request_, 8))
            expected[topic[0], turn] = 10 + turn, f"of turn {turn}"
            assert _offsets(broker, group) == _offsets(broker, alone) == expected
            broker.close()
            node.stop() if ending == "stop" else node.kill()
        log = kafka.data / "__consumer_offsets-0" / f"{0:020}.log"
        said = dump_text([log], Decoder.OFFSETS)[log]
        assert said.count('"topic":"t-') == said.count(f'"group":"{alone}"') * 2 == 6
        assert f'"groupInstanceId":"{MEMBER}"' in said
        assert "Could not" not in said
    finally:
        ours.kill()
        kafka.kill()


def _joined(broker: Groups, group: str) -> JoinGroupResponse:
    member = broker.message(joining(group, instance=MEMBER, session=300_000), 9)
    assert isinstance(member, JoinGroupResponse)
    assert member.error_code == 0
    sync = syncing(group, member, (member.member_id, b"assigned"), instance=MEMBER)
    assert "error_code" not in str(broker.message(sync, 5))
    return member
