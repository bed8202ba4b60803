"""AddPartitionsToTxn (key 24), versions 0-5. KIP-98, KIP-890.

- Up to version 3 a client adds partitions of its own transaction: it must be allowed to write with
  the id and to the topics. From version 4 on brokers ask, for any number of transactions, who are
  allowed to act for the cluster; they may also only ask whether the partitions are in it.
- One partition that cannot be added keeps all of its transaction out: OPERATION_NOT_ATTEMPTED.
- A partition that was only asked for and is not in the transaction: TRANSACTION_ABORTABLE.
- PRODUCER_FENCED is INVALID_PRODUCER_EPOCH before version 2.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from kraftline.broker.context import Context
from kraftline.broker.coordinators.transactions.transitions import BUMPS_EPOCHS, Producer
from kraftline.controller.refusal import Refusal
from kraftline.metadata.access import Operation, Resource
from kraftline.metadata.topic_names import is_internal
from kraftline.schema.api.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from kraftline.schema.api.error_codes import ErrorCode

_KNOWS_FENCED: Final = 2
_BATCHED: Final = 4
_Errors = dict[tuple[str, int], ErrorCode]


async def answer(
    request: AddPartitionsToTxnRequest, context: Context
) -> AddPartitionsToTxnResponse:
    if context.version >= _BATCHED:
        context.require(Operation.CLUSTER_ACTION)
        found = {each.transactional_id: await _one(each, context) for each in request.transactions}
        return AddPartitionsToTxnResponse(
            results_by_transaction=tuple(
                AddPartitionsToTxnResult(transactional_id=id, topic_results=_results(errors))
                for id, errors in found.items()
            )
        )
    errors = await _one(_of_client(request), context)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_results(errors))


def failed(
    request: AddPartitionsToTxnRequest, error: ErrorCode, context: Context
) -> AddPartitionsToTxnResponse:
    if context.version >= _BATCHED:
        return AddPartitionsToTxnResponse(error_code=error)
    errors = dict.fromkeys(_partitions(_of_client(request)), error)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_results(errors))


def _of_client(request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )


def _partitions(asked: AddPartitionsToTxnTransaction) -> list[tuple[str, int]]:
    return [(topic.name, number) for topic in asked.topics for number in topic.partitions]


async def _one(asked: AddPartitionsToTxnTransaction, context: Context) -> _Errors:
    id, partitions = asked.transactional_id, _partitions(asked)
    if context.version < _BATCHED and not context.may(
        Operation.WRITE, Resource.TRANSACTIONAL_ID, id
    ):
        return dict.fromkeys(partitions, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    errors = _not_to_be_added(partitions, context)
    if errors:
        return dict.fromkeys(partitions, ErrorCode.OPERATION_NOT_ATTEMPTED) | errors
    who = Producer(asked.producer_id, asked.producer_epoch)
    try:
        if asked.verify_only:
            missing = context.broker.transactions.missing(id, who, partitions)
            return dict.fromkeys(partitions, ErrorCode.NONE) | dict.fromkeys(
                missing, ErrorCode.TRANSACTION_ABORTABLE
            )
        version = BUMPS_EPOCHS if context.version >= _BATCHED else 0
        added: Awaitable[None] | None = context.broker.transactions.add(
            id, who, partitions, version
        )
        if added is not None:
            await added
    except Refusal as refusal:
        error = refusal.code
        if error is ErrorCode.PRODUCER_FENCED and context.version < _KNOWS_FENCED:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        return dict.fromkeys(partitions, error)
    return dict.fromkeys(partitions, ErrorCode.NONE)


def _not_to_be_added(partitions: list[tuple[str, int]], context: Context) -> _Errors:
    topics = context.broker.cache.image.topics
    from_client = context.version < _BATCHED
    errors: _Errors = {}
    for name, number in partitions:
        if from_client and (
            is_internal(name) or not context.may(Operation.WRITE, Resource.TOPIC, name)
        ):
            errors[name, number] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            continue
        topic = topics.named(name)
        if topic is None or topic.partition(number) is None:
            errors[name, number] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return errors


def _results(errors: _Errors) -> tuple[AddPartitionsToTxnTopicResult, ...]:
    topics: dict[str, list[AddPartitionsToTxnPartitionResult]] = {}
    for (name, number), error in errors.items():
        topics.setdefault(name, []).append(
            AddPartitionsToTxnPartitionResult(partition_index=number, partition_error_code=error)
        )
    return tuple(
        AddPartitionsToTxnTopicResult(name=name, results_by_partition=tuple(results))
        for name, results in topics.items()
    )
