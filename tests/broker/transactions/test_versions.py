"""Clusters of transaction.version 0 and 1: older records, and the epochs of old."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftline.schema.coordinator.frame import TRANSACTIONS
from tests.broker.transactions.offset_stories import add_offsets, commit
from tests.broker.transactions.stories import ends_in_every_version
from tests.broker.transactions.telling import Teller, add, end, initialise, write
from tests.broker.transactions.test_handed_over import ALONE
from tests.node.running import OurNode, kraftline
from tests.oracle.kafka import HOST, KraftCluster

pytestmark = [pytest.mark.oracle, pytest.mark.soak]


def of_old_clients(broker: Teller) -> list[object]:
    """Clients of transaction.version 2 do not write here, so nobody else does it for them."""
    topic = broker.topic("old", partitions=2)
    # Nobody has begun a transaction yet, so there is no topic for them; nor for offsets, as nobody
    # has looked for a group.
    said: list[object] = [
        broker.ask(write(topic, "nobody", (5, 0)), version) for version in (3, 9, 11, 12, 13)
    ]
    id = broker.id("old")
    who = broker.begin(id)
    said += [
        broker.ask(add_offsets(id, who, "nobody"), 3),
        broker.ask(commit(id, who, "nobody", (topic[0], 0, 1)), 3),
        broker.settled(id),
        broker.ended(id, who, True, 4)[0],
        broker.settled(id),
    ]
    for sequence, commits in enumerate((True, False)):
        broker.ask(add(id, who, (topic[0], 0), (topic[0], 1)), 3)
        said.append(broker.ask(write(topic, id, who, sequence), 11))
        said.append(broker.ended(id, who, commits, 4)[0])
    said.append(broker.ask(initialise(id, who=who), 5))
    who = broker.begin(id)
    broker.ask(add(id, who, (topic[0], 1)), 3)
    said.append(broker.ask(write(topic, id, who, partition=1), 10))
    said.append(broker.ask(initialise(id), 5))  # fences what is going on
    said.append(broker.settled(id))
    said.append(broker.ask(end(id, who, True), 4))
    said.append(broker.ask(write(topic, id, who, 1, 1), 10))
    new = broker.begin(id)
    said.append((new[0] == who[0], new[1] - who[1]))
    return [*said, *broker.look(topic), *broker.look(topic, 1), *broker.log(TRANSACTIONS, id)]


class OurOldNode(OurNode):
    """Of a lower transaction.version."""

    version = 0

    def format(self, cluster_id: str = "kraftlineoracleclustrA") -> None:
        feature = f"transaction.version={self.version}"
        arguments = ["format", "-t", cluster_id, "-c", str(self.configure()), "--standalone"]
        kraftline(*arguments, "--feature", feature).check_returncode()


@pytest.mark.parametrize("version", [0, 1])
def test_older_versions_are_kept(tmp_path: Path, version: int) -> None:
    feature = ["--feature", f"transaction.version={version}"]
    ours = OurOldNode(tmp_path / "ours", ALONE)
    ours.version = version
    answers = []
    with KraftCluster(tmp_path / "kafka", dynamic=True, format_args=feature) as kafka, ours:
        kafka.start()
        for port in (kafka.port(1), ours.port):
            broker = Teller((HOST, port))
            answers.append([*of_old_clients(broker), *ends_in_every_version(broker)])
            broker.close()
    expected, got = answers
    for number, (theirs, mine) in enumerate(zip(expected, got, strict=True)):
        assert mine == theirs, f"answer {number}"
