"""Quotas of clients are set and removed (AlterClientQuotas).

- An entity is a user, a client id, both together, or an address; a name of None is the default of
  its kind. Each stands for itself, with all of its quotas or none.
- What is as it was already, or is not there to be removed, leaves no record.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from kraftline.controller.decision import Decision
from kraftline.controller.java_order import in_string_order
from kraftline.controller.refusal import Refusal
from kraftline.controller.topics import MOST_RECORDS
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.image.client_quotas import QuotaEntity
from kraftline.metadata.write_options import Versioned
from kraftline.schema.api.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntityData,
    AlterClientQuotasResponseEntryData,
)
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.metadata.client_quota_record import ClientQuotaRecord, EntityData

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
# The largest whole number that a quota may be; None where it may have a fraction.
_OF_CLIENTS: Final[dict[str, float | None]] = {
    "producer_byte_rate": float(2**63),
    "consumer_byte_rate": float(2**63),
    "request_percentage": None,
    "controller_mutation_rate": None,
}
_OF_ADDRESSES: Final[dict[str, float | None]] = {"connection_creation_rate": float(2**31 - 1)}
_SIZES: Final = {float(2**63): "a LONG", float(2**31 - 1): "an INT"}


def alter_client_quotas(
    image: MetadataImage, request: AlterClientQuotasRequest, hosts: Container[str]
) -> Decision[AlterClientQuotasResponse]:
    """`hosts` are those of the addresses in the request that are real."""
    records: list[Versioned] = []
    results: dict[QuotaEntity, Refusal | None] = {}
    for entry in request.entries:
        named = {each.entity_type: each.entity_name for each in entry.entity}
        entity: QuotaEntity = tuple(sorted(named.items(), key=lambda item: item[0]))
        kinds = in_string_order(named, room=len(entry.entity))
        ops: dict[str, float | None] = {}
        for op in entry.ops:
            if op.key in ops:
                results[entity] = _invalid(
                    f"Duplicate quota key {op.key} not updating quota for this entity "
                    f"{_java_text(named, kinds)}"
                )
            else:
                ops[op.key] = None if op.remove else op.value
        if entity in results:
            results[entity] = _invalid(f"Ignoring duplicate entity {_java_text(named, kinds)}")
            continue
        try:
            known = _checked(named, kinds, hosts)
            records += _records(image, entity, ops, known, room=len(entry.ops))
            results[entity] = None
        except Refusal as refusal:
            results[entity] = refusal
    if len(records) > MOST_RECORDS:
        raise Refusal(
            ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation"
        )
    response = AlterClientQuotasResponse(
        entries=tuple(_result(entity, refusal) for entity, refusal in results.items())
    )
    return Decision(response, () if request.validate_only else records)


def _records(
    image: MetadataImage,
    entity: QuotaEntity,
    ops: dict[str, float | None],
    known: dict[str, float | None],
    *,
    room: int,
) -> list[Versioned]:
    current = image.client_quotas.entities.get(entity, {})
    types = dict(entity)
    written = tuple(
        EntityData(entity_type=kind, entity_name=types[kind])
        for kind in in_string_order(types, room=3)
    )
    records: list[Versioned] = []
    for key in in_string_order(ops, room=room):
        value = ops[key]
        if value is None:
            if key in current:
                records.append((ClientQuotaRecord(entity=written, key=key, remove=True), 0))
            continue
        _check_value(known, key, value)
        if current.get(key) != value:
            record = ClientQuotaRecord(entity=written, key=key, value=value, remove=False)
            records.append((record, 0))
    return records


def _checked(
    entity: dict[str, str | None], kinds: list[str], hosts: Container[str]
) -> dict[str, float | None]:
    """The quotas that an entity may have."""
    if not entity:
        raise _invalid("Invalid empty client quota entity")
    for kind in kinds:
        if kind not in (USER, CLIENT_ID, IP):
            raise _invalid(f"Unhandled client quota entity type: {kind}")
        if entity[kind] == "":
            raise _invalid(f"Empty {kind} not supported")
    if IP not in entity:
        return _OF_CLIENTS
    if len(entity) > 1:
        raise _invalid(
            "Invalid quota entity combination, IP entity shouldnot be combined with User or "
            "ClientId"
        )
    address = entity[IP]
    if address is not None and address not in hosts:
        raise _invalid(f"{address} is not a valid IP or resolvable host.")
    return _OF_ADDRESSES


def _check_value(known: dict[str, float | None], key: str, value: float) -> None:
    if key not in known:
        raise _invalid(f"Invalid configuration key {key}")
    if value <= 0.0:
        raise _invalid(f"Quota {key} must be greater than 0")
    most = known[key]
    if most is None:
        return
    if value > most:
        raise _invalid(f"Proposed value for {key} is too large for {_SIZES[most]}.")
    if abs(value % 1.0) > 1e-6:
        raise _invalid(f"{key} cannot be a fractional value.")


def _result(entity: QuotaEntity, refused: Refusal | None) -> AlterClientQuotasResponseEntryData:
    return AlterClientQuotasResponseEntryData(
        error_code=ErrorCode.NONE if refused is None else refused.code,
        error_message=None if refused is None else refused.message,
        entity=tuple(
            AlterClientQuotasResponseEntityData(entity_type=kind, entity_name=name)
            for kind, name in entity
        ),
    )


def _java_text(entity: dict[str, str | None], kinds: list[str]) -> str:
    said = ", ".join(f"{kind}={'null' if entity[kind] is None else entity[kind]}" for kind in kinds)
    return f"ClientQuotaEntity(entries={{{said}}})"


def _invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, message)
