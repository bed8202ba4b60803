"""Producer ids are given out in blocks, so that brokers need not ask for each
(AllocateProducerIds)."""

from __future__ import annotations

from kraftline.controller.decision import Decision
from kraftline.metadata.image import MetadataImage
from kraftline.schema.api.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.metadata.producer_ids_record import ProducerIdsRecord

BLOCK = 1000
_LAST = (1 << 63) - 1


def allocate_producer_ids(
    image: MetadataImage, request: AllocateProducerIdsRequest
) -> Decision[AllocateProducerIdsResponse]:
    broker = image.cluster.brokers.get(request.broker_id)
    if broker is None or broker.epoch != request.broker_epoch:
        return Decision(AllocateProducerIdsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
    # The image says -1 while none was ever given out.
    first = max(image.producer_ids.next_producer_id, 0)
    if first > _LAST - BLOCK:
        return Decision(AllocateProducerIdsResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))
    record = ProducerIdsRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, next_producer_id=first + BLOCK
    )
    return Decision(
        AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=BLOCK), [(record, 0)]
    )
