"""Metadata (key 3), versions 0-13. KIP-204, KIP-361, KIP-430, KIP-516.

- No list (in version 0 an empty one) means all topics; an empty list none. By id from version 12:
  one that is not known is UNKNOWN_TOPIC_ID without a name. Ids or a missing name in versions 10 and
  11, which have a place for them, are INVALID_REQUEST.
- A topic that is not there is UNKNOWN_TOPIC_OR_PARTITION, or INVALID_TOPIC_EXCEPTION for a name
  that none can have. If broker and client allow it, it is being created when the answer goes out.
- Topics that the client may not describe are left out where all are asked for, and otherwise
  TOPIC_AUTHORIZATION_FAILED, be they there or not; so is one that it may not create.
- Brokers are those that are not fenced and have the listener that was asked through.
- A partition whose leader is not registered is LEADER_NOT_AVAILABLE; one whose leader lacks the
  listener LISTENER_NOT_FOUND, before version 6 LEADER_NOT_AVAILABLE too. The leader is -1 then.
- In version 0 replicas that are away are left out, and the partition is REPLICA_NOT_AVAILABLE.
- The controller is any broker that is not fenced: each passes on what is the controller's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cache as remember
from typing import Final

from kraftline.broker.cache import alive_brokers, some_alive_broker
from kraftline.broker.context import Context
from kraftline.broker.encoded import Encode, EncodedTopic, Everything, Table
from kraftline.broker.operations import ALL_OF_TOPIC, NOT_ASKED
from kraftline.broker.reach import NOBODY, Reach
from kraftline.broker.registry import Body
from kraftline.controller.refusal import Refusal
from kraftline.metadata.access import Operation, Resource
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.image.topic import TopicImage
from kraftline.metadata.partition import PartitionRegistration
from kraftline.metadata.topic_names import is_internal, is_valid
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kraftline.schema.codec import encode, writer
from kraftline.schema.types import ZERO
from kraftline.schema.uuids import Uuid
from kraftline.schema.wire import Writer

# Partitions that are encoded in one go before others have their turn.
_TURN: Final = 5_000
# Versions in which topics look the same, by the first of them.
_FORMS: Final = (0, 1, 5, 6, 7, 8, 9, 10)


def answer(request: MetadataRequest, context: Context) -> Body | Awaitable[Body]:
    image = context.broker.cache.image
    version = context.version
    with_operations = request.include_topic_authorized_operations
    form = max(each for each in _FORMS if each <= version)
    table = context.broker.cache.encoded.table(
        ("metadata", form, with_operations),
        context.listener,
        image.cluster,
        _encoding(form, with_operations),
    )
    asked = request.topics
    if asked is None or (version == 0 and not asked):
        if context.is_guarded:
            return _all_seen(request, context, image, table)
        found = table.everything
        if found is not None and found.topics is image.topics:
            return _body(request, context, image, found.count, [found.data])
        if table.lacks(image.topics.by_id.values()) > _TURN:
            return _all_in_turns(request, context, image, table)
        return _all(request, context, image, table)
    if version < 12:
        for each in asked:
            if each.name is None:
                raise _invalid(f"Topic name can not be null for version {version}")
            if each.topic_id != ZERO:
                raise _invalid(f"Topic IDs are not supported in requests for version {version}")
    ids = dict.fromkeys(each.topic_id for each in asked if each.topic_id != ZERO)
    if ids:
        known = {
            topic.name: each for each in ids if (topic := image.topics.by_id.get(each)) is not None
        }
        unknown = [
            MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=each)
            for each in ids
            if each not in image.topics.by_id
        ]
        return _named(request, context, image, table, known, unknown)
    if any(each.name is None for each in asked):
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, "a topic with neither a name nor an id")
    return _named(request, context, image, table, dict.fromkeys(each.name or "" for each in asked))


def failed(request: MetadataRequest, error: ErrorCode, context: Context) -> MetadataResponse:
    return MetadataResponse(
        topics=tuple(
            MetadataResponseTopic(error_code=error, name=each.name or "", topic_id=each.topic_id)
            for each in request.topics or ()
        ),
        error_code=error,
    )


def _invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, message)


def _all(request: MetadataRequest, context: Context, image: MetadataImage, table: Table) -> Body:
    parts = [
        table.of(topic).data
        for name in context.broker.cache.names(image.topics)
        if (topic := image.topics.named(name)) is not None and topic.partitions
    ]
    whole = Everything(image.topics, len(parts), b"".join(parts))
    table.everything = whole
    return _body(request, context, image, whole.count, [whole.data])


def _all_seen(
    request: MetadataRequest, context: Context, image: MetadataImage, table: Table
) -> Body:
    """What there is for a client that may not see everything: of the rest it is not told."""
    parts = [
        _with_operations(table.of(topic).data, name, request, context)
        for name in context.broker.cache.names(image.topics)
        if context.may(Operation.DESCRIBE, Resource.TOPIC, name)
        and (topic := image.topics.named(name)) is not None
        and topic.partitions
    ]
    return _body(request, context, image, len(parts), parts)


def _with_operations(data: bytes, name: str, request: MetadataRequest, context: Context) -> bytes:
    """A topic with what this client may do with it, which is the last that is told of it."""
    if not (request.include_topic_authorized_operations and context.is_guarded):
        return data
    behind = 1 if context.version >= 9 else 0
    operations = context.authorized_operations(Resource.TOPIC, name).to_bytes(4, "big")
    return b"".join((data[: -4 - behind], operations, data[len(data) - behind :]))


async def _all_in_turns(
    request: MetadataRequest, context: Context, image: MetadataImage, table: Table
) -> Body:
    """Where much is to be encoded nobody else waits for all of it."""
    done = 0
    for topic in image.topics.by_id.values():
        if table.lacks((topic,)):
            table.of(topic)
            done += len(topic.partitions)
            if done >= _TURN:
                done = 0
                await asyncio.sleep(0)
    return _all(request, context, image, table)


def _named(
    request: MetadataRequest,
    context: Context,
    image: MetadataImage,
    table: Table,
    names: Mapping[str, Uuid | None],
    unknown: Sequence[MetadataResponseTopic] = (),
) -> Body:
    """`names` with the ids that they were asked for by."""
    parts = [encode(each, context.version) for each in unknown]
    missing = []
    refused = []
    creates = request.allow_auto_topic_creation and context.broker.auto_topics.is_enabled
    for name, topic_id in names.items():
        if not context.may(Operation.DESCRIBE, Resource.TOPIC, name):
            refused.append(_refused(None if topic_id else name, topic_id or ZERO))
            continue
        topic = image.topics.named(name)
        if topic is not None and topic.partitions:
            parts.append(_with_operations(table.of(topic).data, name, request, context))
        elif creates and not (
            context.may(Operation.CREATE, Resource.CLUSTER)
            or context.may(Operation.CREATE, Resource.TOPIC, name)
        ):
            refused.append(_refused(name, ZERO, is_internal(name)))
        else:
            missing.append(_missing(name, topic, request, context))
    if missing and request.allow_auto_topic_creation:
        context.broker.auto_topics.create(each.name for each in missing if each.name is not None)
    parts += [encode(each, context.version) for each in (*missing, *refused)]
    return _body(request, context, image, len(parts), parts)


def _refused(name: str | None, topic_id: Uuid, of_kafka: bool = False) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        name=name,
        topic_id=topic_id,
        is_internal=of_kafka,
    )


def _missing(
    name: str, topic: TopicImage | None, request: MetadataRequest, context: Context
) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if is_valid(name)
            else ErrorCode.INVALID_TOPIC_EXCEPTION
        ),
        name=name,
        topic_id=ZERO if topic is None else topic.id,
        is_internal=is_internal(name),
        topic_authorized_operations=(
            context.authorized_operations(Resource.TOPIC, name)
            if request.include_topic_authorized_operations
            else NOT_ASKED
        ),
    )


def _body(
    request: MetadataRequest,
    context: Context,
    image: MetadataImage,
    count: int,
    topics: Sequence[bytes],
) -> Body:
    """What is around the topics, encoded without any, and they in their place."""
    version = context.version
    around = encode(
        MetadataResponse(
            brokers=tuple(
                MetadataResponseBroker(
                    node_id=broker.id, host=at.host, port=at.port, rack=broker.rack
                )
                for broker, at in alive_brokers(image, context.listener)
            ),
            cluster_id=context.broker.cluster_id,
            controller_id=some_alive_broker(image),
            cluster_authorized_operations=(
                context.operations_of_cluster()
                if request.include_cluster_authorized_operations
                else NOT_ASKED
            ),
        ),
        version,
    )
    behind = len(around) - (4 if 8 <= version <= 10 else 0) - (2 if version >= 13 else 0)
    length = Writer()
    if version >= 9:
        behind -= 1
        length.compact_array_length(count)
    else:
        length.array_length(count)
    before = behind - (1 if version >= 9 else 4)
    return Body([b"".join((around[:before], length.getvalue(), *topics, around[behind:]))])


@remember
def _encoding(form: int, with_operations: bool) -> Encode:
    """How a topic is encoded in the versions of a form."""
    write = writer(MetadataResponseTopic, form)
    partitions_of = _partitions_0 if form == 0 else _partitions_of(form)

    def encoded(topic: TopicImage, reach: Reach) -> EncodedTopic:
        out = Writer()
        write(
            out,
            MetadataResponseTopic(
                name=topic.name,
                topic_id=topic.id,
                is_internal=is_internal(topic.name),
                partitions=tuple(partitions_of(topic, reach)),
                topic_authorized_operations=ALL_OF_TOPIC if with_operations else NOT_ASKED,
            ),
        )
        return EncodedTopic(topic, out.getvalue())

    return encoded


def _partitions_of(
    form: int,
) -> Callable[[TopicImage, Reach], Iterable[MetadataResponsePartition]]:
    elsewhere = (
        ErrorCode.LISTENER_NOT_FOUND if form >= 6 else ErrorCode.LEADER_NOT_AVAILABLE
    ).value

    def partitions_of(topic: TopicImage, reach: Reach) -> list[MetadataResponsePartition]:
        found = []
        for number, partition in topic.items():
            leader = reach.leader(partition.leader)
            error = 0
            if leader == NOBODY:
                error = (
                    elsewhere
                    if reach.is_registered(partition.leader)
                    else ErrorCode.LEADER_NOT_AVAILABLE.value
                )
            found.append(
                MetadataResponsePartition(
                    error,
                    number,
                    leader,
                    partition.leader_epoch,
                    partition.replicas,
                    partition.isr,
                    reach.offline(partition),
                )
            )
        return found

    return partitions_of


def _partitions_0(topic: TopicImage, reach: Reach) -> list[MetadataResponsePartition]:
    found = []
    for number, partition in topic.items():
        replicas, isr = reach.alive(partition.replicas), reach.alive(partition.isr)
        leader = reach.leader(partition.leader)
        error = ErrorCode.NONE
        if leader == NOBODY:
            error = ErrorCode.LEADER_NOT_AVAILABLE
        elif _fewer(replicas, isr, partition):
            error = ErrorCode.REPLICA_NOT_AVAILABLE
        found.append(
            MetadataResponsePartition(
                error_code=error,
                partition_index=number,
                leader_id=leader,
                replica_nodes=replicas,
                isr_nodes=isr,
            )
        )
    return found


def _fewer(
    replicas: tuple[int, ...], isr: tuple[int, ...], partition: PartitionRegistration
) -> bool:
    return len(replicas) < len(partition.replicas) or len(isr) < len(partition.isr)
