"""A broker is taken off the books for good (UnregisterBroker): it leads nothing, is in sync and
eligible nowhere, and must register anew to come back."""

from __future__ import annotations

from kraftline.controller.decision import Decision
from kraftline.controller.leaders import after_unregistering
from kraftline.controller.sessions import Sessions
from kraftline.controller.topic_configs import TopicConfigs
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.write_options import Versioned
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from kraftline.schema.metadata.unregister_broker_record import UnregisterBrokerRecord


def unregister_broker(
    image: MetadataImage,
    request: UnregisterBrokerRequest,
    configs: TopicConfigs,
    sessions: Sessions,
) -> Decision[UnregisterBrokerResponse]:
    broker = image.cluster.brokers.get(request.broker_id)
    if broker is None:
        return Decision(
            UnregisterBrokerResponse(
                error_code=ErrorCode.BROKER_ID_NOT_REGISTERED,
                error_message=f"Broker ID {request.broker_id} is not currently registered",
            )
        )
    records: list[Versioned] = list(after_unregistering(image, configs, broker.id))
    records.append((UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch), 0))
    return Decision(
        UnregisterBrokerResponse(),
        records,
        sessions=sessions.without(broker.id),
        is_atomic=False,
    )
