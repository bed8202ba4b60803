"""AddOffsetsToTxn (key 25), versions 0-4. KIP-98.

- The partition of `__consumer_offsets` that has the group is to have records of the transaction, be
  the topic there yet or not.
- The client must be allowed to write with the transactional id, and to read with the group.
- PRODUCER_FENCED is INVALID_PRODUCER_EPOCH before version 2.
"""

from __future__ import annotations

from typing import Final

from kraftline.broker.context import Context
from kraftline.broker.coordinators.placing import partition_for
from kraftline.broker.coordinators.transactions.transitions import Producer
from kraftline.controller.refusal import Refusal
from kraftline.metadata.access import Operation, Resource
from kraftline.schema.api.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.coordinator.frame import OFFSETS

_KNOWS_FENCED: Final = 2


async def answer(request: AddOffsetsToTxnRequest, context: Context) -> AddOffsetsToTxnResponse:
    id, broker = request.transactional_id, context.broker
    if not context.may(Operation.WRITE, Resource.TRANSACTIONAL_ID, id):
        raise Refusal(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, None)
    if not context.may(Operation.READ, Resource.GROUP, request.group_id):
        raise Refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED, None)
    number = broker.groups.shards.partition_of(request.group_id)
    if number is None:  # the topic is made when somebody looks for the group's coordinator
        count = broker.config.whole("offsets.topic.num.partitions")
        number = partition_for(request.group_id, count)
    who = Producer(request.producer_id, request.producer_epoch)
    added = broker.transactions.add(id, who, ((OFFSETS.name, number),), 0)
    if added is not None:
        await added
    return AddOffsetsToTxnResponse()


def failed(
    request: AddOffsetsToTxnRequest, error: ErrorCode, context: Context
) -> AddOffsetsToTxnResponse:
    if error is ErrorCode.PRODUCER_FENCED and context.version < _KNOWS_FENCED:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    return AddOffsetsToTxnResponse(error_code=error)
