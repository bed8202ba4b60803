"""Those who answer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.node.running import OurNode, RealKafka
from tests.oracle.answers import BrokerAnswers
from tests.recorder import node_cases
from tests.recorder.live import Live

SETTINGS = {
    "auto.create.topics.enable": "true",
    "num.partitions": "2",
    "log.index.size.max.bytes": "4096",
    "offsets.topic.num.partitions": "5",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "5",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    # No retention: records of any age stay, however long the tests take.
    "log.initial.task.delay.ms": "86400000",
}
PAGE = "max.request.partition.size.limit"


@pytest.fixture(scope="session")
def kafka_answers() -> Iterator[BrokerAnswers]:
    """Kafka's request handler over images that tests load."""
    with BrokerAnswers({PAGE: "250"}) as answers:
        yield answers


@pytest.fixture(scope="package")
def kafka_live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A running Kafka, with the topics of `node_cases`."""
    with (
        RealKafka(tmp_path_factory.mktemp("kafka"), SETTINGS) as kafka,
        Live(kafka.bootstrap) as live,
    ):
        live.create_topics(**node_cases.TOPICS)
        yield live


@pytest.fixture(scope="package")
def our_live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A running node of ours, likewise."""
    with OurNode(tmp_path_factory.mktemp("ours"), SETTINGS) as node, Live(node.bootstrap) as live:
        live.create_topics(**node_cases.TOPICS)
        yield live
