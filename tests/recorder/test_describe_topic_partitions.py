"""DescribeTopicPartitions: the same bytes as Kafka's own handler, over the same image."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftline.schema.api.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from kraftline.schema.metadata.topic_record import TopicRecord
from tests.oracle.answers import BrokerAnswers
from tests.recorder import odd_cluster
from tests.recorder.conftest import PAGE
from tests.recorder.frames import answered, frame
from tests.recorder.over_image import OurAnswers

pytestmark = pytest.mark.oracle

KEY = 75
KNOWN = sorted(r.name for r, _ in odd_cluster.records() if isinstance(r, TopicRecord))
ODD = ["", ".", "..", "a/b", "gone", "x" * 249, "x" * 250, "é", "\ufb01", "\U0001f600", "zzz"]


@pytest.fixture(scope="module")
def ours() -> OurAnswers:
    answers = OurAnswers({PAGE: "250"})
    answers.load(odd_cluster.records())
    return answers


@pytest.fixture
def kafkas(kafka_answers: BrokerAnswers) -> BrokerAnswers:
    kafka_answers.load(odd_cluster.records())
    return kafka_answers


def _request(
    *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None
) -> DescribeTopicPartitionsRequest:
    return DescribeTopicPartitionsRequest(
        topics=tuple(TopicRequest(name=name) for name in names),
        response_partition_limit=limit,
        cursor=None
        if cursor is None
        else DescribeTopicPartitionsRequestCursor(topic_name=cursor[0], partition_index=cursor[1]),
    )


CASES = {
    "all": _request(),
    "all, one partition": _request(limit=1),
    "all, no partition": _request(limit=0),
    "all, a negative limit": _request(limit=-5),
    "all, up to a topic's end": _request(limit=4),
    "all, more than the broker's limit": _request(limit=100_000),
    "all from a cursor": _request(cursor=("many", 7)),
    "all from a cursor inside, to inside": _request(cursor=("many", 100), limit=50),
    "all from a cursor at the last partition": _request(cursor=("many", 299), limit=3),
    "all from a cursor past the end": _request(cursor=("many", 300), limit=3),
    "all from a cursor far past the end": _request(cursor=("many", 2**31 - 1)),
    "all from a deleted topic": _request(cursor=("gone", 5)),
    "all from before the first": _request(cursor=("", 0)),
    "all from an odd name": _request(cursor=("é", 1)),
    "all from behind the last": _request(cursor=("zzzz", 1)),
    "all, a negative partition": _request(cursor=("many", -1)),
    "by name": _request("one", "leaders"),
    "by name, twice": _request("one", "leaders", "one"),
    "by name, unknown": _request("one", "gone"),
    "by name, invalid": _request("one", "a/b", ".", "..", "x" * 250),
    "by name, not ASCII": _request("\U0001f600", "\ufb01", "é", "one"),
    "by name, empty": _request("one", ""),
    "by name, all unknown": _request("gone", "away", limit=1),
    "unknown ones use up nothing": _request("gone", "away", "one", "leaders", limit=1),
    "the limit at a boundary, an unknown one next": _request("leaders", "zzz", limit=6),
    "by name with a cursor": _request("one", "many", "leaders", cursor=("many", 290)),
    "by name, the cursor's missing": _request("one", "leaders", cursor=("many", 1)),
    "by name, the cursor's before all": _request("one", cursor=("a", 1)),
    "by name, the cursor's unknown": _request("one", "gone", cursor=("gone", 3)),
    "by name, a negative partition": _request("one", cursor=("one", -1)),
    "by name, empty, with a cursor behind it": _request("one", "", cursor=("one", 0)),
    "by name, empty, with a cursor at it": _request("one", "", cursor=("", 0)),
    "by name, empty, with a cursor into it": _request("one", "", cursor=("", 3), limit=1),
    "a topic without partitions": _request("empty", "one"),
    "a topic without partitions, limit": _request("empty", "empty", "one", limit=1),
    "holes": _request("holes"),
    "holes, part": _request("holes", limit=2),
    "holes, from inside": _request("holes", cursor=("holes", 3), limit=2),
    "internal ones": _request(
        "__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("listener", ["PLAINTEXT", "OTHER", "NOWHERE"])
def test_kafka_sends_the_same_bytes(
    kafkas: BrokerAnswers, ours: OurAnswers, name: str, listener: str
) -> None:
    asked = frame(CASES[name], KEY, 0)
    assert ours.answer(asked, listener) == kafkas.answer(asked, listener)


@given(
    names=st.lists(st.sampled_from(KNOWN + ODD), max_size=8),
    limit=st.one_of(st.integers(-2, 320), st.integers(-(2**31), 2**31 - 1)),
    cursor=st.none()
    | st.tuples(
        st.sampled_from(KNOWN + ODD),
        st.one_of(st.integers(-1, 310), st.integers(-(2**31), 2**31 - 1)),
    ),
)
def test_kafka_sends_the_same_bytes_for_any_request(
    kafkas: BrokerAnswers,
    ours: OurAnswers,
    names: list[str],
    limit: int,
    cursor: tuple[str, int] | None,
) -> None:
    if cursor is not None and names:
        names = [*names, cursor[0]]
    asked = frame(_request(*names, limit=limit, cursor=cursor), KEY, 0)
    assert ours.answer(asked) == kafkas.answer(asked)


def test_kafka_sends_the_same_pages_of_a_topic_that_is_not_kept_whole(
    kafka_answers: BrokerAnswers,
) -> None:
    answers = OurAnswers({PAGE: "250"})
    records = odd_cluster.one_large_topic(10_100)
    answers.load(records)
    kafka_answers.load(records)
    for first in (0, 1, 5000, 9850, 9851, 10_099, 10_100):
        asked = frame(_request(cursor=("large", first)), KEY, 0)
        assert answers.answer(asked) == kafka_answers.answer(asked), first


def test_pages_together_are_the_whole(ours: OurAnswers, kafkas: BrokerAnswers) -> None:
    cursor: tuple[str, int] | None = None
    for _ in range(200):
        asked = frame(_request(limit=7, cursor=cursor), KEY, 0)
        answer = ours.answer(asked)
        assert answer is not None
        assert answer == kafkas.answer(asked)
        said = answered(answer, KEY, 0)
        assert isinstance(said, DescribeTopicPartitionsResponse)
        if said.next_cursor is None:
            return
        cursor = said.next_cursor.topic_name, said.next_cursor.partition_index
    raise AssertionError("the pages have no end")
