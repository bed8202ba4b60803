"""Controllers register themselves (ControllerRegistration), from metadata version 3.7 on."""

from __future__ import annotations

from collections.abc import Sequence

from kraftline.controller.decision import Decision
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.registrations import Listener, SupportedFeature
from kraftline.schema.metadata.register_controller_record import (
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
)
from kraftline.schema.uuids import Uuid


def register_controller(
    image: MetadataImage,
    node_id: int,
    incarnation_id: Uuid,
    listeners: Sequence[Listener],
    features: Sequence[SupportedFeature],
) -> Decision[bool]:
    """Whether the cluster's metadata version has such registrations."""
    version = image.features.metadata_version
    assert version is not None
    record_version = version.register_controller_record_version
    if record_version is None:
        return Decision(False)
    record = RegisterControllerRecord(
        controller_id=node_id,
        incarnation_id=incarnation_id,
        zk_migration_ready=False,
        end_points=tuple(
            ControllerEndpoint(
                name=each.name,
                host=each.host,
                port=each.port,
                security_protocol=each.security_protocol,
            )
            for each in listeners
        ),
        features=tuple(
            ControllerFeature(
                name=each.name,
                min_supported_version=each.min_version,
                max_supported_version=each.max_version,
            )
            for each in features
        ),
    )
    return Decision(True, [(record, record_version)])
