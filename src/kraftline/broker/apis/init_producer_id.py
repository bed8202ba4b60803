"""InitProducerId (key 22), versions 0-5. KIP-98, KIP-360, KIP-890.

- Without a transactional id: a producer id that nobody had before, with epoch 0.
- With one: its producer id with the next epoch, and a new producer id where there is no next. What
  was going on is aborted first: CONCURRENT_TRANSACTIONS meanwhile, and the client asks again.
- Who may write to any topic may have one, and who may write idempotently to the cluster; for a
  transactional id, who may write with it.
- A producer id and an epoch come together or not at all; with them a producer goes on after an
  error, if nobody else has begun since (PRODUCER_FENCED, before version 4 INVALID_PRODUCER_EPOCH).
"""

from __future__ import annotations

from typing import Final

from kraftline.broker.context import Context
from kraftline.broker.coordinators.transactions.transitions import Producer
from kraftline.broker.producer_ids import NoProducerIds
from kraftline.controller.refusal import Refusal
from kraftline.metadata.access import Operation, Resource
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

_KNOWS_FENCED: Final = 4


async def answer(request: InitProducerIdRequest, context: Context) -> InitProducerIdResponse:
    refused = _not_authorized(request, context)
    if refused is not None:
        return failed(request, refused, context)
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        return failed(request, ErrorCode.INVALID_REQUEST, context)
    if request.transactional_id is not None:
        producer = await _of_transactions(request.transactional_id, request, context)
        return InitProducerIdResponse(producer_id=producer.id, producer_epoch=producer.epoch)
    try:
        producer_id = await context.broker.producer_ids.take()
    except NoProducerIds:
        # As from a coordinator that is not ready: clients ask again.
        return failed(request, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, context)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def failed(
    request: InitProducerIdRequest, error: ErrorCode, context: Context
) -> InitProducerIdResponse:
    if error is ErrorCode.PRODUCER_FENCED and context.version < _KNOWS_FENCED:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    return InitProducerIdResponse(error_code=error, producer_id=-1, producer_epoch=-1)


def _not_authorized(request: InitProducerIdRequest, context: Context) -> ErrorCode | None:
    if request.transactional_id is not None:
        if context.may(Operation.WRITE, Resource.TRANSACTIONAL_ID, request.transactional_id):
            return None
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if context.may(Operation.IDEMPOTENT_WRITE, Resource.CLUSTER) or context.may_some(
        Operation.WRITE, Resource.TOPIC
    ):
        return None
    return ErrorCode.CLUSTER_AUTHORIZATION_FAILED


async def _of_transactions(id: str, request: InitProducerIdRequest, context: Context) -> Producer:
    transactions = context.broker.transactions
    if not id:
        raise Refusal(ErrorCode.INVALID_REQUEST, None)
    if not 0 < request.transaction_timeout_ms <= transactions.longest_timeout_ms:
        raise Refusal(ErrorCode.INVALID_TRANSACTION_TIMEOUT, None)
    expected = None
    if request.producer_id != -1:
        expected = Producer(request.producer_id, request.producer_epoch)
    return await transactions.initialise(id, request.transaction_timeout_ms, expected)
