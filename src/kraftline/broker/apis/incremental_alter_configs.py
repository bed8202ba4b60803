"""IncrementalAlterConfigs (key 44), versions 0-1. KIP-339, KIP-412.

- Each resource stands for itself, and appears once; its changes are made together or not at all.
- Of brokers only this one, or all of them (no name).
- Levels of loggers are this process's own: they change at once, and are forgotten when it stops.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from kraftline.broker import loggers
from kraftline.broker.config_access import forbidden_to_alter
from kraftline.broker.context import Context
from kraftline.controller.config_changes import FORBIDDEN
from kraftline.controller.refusal import Refusal
from kraftline.metadata.access import Operation, Resource
from kraftline.metadata.image.configs import BROKER, BROKER_LOGGER
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


async def answer(
    request: IncrementalAlterConfigsRequest, context: Context
) -> IncrementalAlterConfigsResponse:
    own = [each for each in request.resources if each.resource_type == BROKER_LOGGER]
    outcomes = iter(_altered(own, context, validate_only=request.validate_only))
    others = tuple(each for each in request.resources if each.resource_type != BROKER_LOGGER)
    decided = await context.broker.controller.admin.incremental_alter_configs(
        msgspec.structs.replace(request, resources=others), forbidden_to_alter(others, context)
    )
    if not own:
        return decided
    of_others = iter(decided.responses)
    return IncrementalAlterConfigsResponse(
        responses=tuple(
            next(outcomes if each.resource_type == BROKER_LOGGER else of_others)
            for each in request.resources
        )
    )


def _altered(
    resources: Sequence[AlterConfigsResource], context: Context, *, validate_only: bool
) -> list[AlterConfigsResourceResponse]:
    counts = Counter(each.resource_name for each in resources)
    found = []
    for each in resources:
        outcome = Refusal(ErrorCode.NONE, None)
        try:
            if counts[each.resource_name] > 1:
                raise Refusal(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            if not context.may(Operation.ALTER_CONFIGS, Resource.CLUSTER):
                raise FORBIDDEN[BROKER]
            loggers.alter(each, context.broker.node_id, validate_only=validate_only)
        except Refusal as refusal:
            outcome = refusal
        found.append(
            AlterConfigsResourceResponse(
                error_code=outcome.code,
                error_message=outcome.message,
                resource_type=each.resource_type,
                resource_name=each.resource_name,
            )
        )
    return found
