"""InitProducerId (key 22), versions 0-5. KIP-98, KIP-360.

- Without a transactional id: a producer id that nobody had before, with epoch 0.
- With one: this node coordinates no transactions yet, so it is not the coordinator.
- Who may write to any topic may have one, and who may write idempotently to the cluster; for a
  transactional id, who may write with it.
- A producer id and an epoch come together or not at all.
"""

from __future__ import annotations

from kraftline.broker.context import Context
from kraftline.broker.producer_ids import NoProducerIds
from kraftline.metadata.access import Operation, Resource
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


async def answer(request: InitProducerIdRequest, context: Context) -> InitProducerIdResponse:
    refused = _not_authorized(request, context)
    if refused is not None:
        return _failed(refused)
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        return _failed(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        return _failed(_of_transactions(request, context))
    try:
        producer_id = await context.broker.producer_ids.take()
    except NoProducerIds:
        # As from a coordinator that is not ready: clients ask again.
        return _failed(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


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


def _of_transactions(request: InitProducerIdRequest, context: Context) -> ErrorCode:
    if not request.transactional_id:
        return ErrorCode.INVALID_REQUEST
    longest = context.broker.config.whole("transaction.max.timeout.ms")
    if not 0 < request.transaction_timeout_ms <= longest:
        return ErrorCode.INVALID_TRANSACTION_TIMEOUT
    return ErrorCode.NOT_COORDINATOR


def _failed(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
