"""DescribeTransactions (key 65), version 0. KIP-664.

- Each id has an error of its own: TRANSACTIONAL_ID_NOT_FOUND, or that its coordinator is not here.
- Topics that the client may not describe are left out.
"""

from __future__ import annotations

from kraftline.broker.context import Context
from kraftline.broker.coordinators.transactions.transaction import Transaction
from kraftline.controller.refusal import Refusal
from kraftline.metadata.access import Operation, Resource
from kraftline.schema.api.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from kraftline.schema.api.error_codes import ErrorCode


def answer(request: DescribeTransactionsRequest, context: Context) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=tuple(_one(id, context) for id in request.transactional_ids)
    )


def failed(
    request: DescribeTransactionsRequest, error: ErrorCode, context: Context
) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=tuple(
            TransactionState(error_code=error, transactional_id=id)
            for id in request.transactional_ids
        )
    )


def _one(id: str, context: Context) -> TransactionState:
    try:
        found = _find(id, context)
    except Refusal as refusal:
        return TransactionState(error_code=refusal.code, transactional_id=id)
    topics: dict[str, list[int]] = {}
    for topic, number in sorted(found.partitions):
        topics.setdefault(topic, []).append(number)
    return TransactionState(
        transactional_id=id,
        transaction_state=found.status.told,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.started_at,
        producer_id=found.producer_id,
        producer_epoch=found.epoch,
        topics=tuple(
            TopicData(topic=topic, partitions=tuple(numbers))
            for topic, numbers in topics.items()
            if context.may(Operation.DESCRIBE, Resource.TOPIC, topic)
        ),
    )


def _find(id: str, context: Context) -> Transaction:
    if not context.may(Operation.DESCRIBE, Resource.TRANSACTIONAL_ID, id):
        raise Refusal(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, None)
    if not id:
        raise Refusal(ErrorCode.INVALID_REQUEST, None)
    found = context.broker.transactions.shards.of(id).transactions.get(id)
    if found is None:
        raise Refusal(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, None)
    return found
