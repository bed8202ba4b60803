"""kill -9 while groups commit and rebalance: no acknowledged commit is lost, and every group is of
use after the next start."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path
from typing import Any

from kraftline.schema.api.leave_group import LeaveGroupRequest
from tests.broker.talking import Closed
from tests.effort import SOAK
from tests.groups.offset_stories import commit, fetch
from tests.groups.telling import Groups, joining, syncing
from tests.node.running import OurNode

ROUNDS = 30 if SOAK else 2
COMMITTERS = 4
SETTINGS = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "3"}


class Work:
    """One client that goes on until the node is gone."""

    def __init__(self, address: tuple[str, int], group: str, topic: Any) -> None:
        self.group = group
        self.topic = topic
        self.acknowledged = -1
        self.asked = -1
        self._address = address
        self.thread = threading.Thread(target=self._work)

    def _work(self) -> None:
        broker = Groups(self._address)
        try:
            self.do(broker)
        except (OSError, Closed):
            return
        finally:
            broker.close()

    def do(self, broker: Groups) -> None:
        raise NotImplementedError


class Commits(Work):
    """Offsets that only grow; the last that was acknowledged is what must be there."""

    def do(self, broker: Groups) -> None:
        while True:
            self.asked += 1
            answer: Any = broker.message(commit(self.group, (self.topic, ((0, self.asked),))), 9)
            if answer == "closed":
                return
            if answer.topics[0].partitions[0].error_code == 0:
                self.acknowledged = self.asked


class Rebalances(Work):
    """A member that joins, is assigned, commits, and leaves, over and over."""

    def do(self, broker: Groups) -> None:
        while True:
            # Whoever was cut off is waited for, but not for long.
            member: Any = broker.message(joining(self.group, rebalance=1000), 3)
            if member == "closed":
                return
            if member.error_code:
                continue
            broker.message(syncing(self.group, member, (member.member_id, b"x"), version=3), 3)
            self.asked += 1
            mine = {
                "member_id": member.member_id,
                "generation_id_or_member_epoch": member.generation_id,
            }
            request: Any = commit(self.group, (self.topic, ((0, self.asked),)), **mine)
            answer: Any = broker.message(request, 8)
            if answer == "closed":
                return
            if answer.topics[0].partitions[0].error_code == 0:
                self.acknowledged = self.asked
            leave = LeaveGroupRequest(group_id=self.group, member_id=member.member_id)
            broker.message(leave, 2)


def test_no_acknowledged_commit_is_lost(tmp_path: Path) -> None:
    node = OurNode(tmp_path, SETTINGS)
    chance = random.Random(8)
    try:
        node.start()
        address = "127.0.0.1", node.port
        broker = Groups(address)
        topic = broker.topic("t")
        groups = [broker.group(f"commits-{n}") for n in range(COMMITTERS)]
        rebalancing = broker.group("rebalances")
        broker.close()
        last: dict[str, int] = dict.fromkeys([*groups, rebalancing], -1)
        for _ in range(ROUNDS):
            work: list[Work] = [Commits(address, group, topic) for group in groups]
            work.append(Rebalances(address, rebalancing, topic))
            for each in work:
                each.asked = last[each.group]
                each.thread.start()
            deadline = time.monotonic() + 60
            while any(each.acknowledged < 0 for each in work):
                assert time.monotonic() < deadline, [each.acknowledged for each in work]
                time.sleep(0.005)
            time.sleep(chance.random() / 10)
            node.kill()
            for each in work:
                each.thread.join(60)
            node.start()
            broker = Groups(address)
            for each in work:
                # The last that was asked for may be there too: its answer was lost.
                assert each.acknowledged <= _committed(broker, each.group) <= each.asked
                last[each.group] = each.asked
            broker.close()
        node.stop()
    finally:
        node.kill()


def _committed(broker: Groups, group: str) -> int:
    while True:
        answer: Any = broker.message(fetch(group, everything=True), 9)
        if not answer.groups[0].error_code:
            [topic] = answer.groups[0].topics
            offset: int = topic.partitions[0].committed_offset
            return offset
