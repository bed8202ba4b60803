"""Topics that are not there: made when someone writes, where the node allows it; else refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.clients.adapters import CLIENTS, Confluent, NoSuchTopic, Sent
from tests.node.running import OurNode, RealKafka

NewName = Callable[[], str]


@pytest.fixture(
    scope="module", params=["kraftline", pytest.param("kafka", marks=pytest.mark.oracle)]
)
def generous(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A node that makes topics on demand."""
    kind = OurNode if request.param == "kraftline" else RealKafka
    properties = {"auto.create.topics.enable": "true", "num.partitions": "3"}
    with kind(tmp_path_factory.mktemp(f"generous-{request.param}"), properties) as node:
        yield node.bootstrap


@pytest.mark.parametrize("name", CLIENTS)
def test_a_topic_is_made_when_someone_writes_to_it(
    generous: str, name: str, new_name: NewName
) -> None:
    topic = new_name()
    client = CLIENTS[name](generous)
    assert client.produce(topic, [Sent(b"k", b"v")]) == [0]
    assert client.topics()[topic] == 3
    assert client.consume(topic, None, 1)[0].value == b"v"


def test_writing_to_no_topic_fails(bootstrap: str, new_name: NewName) -> None:
    topic = new_name()
    client = Confluent(bootstrap)
    with pytest.raises(NoSuchTopic):
        client.produce(topic, [Sent(None, b"v")])
    assert topic not in client.topics()
