"""Produce (key 0), versions 3-13; announced from 0, as Kafka does.

- One batch to a partition, checked and written by its log; from version 13 topics go by their ids.
- acks 1 is answered once it is written, -1 once all in sync have it, or the timeout is over; 0
  never, but an error closes the connection. Any other is INVALID_REQUIRED_ACKS.
- flush.messages is kept before the answer, in a thread.
- Fewer replicas in sync than min.insync.replicas: NOT_ENOUGH_REPLICAS, for acks -1 only.
- Internal topics are written by this broker alone (and by whoever calls itself its admin client).
- A wrong leader is told the right one from version 10 on.
- Records of a transaction go into partitions that its coordinator knows of. From version 12 on it
  gets to know of them here; clients of older versions have told it before.

Records are views into the frame, and done with when `answer` returns: what it returns may wait,
the records may not, unless they are copied.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Awaitable, Iterable
from typing import Final

import msgspec

from kraftline.broker.context import Context
from kraftline.broker.coordinators.transactions.transitions import Producer
from kraftline.broker.coordinators.transactions.verification import (
    Client,
    Verdicts,
    Write,
    verify,
)
from kraftline.broker.leaders import current_leader, endpoint
from kraftline.broker.partition import Partition, Turn
from kraftline.broker.produce_transactions import (
    Verified,
    client_of,
    copied,
    is_transactional,
    is_worth_waiting,
    told,
    writes_of,
)
from kraftline.controller.refusal import Refusal
from kraftline.metadata.access import Operation, Resource
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.topic_names import is_internal
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from kraftline.schema.uuids import Uuid
from kraftline.server.connection import CloseConnection
from kraftline.storage.log import Appended, AppendRefused, LogProblem

_logger = logging.getLogger(__name__)

_ADMIN_CLIENT: Final = "__admin_client"
_TOPIC_IDS: Final = 13
_TELLS_LEADER: Final = 10
_TAKES_ZSTD: Final = 7
_ZSTD: Final = 4
_ATTRIBUTES: Final = 22  # the low byte of a batch's attributes
_MAGIC: Final = 16
_HEADER: Final = 61

_length = struct.Struct(">i").unpack_from  # of a batch, behind its base offset


class _Written(msgspec.Struct, frozen=True, gc=False):
    """A batch that is in the log."""

    partition: Partition
    appended: Appended


def answer(
    request: ProduceRequest, context: Context
) -> ProduceResponse | Awaitable[ProduceResponse | None] | None:
    if not is_transactional(request):
        return _write(request, context, None, None)
    id = request.transactional_id
    if id is None or not context.may(Operation.WRITE, Resource.TRANSACTIONAL_ID, id):
        refused = _refusal(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        return _write(request, context, refused, None)
    client = client_of(context.version)
    if client is not Client.ADDS and not context.broker.verifies_transactions:
        return _write(request, context, None, None)
    try:
        writes, who = writes_of(request, context)
    except Refusal as refusal:
        return _write(request, context, _refusal(refusal.code, refusal.message), None)
    if who is None:
        return _write(request, context, None, None)
    verdicts = verify(context.broker.transactions, id, who, client, writes.values())
    if isinstance(verdicts, dict) and not is_worth_waiting(verdicts, client):
        return _write(request, context, None, Verified(who, writes, verdicts))
    return _write_later(copied(request), context, verdicts, client, who, writes)


def _write(
    request: ProduceRequest,
    context: Context,
    refused: PartitionProduceResponse | None,
    verified: Verified | None,
) -> ProduceResponse | Awaitable[ProduceResponse | None] | None:
    image = context.broker.cache.image
    written: list[_Written] = []
    topics = []
    for topic in _once(request.topic_data):
        name, unknown = topic.name, refused
        if context.version >= _TOPIC_IDS:
            found = image.topics.by_id.get(topic.topic_id)
            if found is None:
                unknown = unknown or _refusal(ErrorCode.UNKNOWN_TOPIC_ID)
            else:
                name = found.name
        if unknown is None and not context.may(Operation.WRITE, Resource.TOPIC, name):
            unknown = _refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        data = topic.partition_data
        if len(data) > 1:  # as in Kafka, of one that is named twice the last counts
            data = tuple({each.index: each for each in data}.values())
        responses = []
        for each in data:
            if unknown is not None:
                responses.append(msgspec.structs.replace(unknown, index=each.index))
                continue
            made = _append(name, each, request, context, image, written, verified)
            meter = context.broker.meters.of(name)
            meter.produces += 1
            if made.error_code:
                meter.failed_produces += 1
            responses.append(made)
        if responses:
            topics.append(
                TopicProduceResponse(
                    name=topic.name, topic_id=topic.topic_id, partition_responses=tuple(responses)
                )
            )
    response = _response(topics, context, image)
    waits = [each for each in written if each.appended.must_flush or _is_behind(each, request)]
    if waits:
        return _later(request, response, waits, context)
    return _told(request, response)


def failed(request: ProduceRequest, error: ErrorCode, context: Context) -> ProduceResponse | None:
    topics = tuple(
        TopicProduceResponse(
            name=topic.name,
            topic_id=topic.topic_id,
            partition_responses=tuple(
                _refusal(error, index=each.index) for each in topic.partition_data
            ),
        )
        for topic in request.topic_data
    )
    return _told(request, ProduceResponse(responses=topics))


def _once(topics: tuple[TopicProduceData, ...]) -> Iterable[TopicProduceData]:
    """Topics that are named several times are one, with all their partitions."""
    if len(topics) < 2:
        return topics
    found: dict[tuple[str, Uuid], TopicProduceData] = {}
    for each in topics:
        key = each.name, each.topic_id
        known = found.get(key)
        if known is not None:
            each = msgspec.structs.replace(
                known, partition_data=known.partition_data + each.partition_data
            )
        found[key] = each
    return found.values()


async def _write_later(
    request: ProduceRequest,
    context: Context,
    verdicts: Verdicts | Awaitable[Verdicts],
    client: Client,
    who: Producer,
    writes: dict[tuple[str, int], Write],
) -> ProduceResponse | None:
    """Once the coordinator has said what it has to say, asked several times if need be."""
    config, id = context.broker.config, request.transactional_id
    assert id is not None
    longest = min(
        config.whole("add.partitions.to.txn.retry.backoff.max.ms"),
        config.whole("request.timeout.ms"),
    )
    pause = config.whole("add.partitions.to.txn.retry.backoff.ms") / 1000
    deadline = asyncio.get_running_loop().time() + longest / 1000
    while True:
        if not isinstance(verdicts, dict):
            verdicts = await verdicts
        if not is_worth_waiting(verdicts, client) or asyncio.get_running_loop().time() >= deadline:
            break
        await asyncio.sleep(pause)
        verdicts = verify(context.broker.transactions, id, who, client, writes.values())
    response = _write(request, context, None, Verified(who, writes, verdicts))
    if response is None or isinstance(response, ProduceResponse):
        return response
    return await response


def _refusal(
    code: int, message: str | None = None, *, index: int = 0, log_start_offset: int = -1
) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=index,
        error_code=code,
        base_offset=-1,
        log_start_offset=log_start_offset,
        error_message=message,
    )


def _append(
    name: str,
    data: PartitionProduceData,
    request: ProduceRequest,
    context: Context,
    image: MetadataImage,
    written: list[_Written],
    verified: Verified | None,
) -> PartitionProduceResponse:
    index, records = data.index, data.records
    partitions = context.broker.partitions
    partition = partitions.find(name, index, image.topics)
    if partition is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return _refusal(partition, index=index)
    if not records:
        return _refusal(ErrorCode.INVALID_RECORD, index=index)
    write = None if verified is None else verified.writes.get((name, index))
    if verified is not None and write is not None:
        verdict = verified.verdicts.get((name, index))
        if verdict is not None:
            error, message = told(verdict, context.version)
            return _refusal(error, message, index=index)
    if request.acks not in (-1, 0, 1):
        whole = len(records) >= _HEADER and len(records) >= 12 + _length(records, 8)[0]
        error = ErrorCode.INVALID_REQUIRED_ACKS if whole else ErrorCode.INVALID_RECORD
        return _refusal(error, index=index)
    if len(records) >= _HEADER and records[_MAGIC] == 2:
        attributes = records[_ATTRIBUTES]
        if attributes & 7 == _ZSTD and context.version < _TAKES_ZSTD:
            return _refusal(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, index=index)
    if is_internal(name) and context.client_id != _ADMIN_CLIENT:
        return _refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, index=index)
    if not isinstance(partition, Partition):
        return _refusal(partition, index=index)
    if not partition.is_leader:
        return _refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, index=index)
    log = partition.log
    if request.acks == -1 and partition.isr_size < partition.min_isr:
        return _refusal(
            ErrorCode.NOT_ENOUGH_REPLICAS, index=index, log_start_offset=log.start_offset
        )
    if (
        verified is not None
        and write is not None
        and context.broker.transactions.verifications.is_out_of_order(write, verified.who)
    ):
        return _refusal(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            index=index,
            log_start_offset=log.start_offset,
        )
    try:
        appended = log.append(records, partition.leader_epoch)
    except AppendRefused as problem:
        _logger.info("a batch of %s is refused: %s", context.connection.peer, problem)
        return PartitionProduceResponse(
            index=index,
            error_code=problem.code,
            base_offset=-1,
            log_start_offset=log.start_offset if problem.tells_start else -1,
            record_errors=tuple(
                BatchIndexAndErrorMessage(
                    batch_index=each.index, batch_index_error_message=each.message
                )
                for each in problem.record_errors
            ),
            error_message=problem.told,
        )
    except LogProblem as problem:
        _logger.error("%s", problem)
        return _refusal(problem.code, index=index)
    partition.advanced()
    if verified is not None and write is not None:
        context.broker.transactions.verifications.appended(name, index, verified.who.id)
    if appended.rolled:
        partitions.flush_later(partition)
    written.append(_Written(partition, appended))
    meter = context.broker.meters.of(name)
    meter.messages_in += appended.last_offset - appended.first_offset + 1
    meter.bytes_in += len(records)
    return PartitionProduceResponse(
        index=index,
        base_offset=appended.first_offset,
        log_append_time_ms=appended.log_append_time,
        log_start_offset=appended.log_start_offset,
    )


def _response(
    topics: list[TopicProduceResponse], context: Context, image: MetadataImage
) -> ProduceResponse:
    if context.version < _TELLS_LEADER or not any(
        each.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        for topic in topics
        for each in topic.partition_responses
    ):
        return ProduceResponse(responses=tuple(topics))
    leaders: set[int] = set()

    def told(topic: TopicProduceResponse) -> TopicProduceResponse:
        responses = []
        for each in topic.partition_responses:
            if each.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                found = image.topics.by_id.get(topic.topic_id)
                name = topic.name if found is None else found.name
                leader, epoch = current_leader(image, name, each.index)
                leaders.add(leader)
                each = msgspec.structs.replace(
                    each, current_leader=LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)
                )
            responses.append(each)
        return msgspec.structs.replace(topic, partition_responses=tuple(responses))

    responses = tuple(map(told, topics))
    endpoints = []
    for leader in sorted(leaders):
        at = endpoint(image, leader, context.listener)
        if at is not None:
            where, rack = at
            endpoints.append(
                NodeEndpoint(node_id=leader, host=where.host, port=where.port, rack=rack)
            )
    return ProduceResponse(responses=responses, node_endpoints=tuple(endpoints))


def _is_behind(written: _Written, request: ProduceRequest) -> bool:
    """Whether replicas in sync do not have the batch yet that the producer wants them to have."""
    return request.acks == -1 and (
        written.partition.log.high_watermark <= written.appended.last_offset
    )


async def _later(
    request: ProduceRequest, response: ProduceResponse, waits: list[_Written], context: Context
) -> ProduceResponse | None:
    """The same response once everything is flushed and replicated that has to be."""
    errors: dict[tuple[str, int], int] = {}
    behind = [each for each in waits if _is_behind(each, request)]

    async def flush(written: _Written) -> None:
        log = written.partition.log
        try:
            end = written.appended.last_offset + 1
            await written.partition.flushed(end, context.broker.partitions.threads)
        except LogProblem as problem:
            _logger.error("%s", problem)
            errors[log.topic, log.partition] = problem.code

    flushes = [flush(each) for each in waits if each.appended.must_flush]
    if flushes:
        await asyncio.gather(*flushes)
    if behind:

        def settled() -> bool:
            return all(
                not each.partition.is_leader or not _is_behind(each, request) for each in behind
            )

        await Turn([each.partition for each in behind], settled).over(request.timeout_ms)
        for each in behind:
            log = each.partition.log
            if not each.partition.is_leader:
                errors[log.topic, log.partition] = ErrorCode.NOT_LEADER_OR_FOLLOWER
            elif _is_behind(each, request):
                errors[log.topic, log.partition] = ErrorCode.REQUEST_TIMED_OUT
            elif each.partition.isr_size < each.partition.min_isr:
                errors[log.topic, log.partition] = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    if errors:
        response = _with_errors(response, errors, context)
    return _told(request, response)


def _with_errors(
    response: ProduceResponse, errors: dict[tuple[str, int], int], context: Context
) -> ProduceResponse:
    image = context.broker.cache.image
    topics = []
    for topic in response.responses:
        found = image.topics.by_id.get(topic.topic_id)
        name = topic.name if found is None else found.name
        topics.append(
            msgspec.structs.replace(
                topic,
                partition_responses=tuple(
                    msgspec.structs.replace(each, error_code=errors[name, each.index])
                    if (name, each.index) in errors
                    else each
                    for each in topic.partition_responses
                ),
            )
        )
    return _response(topics, context, image)


def _told(request: ProduceRequest, response: ProduceResponse) -> ProduceResponse | None:
    """With acks=0 nobody waits for an answer, so an error can only be told by closing."""
    if request.acks:
        return response
    failed = [
        f"{topic.name}-{each.index}: {ErrorCode(each.error_code).name}"
        for topic in response.responses
        for each in topic.partition_responses
        if each.error_code
    ]
    if failed:
        raise CloseConnection(f"a produce request with acks=0 failed: {', '.join(failed)}")
    return None
