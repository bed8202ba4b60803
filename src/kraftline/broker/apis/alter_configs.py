"""AlterConfigs (key 33), versions 0-2. KIP-133.

- The keys of a resource become those of the request: what it does not name is unset.
- Otherwise as IncrementalAlterConfigs, which took its place.
"""

from __future__ import annotations

from kraftline.broker.config_access import forbidden_to_alter
from kraftline.broker.context import Context
from kraftline.schema.api.alter_configs import AlterConfigsRequest, AlterConfigsResponse


async def answer(request: AlterConfigsRequest, context: Context) -> AlterConfigsResponse:
    forbidden = forbidden_to_alter(request.resources, context)
    return await context.broker.controller.admin.alter_configs(request, forbidden)
