"""kill -9 while a group of the new protocol rebalances and commits: what was acknowledged is there,
and the group goes on."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from random import Random

import confluent_kafka

from tests.clients.adapters import Confluent, Sent
from tests.clients.test_new_consumer import PROPERTIES, Member, balanced, until
from tests.effort import rounds
from tests.node.running import OurNode

NewName = Callable[[], str]
PARTITIONS = 4
QUICK = {"reconnect_backoff_ms": 20, "reconnect_backoff_max_ms": 200}


def committed(bootstrap: str, group: str, topic: str) -> dict[int, int]:
    """As a client reads it that is no member."""
    client = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "log_level": 0}
    )
    try:
        wanted = [confluent_kafka.TopicPartition(topic, each) for each in range(PARTITIONS)]
        return {each.partition: each.offset for each in client.committed(wanted, timeout=60)}
    finally:
        client.close()


def commit(member: Member, acknowledged: dict[int, int]) -> None:
    """A commit may be refused while partitions move; what is not refused counts."""
    try:
        for each in member.commit_now():
            if each.error is None and each.offset >= 0:
                acknowledged[each.partition] = max(acknowledged.get(each.partition, 0), each.offset)
    except confluent_kafka.KafkaException:
        return


def test_groups_survive_kills(tmp_path: Path) -> None:
    random = Random(9)
    acknowledged: dict[int, int] = {}
    topic, group = "kills", "kills"
    node = OurNode(tmp_path, PROPERTIES)
    node.start()
    try:
        client = Confluent(node.bootstrap)
        client.create_topic(topic, PARTITIONS)
        with ExitStack() as stack:
            members = [
                stack.enter_context(Member(node.bootstrap, group, topic, **QUICK)) for _ in range(3)
            ]
            until(lambda: balanced(members, PARTITIONS), *members)
            for turn in range(rounds(3)):
                for partition in range(PARTITIONS):
                    values = [Sent(None, b"%d" % turn)] * 5
                    client.produce(topic, values, partition=partition)
                # Somebody goes and somebody else comes in the middle of it.
                with members.pop(random.randrange(len(members))):
                    pass
                members.append(stack.enter_context(Member(node.bootstrap, group, topic, **QUICK)))
                end = time.monotonic() + random.random()
                while time.monotonic() < end:
                    for member in members:
                        member.poll()
                        commit(member, acknowledged)
                node.kill()
                node.start()
                found = committed(node.bootstrap, group, topic)
                assert all(found[each] >= offset for each, offset in acknowledged.items())
                until(lambda: balanced(members, PARTITIONS), *members)
        assert acknowledged
    finally:
        node.kill()
