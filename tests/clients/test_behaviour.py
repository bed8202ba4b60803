"""What clients in Python see of a node: the same of ours and of real Kafka."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.clients.adapters import Client, NoSuchTopic, Sent
from tests.oracle.driver import wait_until

NewName = Callable[[], str]


def some(count: int, size: int = 20) -> list[Sent]:
    return [Sent(b"k%d" % n, (b"v%d " % n).ljust(size, b".")) for n in range(count)]


def test_a_topic_is_made_listed_and_removed(client: Client, new_name: NewName) -> None:
    name = new_name()
    assert name not in client.topics()
    client.create_topic(name, partitions=3)
    wait_until(lambda: client.topics().get(name) == 3, "the topic")
    client.delete_topic(name)
    wait_until(lambda: name not in client.topics(), "the topic to go")


def test_a_topic_that_is_not_there_cannot_be_removed(client: Client, new_name: NewName) -> None:
    with pytest.raises(NoSuchTopic):
        client.delete_topic(new_name())


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_come_back_as_they_were_sent(client: Client, new_name: NewName, codec: str) -> None:
    if codec not in client.codecs:
        pytest.skip(f"the client cannot compress with {codec} here")
    name = new_name()
    client.create_topic(name)
    now = time.time_ns() // 1_000_000
    sent = [
        Sent(b"key", b"value" * 50, now - 5, (("h", b"1"), ("h", b"2"))),
        Sent(None, b"no key", now - 4),
        Sent(b"deleted", None, now - 3),
        Sent(b"", b"", now - 2),
    ]
    assert client.produce(name, sent, codec=codec) == [0, 1, 2, 3]
    seen = client.consume(name, None, 4)
    assert [Sent(each.key, each.value, each.timestamp, each.headers) for each in seen] == sent
    assert [each.offset for each in seen] == [0, 1, 2, 3]


def test_an_idempotent_producer_writes_each_record_once(client: Client, new_name: NewName) -> None:
    name = new_name()
    client.create_topic(name)
    assert client.produce(name, some(500), idempotent=True) == list(range(500))
    assert client.produce(name, some(10), idempotent=True) == list(range(500, 510))
    assert [each.value for each in client.consume(name, None, 510)] == [
        each.value for each in [*some(500), *some(10)]
    ]


def test_a_large_record_comes_back_whole(client: Client, new_name: NewName) -> None:
    name = new_name()
    client.create_topic(name)
    large = bytes(range(256)) * 40_000  # 10 MB, more than fetch.max.bytes of a partition
    assert client.produce(name, [Sent(b"large", large), Sent(b"small", b"s")]) == [0, 1]
    first, second = client.consume(name, 0, 2)
    assert first.value == large
    assert second.value == b"s"


def test_a_consumer_may_begin_in_the_middle(client: Client, new_name: NewName) -> None:
    name = new_name()
    client.create_topic(name)
    client.produce(name, some(1000))
    assert [each.offset for each in client.consume(name, 777, 3)] == [777, 778, 779]


def test_partitions_have_offsets_of_their_own(client: Client, new_name: NewName) -> None:
    name = new_name()
    client.create_topic(name, partitions=3)
    assert client.produce(name, some(3), partition=2) == [0, 1, 2]
    assert client.produce(name, some(2), partition=1) == [0, 1]
    assert [client.watermarks(name, n) for n in range(3)] == [(0, 0), (0, 2), (0, 3)]


def test_offsets_are_found_by_time(client: Client, new_name: NewName) -> None:
    name = new_name()
    client.create_topic(name)
    base = time.time_ns() // 1_000_000 - 100_000
    client.produce(name, [Sent(None, b"v", base + 1000 * n) for n in range(10)])
    assert client.offset_at(name, base) == 0
    assert client.offset_at(name, base + 4001) == 5
    assert client.offset_at(name, base + 9000) == 9
    assert client.offset_at(name, base + 9001) is None


def test_a_topic_made_again_is_empty(client: Client, new_name: NewName) -> None:
    name = new_name()
    client.create_topic(name)
    client.produce(name, some(5))
    client.delete_topic(name)
    wait_until(lambda: name not in client.topics(), "the topic to go")
    client.create_topic(name)
    assert client.watermarks(name) == (0, 0)
    assert client.produce(name, some(2)) == [0, 1]
