"""DescribeClientQuotas (key 48), versions 0-1. KIP-546, KIP-612.

- The quotas of entities that match every component: of just this name, the default, or any of the
  kind. Strictly, they have no other component.
"""

from __future__ import annotations

from typing import Final

from kraftline.broker.context import Context
from kraftline.controller.quotas import CLIENT_ID, IP, USER
from kraftline.metadata.access import Operation
from kraftline.metadata.image.client_quotas import QuotaEntity
from kraftline.schema.api.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from kraftline.schema.api.error_codes import ErrorCode

_DEFAULT: Final = 1
_ANY: Final = 2


def answer(request: DescribeClientQuotasRequest, context: Context) -> DescribeClientQuotasResponse:
    context.require(Operation.DESCRIBE_CONFIGS)
    wrong = _what_is_wrong_with(request.components)
    if wrong is not None:
        return DescribeClientQuotasResponse(
            error_code=wrong[0], error_message=wrong[1], entries=None
        )
    exact = {each.entity_type: each.match for each in request.components if each.match_type != _ANY}
    kinds = {each.entity_type for each in request.components if each.match_type == _ANY}
    entities = context.broker.cache.image.client_quotas.entities
    return DescribeClientQuotasResponse(
        entries=tuple(
            EntryData(
                entity=tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in each),
                values=tuple(ValueData(key=key, value=value) for key, value in quotas.items()),
            )
            for each, quotas in entities.items()
            if _matches(each, exact, kinds, request.strict)
        ),
    )


def failed(
    request: DescribeClientQuotasRequest, error: ErrorCode, context: Context
) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=error, error_message=None, entries=None)


def _matches(
    entity: QuotaEntity, exact: dict[str, str | None], kinds: set[str], strict: bool
) -> bool:
    named = dict(entity)
    if strict and len(named) != len(exact) + len(kinds):
        return False
    return kinds <= named.keys() and all(
        kind in named and named[kind] == name for kind, name in exact.items()
    )


def _what_is_wrong_with(
    components: tuple[ComponentData, ...],
) -> tuple[ErrorCode, str] | None:
    seen: set[str] = set()
    for each in components:
        kind = each.entity_type
        if not kind:
            return ErrorCode.INVALID_REQUEST, "Invalid empty entity type."
        if kind in seen:
            return (
                ErrorCode.INVALID_REQUEST,
                f"Entity type {kind} cannot appear more than once in the filter.",
            )
        if kind not in (USER, CLIENT_ID, IP):
            return ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}"
        seen.add(kind)
        match each.match_type:
            case 0 if each.match is None:
                return (
                    ErrorCode.INVALID_REQUEST,
                    "Request specified MATCH_TYPE_EXACT, but set match string to null.",
                )
            case 1 | 2 if each.match is not None:
                name = "DEFAULT" if each.match_type == _DEFAULT else "SPECIFIED"
                return (
                    ErrorCode.INVALID_REQUEST,
                    f"Request specified MATCH_TYPE_{name}, but also specified a match string.",
                )
            case 0 | 1 | 2:
                continue
            case _:
                return ErrorCode.INVALID_REQUEST, f"Unknown match type {each.match_type}"
    if IP in seen and len(seen) > 1:
        return (
            ErrorCode.INVALID_REQUEST,
            "Invalid entity filter component combination. IP filter component should not be used "
            "with user or clientId filter component.",
        )
    return None
