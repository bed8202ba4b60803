"""AlterClientQuotas (key 49), versions 0-1. KIP-546, KIP-612.

- The controller decides, entity by entity. Addresses may be names of hosts, which are looked up
  before it does.
"""

from __future__ import annotations

import asyncio

from kraftline.broker.context import Context
from kraftline.controller.quotas import IP
from kraftline.metadata.access import Operation
from kraftline.schema.api.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntityData,
    AlterClientQuotasResponseEntryData,
)
from kraftline.schema.api.error_codes import ErrorCode


async def answer(request: AlterClientQuotasRequest, context: Context) -> AlterClientQuotasResponse:
    context.require(Operation.ALTER_CONFIGS)
    addresses = {
        each.entity_name
        for entry in request.entries
        for each in entry.entity
        if each.entity_type == IP and each.entity_name
    }
    hosts = {each for each in addresses if each is not None and await _is_host(each)}
    return await context.broker.controller.alter_client_quotas(request, hosts)


def failed(
    request: AlterClientQuotasRequest, error: ErrorCode, context: Context
) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(
        entries=tuple(
            AlterClientQuotasResponseEntryData(
                error_code=error,
                error_message=None,
                entity=tuple(
                    AlterClientQuotasResponseEntityData(
                        entity_type=each.entity_type, entity_name=each.entity_name
                    )
                    for each in entry.entity
                ),
            )
            for entry in request.entries
        )
    )


async def _is_host(name: str) -> bool:
    try:
        await asyncio.get_running_loop().getaddrinfo(name, None)
    except (OSError, UnicodeError):
        return False
    return True
