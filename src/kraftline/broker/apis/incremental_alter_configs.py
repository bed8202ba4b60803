"""IncrementalAlterConfigs (key 44), versions 0-1. KIP-339.

- Each resource stands for itself, and appears once; its changes are made together or not at all.
- Of brokers only this one, or all of them (no name). Levels of loggers cannot be changed.
"""

from __future__ import annotations

from kraftline.broker.config_access import forbidden_to_alter
from kraftline.broker.context import Context
from kraftline.schema.api.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


async def answer(
    request: IncrementalAlterConfigsRequest, context: Context
) -> IncrementalAlterConfigsResponse:
    forbidden = forbidden_to_alter(request.resources, context)
    return await context.broker.controller.admin.incremental_alter_configs(request, forbidden)
