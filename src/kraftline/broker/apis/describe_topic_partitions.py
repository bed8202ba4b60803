"""DescribeTopicPartitions (key 75), version 0. KIP-966.

- An empty list means all topics. Names come back sorted, each once; those before the cursor's
  topic are left out.
- A cursor is inclusive. With a list of topics its topic must be among them, and its partition must
  not be negative: INVALID_REQUEST for each topic of the list otherwise. Where all are listed its
  topic may be gone. Past a topic's end it gives the topic without partitions.
- At most min(request's limit, max.request.partition.size.limit) partitions, but at least one.
  `next_cursor` is where to go on: inside a topic, or at the start of the next one, be that known or
  not. Topics with an error use up none of the limit.
- A topic that is not there: UNKNOWN_TOPIC_OR_PARTITION, or INVALID_TOPIC_EXCEPTION for a name that
  none can have.
- Without a cursor, a topic without a name makes it fail: UNKNOWN_SERVER_ERROR for each topic.
- Replicas and ISR as they are; leader -1 only if it is not registered or lacks the listener.
- Topics that the client may not describe come last, as TOPIC_AUTHORIZATION_FAILED, be they there or
  not; where all are listed they are left out.
- Authorized operations are told without being asked for.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Final

from kraftline.broker.context import Context
from kraftline.broker.encoded import EncodedTopic, Table
from kraftline.broker.operations import ALL_OF_TOPIC
from kraftline.broker.reach import Reach
from kraftline.broker.registry import Body
from kraftline.controller.refusal import Refusal
from kraftline.metadata.access import Operation, Resource
from kraftline.metadata.image.topic import TopicImage
from kraftline.metadata.partition import PartitionRegistration
from kraftline.metadata.topic_names import is_internal, is_valid
from kraftline.schema.api.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseCursor,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.codec import encode, writer
from kraftline.schema.wire import Writer

_LIMIT: Final = "max.request.partition.size.limit"
# In front of a topic's partitions: its head, their count; behind them: operations, no tags.
_BEHIND: Final = 4 + 1

# A topic of more partitions than that is not encoded as a whole for the sake of a page.
_LARGE: Final = 10_000

_write_partition = writer(DescribeTopicPartitionsResponsePartition, 0)


def answer(request: DescribeTopicPartitionsRequest, context: Context) -> Body:
    cache = context.broker.cache
    image = cache.image
    limit = max(1, min(context.broker.config.whole(_LIMIT), request.response_partition_limit))
    start = 0 if request.cursor is None else request.cursor.partition_index
    at = "" if request.cursor is None else request.cursor.topic_name
    names: Iterable[str] = (
        _chosen(request, at) if request.topics else _from(cache.names(image.topics), at)
    )
    if start < 0:
        raise Refusal(
            ErrorCode.INVALID_REQUEST,
            f"DescribeTopicPartitionsRequest cursor partition must be valid: {start}",
        )
    if (
        request.cursor is None
        and any(each.name == "" for each in request.topics)
        and context.may(Operation.DESCRIBE, Resource.TOPIC, "")
    ):
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, "a topic without a name")
    table = cache.encoded.table("partitions", context.listener, image.cluster, _encoded)
    parts: list[bytes] = []
    refused: list[bytes] = []
    left = limit
    next_cursor = None
    for name in names:
        if not context.may(Operation.DESCRIBE, Resource.TOPIC, name):
            if request.topics:
                refused.append(_refused(name))
            continue
        if left == 0:
            next_cursor = DescribeTopicPartitionsResponseCursor(topic_name=name, partition_index=0)
            break
        topic = image.topics.named(name)
        if topic is None:
            if request.topics:
                parts.append(_unknown(name, context))
            continue
        first = start if name == at else 0
        count = len(topic.partitions)
        # As Kafka adds: past the largest int the end is before the start.
        end = min(count, _as_int(first + left))
        data, told = _page(table, topic, first, end)
        if context.is_guarded:
            data = b"".join((data[:-_BEHIND], _operations(name, context), b"\0"))
        parts.append(data)
        if end < count:
            next_cursor = DescribeTopicPartitionsResponseCursor(
                topic_name=name, partition_index=end
            )
            break
        left -= told
    return _body(parts + refused, next_cursor)


def failed(
    request: DescribeTopicPartitionsRequest, error: ErrorCode, context: Context
) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(
        topics=tuple(
            DescribeTopicPartitionsResponseTopic(error_code=error, name=each.name)
            for each in request.topics
        )
    )


def _chosen(request: DescribeTopicPartitionsRequest, at: str) -> list[str]:
    """The topics of the request that are not before the cursor's, sorted as Java sorts."""
    before = _java_order(at)
    names = {each.name for each in request.topics if _java_order(each.name) >= before}
    if request.cursor is not None and at not in names:
        raise Refusal(
            ErrorCode.INVALID_REQUEST,
            f"DescribeTopicPartitionsRequest topic list should contain the cursor topic: {at}",
        )
    return sorted(names, key=_java_order)


