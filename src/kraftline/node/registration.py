"""How a broker introduces itself to its controller."""

from __future__ import annotations

from collections.abc import Sequence

from kraftline.config.node_settings import NodeSettings
from kraftline.metadata.features import supported_features
from kraftline.metadata.random_ids import random_uuid
from kraftline.schema.api.broker_registration import BrokerRegistrationRequest, Feature, Listener
from kraftline.schema.uuids import Uuid


def registration_of(
    settings: NodeSettings,
    cluster_id: str,
    listeners: tuple[Listener, ...],
    directories: tuple[Uuid, ...],
    previous_epochs: Sequence[int | None],
) -> BrokerRegistrationRequest:
    """`previous_epochs` are what clean stops left in the directories, None where there was none:
    only if all say the same nothing can have been lost."""
    agreed = set(previous_epochs)
    epoch = agreed.pop() if len(agreed) == 1 else None
    return BrokerRegistrationRequest(
        broker_id=settings.node_id,
        cluster_id=cluster_id,
        incarnation_id=random_uuid(),
        listeners=listeners,
        features=_features(),
        rack=settings.rack,
        log_dirs=directories,
        previous_broker_epoch=-1 if epoch is None else epoch,
    )


def _features() -> tuple[Feature, ...]:
    """What this software supports."""
    return tuple(
        Feature(name=name, min_supported_version=least, max_supported_version=most)
        for name, (least, most) in supported_features().items()
    )
