"""Everything about transactions is answered as real Kafka answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.broker.running import Running, running
from tests.broker.transactions import offset_stories, stories
from tests.broker.transactions.telling import Teller
from tests.oracle.kafka import HOST, KraftCluster


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    settings = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}
    with running(tmp_path_factory.mktemp("ours"), settings) as node:
        yield node


@pytest.mark.parametrize(
    "story", [*stories.STORIES, *offset_stories.STORIES], ids=lambda story: story.__name__
)
def test_kafka_answers_the_same(
    story: Callable[[Teller], list[object]], kafka_4_3: KraftCluster, ours: Running
) -> None:
    answers = []
    for address in ((HOST, kafka_4_3.port(1)), ours.address):
        broker = Teller(address)
        try:
            answers.append(story(broker))
        finally:
            broker.close()
    expected, got = answers
    for number, (theirs, mine) in enumerate(zip(expected, got, strict=True)):
        assert mine == theirs, f"answer {number}"