def _from(names: list[str], at: str) -> Iterator[str]:
    """All names that are not before one, without a copy of the list."""
    for number in range(bisect_left(names, at) if at else 0, len(names)):
        yield names[number]


def _java_order(name: str) -> bytes:
    return name.encode("utf-16-be", "surrogatepass")


def _as_int(number: int) -> int:
    return (number + (1 << 31)) % (1 << 32) - (1 << 31)


def _page(table: Table, topic: TopicImage, first: int, end: int) -> tuple[bytes, int]:
    """A topic with its partitions from `first` to before `end`, and how many those are."""
    count = len(topic.partitions)
    if topic.sparse is not None or count > _LARGE:
        within = [(i, p) for i in range(first, end) if (p := topic.partition(i)) is not None]
        return _written(topic, within, table.reach).data, len(within)
    found = table.of(topic)
    if first == 0 and end == count:
        return found.data, count
    marks, data = found.marks, found.data
    assert marks is not None
    told = max(0, end - first)
    head = Writer()
    head.compact_array_length(told)
    return b"".join(
        (
            data[: marks[0]],
            head.getvalue(),
            data[marks[first + 1] : marks[end + 1]] if told else b"",
            data[-_BEHIND:],
        )
    ), told


def _encoded(topic: TopicImage, reach: Reach) -> EncodedTopic:
    return _written(topic, topic.items(), reach)


def _written(
    topic: TopicImage, partitions: Iterable[tuple[int, PartitionRegistration]], reach: Reach
) -> EncodedTopic:
    """Marks: where the head ends, where partitions begin, and where each of them ends."""
    out = Writer()
    starts = array("I", (0,))
    count = 0
    for number, partition in partitions:
        _write_partition(
            out,
            DescribeTopicPartitionsResponsePartition(
                0,
                number,
                reach.leader(partition.leader),
                partition.leader_epoch,
                partition.replicas,
                partition.isr,
                partition.elr,
                partition.last_known_elr,
                reach.offline(partition),
            ),
        )
        starts.append(out.pos)
        count += 1
    whole = encode(
        DescribeTopicPartitionsResponseTopic(
            name=topic.name,
            topic_id=topic.id,
            is_internal=is_internal(topic.name),
            topic_authorized_operations=ALL_OF_TOPIC,
        ),
        0,
    )
    head, behind = whole[: -_BEHIND - 1], whole[-_BEHIND:]
    length = Writer()
    length.compact_array_length(count)
    front = head + length.getvalue()
    marks = array("I", (len(head), *(len(front) + each for each in starts)))
    return EncodedTopic(topic, b"".join((front, out.getvalue(), behind)), marks)


def _operations(name: str, context: Context) -> bytes:
    return context.authorized_operations(Resource.TOPIC, name).to_bytes(4, "big")


def _refused(name: str) -> bytes:
    return encode(
        DescribeTopicPartitionsResponseTopic(
            error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name
        ),
        0,
    )


def _unknown(name: str, context: Context) -> bytes:
    error = (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if is_valid(name)
        else ErrorCode.INVALID_TOPIC_EXCEPTION
    )
    return encode(
        DescribeTopicPartitionsResponseTopic(
            error_code=error,
            name=name,
            is_internal=is_internal(name),
            topic_authorized_operations=context.authorized_operations(Resource.TOPIC, name),
        ),
        0,
    )


def _body(parts: list[bytes], cursor: DescribeTopicPartitionsResponseCursor | None) -> Body:
    """The throttle time, the topics as they are, the cursor."""
    without = encode(DescribeTopicPartitionsResponse(next_cursor=cursor), 0)
    count = Writer()
    count.compact_array_length(len(parts))
    return Body([b"".join((without[:4], count.getvalue(), *parts, without[5:]))])
