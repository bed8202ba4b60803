"""Where the new protocol is switched off there are no such groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kraftline.schema.api.consumer_group_describe import ConsumerGroupDescribeRequest
from kraftline.schema.api.error_codes import ErrorCode
from tests.broker.consumer_groups.telling import join
from tests.broker.running import running
from tests.broker.talking import Talk


def test_without_the_protocol_heartbeats_are_refused(tmp_path: Path) -> None:
    settings = {"group.coordinator.rebalance.protocols": "classic"}
    with running(tmp_path, settings) as node, Talk(node.address) as talk:
        told: Any = talk.ask(join("g", "a", "t"), 1)
        assert told.error_code == ErrorCode.UNSUPPORTED_VERSION
        told = talk.ask(ConsumerGroupDescribeRequest(group_ids=("g", "h")), 1)
        assert [each.error_code for each in told.groups] == [ErrorCode.UNSUPPORTED_VERSION] * 2


def test_a_node_without_groups_coordinates_none(tmp_path: Path) -> None:
    """Nobody has asked for a coordinator yet, so that its topic is not there."""
    with running(tmp_path) as node, Talk(node.address) as talk:
        told: Any = talk.ask(join("g", "a", "t"), 1)
        assert (told.error_code, told.error_message) == (ErrorCode.NOT_COORDINATOR, None)
