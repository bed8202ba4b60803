"""Controllers register (ControllerRegistration), from metadata version 3.7 on.

Kafka looks at nothing but the metadata version, and fails at an address that nobody could connect
to; what a controller supports counts when features are changed.
"""

from __future__ import annotations

from typing import Final

from kraftline.controller.decision import Decision
from kraftline.metadata.image import MetadataImage
from kraftline.schema.api.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.metadata.register_controller_record import (
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
)

_UNEXPECTED: Final = "The server experienced an unexpected error when processing the request."
_TOO_OLD: Final = "The current MetadataVersion is too old to support controller registrations."


def register_controller(
    image: MetadataImage, request: ControllerRegistrationRequest
) -> Decision[ControllerRegistrationResponse]:
    version = image.features.metadata_version
    assert version is not None
    record_version = version.register_controller_record_version
    if record_version is None:
        return _refused(ErrorCode.UNSUPPORTED_VERSION, _TOO_OLD)
    if any(not each.host or not each.port for each in request.listeners):
        return _refused(ErrorCode.UNKNOWN_SERVER_ERROR, _UNEXPECTED)
    listeners = {each.name: each for each in request.listeners}  # the last of a name counts
    features = {each.name: each for each in request.features}
    record = RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        zk_migration_ready=request.zk_migration_ready,
        end_points=tuple(
            ControllerEndpoint(
                name=each.name,
                host=each.host,
                port=each.port,
                security_protocol=each.security_protocol,
            )
            for each in listeners.values()
        ),
        features=tuple(
            ControllerFeature(
                name=each.name,
                min_supported_version=each.min_supported_version,
                max_supported_version=each.max_supported_version,
            )
            for each in features.values()
        ),
    )
    return Decision(ControllerRegistrationResponse(), [(record, record_version)])


def _refused(code: ErrorCode, message: str) -> Decision[ControllerRegistrationResponse]:
    return Decision(ControllerRegistrationResponse(error_code=code, error_message=message))
