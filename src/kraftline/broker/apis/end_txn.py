"""EndTxn (key 26), versions 0-5. KIP-98, KIP-890.

- Every partition of the transaction hears how it ended before it is told, unless one cannot hear
  it now; that one is told later.
- From version 5 on the producer gets another epoch with it, and another producer id where there is
  none left; an abort is fine where nothing has begun. Asked again, it is told the same again.
- PRODUCER_FENCED is INVALID_PRODUCER_EPOCH before version 2.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from kraftline.broker.context import Context
from kraftline.broker.coordinators.transactions.transitions import BUMPS_EPOCHS, Producer
from kraftline.controller.refusal import Refusal
from kraftline.metadata.access import Operation, Resource
from kraftline.schema.api.end_txn import EndTxnRequest, EndTxnResponse
from kraftline.schema.api.error_codes import ErrorCode

_KNOWS_FENCED: Final = 2
_BUMPS_EPOCHS: Final = 5


def answer(request: EndTxnRequest, context: Context) -> EndTxnResponse | Awaitable[EndTxnResponse]:
    id = request.transactional_id
    if not context.may(Operation.WRITE, Resource.TRANSACTIONAL_ID, id):
        raise Refusal(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, None)
    version = BUMPS_EPOCHS if context.version >= _BUMPS_EPOCHS else 0
    who = Producer(request.producer_id, request.producer_epoch)
    then = context.broker.transactions.end(id, who, request.committed, version)
    if isinstance(then, Producer):
        return EndTxnResponse(producer_id=then.id, producer_epoch=then.epoch)
    return _later(then)


async def _later(then: Awaitable[Producer]) -> EndTxnResponse:
    producer = await then
    return EndTxnResponse(producer_id=producer.id, producer_epoch=producer.epoch)


def failed(request: EndTxnRequest, error: ErrorCode, context: Context) -> EndTxnResponse:
    if error is ErrorCode.PRODUCER_FENCED and context.version < _KNOWS_FENCED:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    return EndTxnResponse(error_code=error)
