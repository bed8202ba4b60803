"""A user is told of the topics that it may know of, and of no others; as at real Kafka."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kraftline.schema.api.consumer_group_describe import ConsumerGroupDescribeRequest
from tests.broker.consumer_groups.regex_stories import has_partitions
from tests.broker.consumer_groups.telling import ConsumerGroups, alive, join
from tests.security import secured
from tests.security.access import acl, set_acls
from tests.security.saying import Saying
from tests.security.secured import PASSWORDS, Secured

pytestmark = pytest.mark.oracle
TOPIC, GROUP = 2, 3
READ, DESCRIBE = 3, 8


def told_to_alice(node: Secured) -> list[object]:
    admin = ConsumerGroups(node.plain)
    try:
        admin.topic("may", partitions=2)
        hidden, _ = admin.topic("hidden", partitions=2)
        group, other = admin.consumer_group("g"), admin.consumer_group("other")
        set_acls(
            node,
            [acl(GROUP, "g", READ, pattern=4), acl(TOPIC, "may", DESCRIBE, pattern=4)],
        )
        with Saying(node.sasl) as alice:
            alice.log_in("alice", PASSWORDS["alice"])
            return list(_conversation(admin, alice, group, other, hidden))
    finally:
        admin.close()


def _conversation(
    admin: ConsumerGroups, alice: Saying, group: str, other: str, hidden: str
) -> list[object]:
    suffix = hidden.removeprefix("hidden")
    regex = admin.known_as(f".*{suffix}", ".*")

    def ask(request: Any) -> Any:
        return alice.ask(request, 1)

    describe = ConsumerGroupDescribeRequest(group_ids=(group, other))
    said = [ask(join(other, "a", f"may{suffix}")), ask(join(group, "a", hidden))]
    said.append(ask(join(group, "a", regex=regex)))
    while not has_partitions(told := ask(alive(group, "a", 1))):
        assert told.error_code == 0, told
    said += [told, ask(describe)]
    # Somebody else's member reads what alice may not know of.
    said.append(admin.message(join(group, "b", hidden), 1))
    said.append(ask(describe))
    return [admin.plain(each) for each in said]


@pytest.mark.soak
def test_kafka_tells_the_same(tmp_path: Path) -> None:
    with secured.kafka(tmp_path / "kafka") as node:
        expected = told_to_alice(node)
    with secured.ours(tmp_path / "ours") as node:
        assert told_to_alice(node) == expected


def test_expressions_find_what_the_user_may_describe(tmp_path: Path) -> None:
    with secured.ours(tmp_path / "ours") as node:
        elsewhere, unknown, joined, found, *_ = told_to_alice(node)
    assert isinstance(elsewhere, dict)
    assert isinstance(unknown, dict)
    assert isinstance(joined, dict)
    assert isinstance(found, dict)
    errors = [each["error_code"] for each in (elsewhere, unknown, joined, found)]
    assert errors == [30, 29, 0, 0]
    assert [each["topic_id"] for each in found["assignment"]["topic_partitions"]] == ["may"]
