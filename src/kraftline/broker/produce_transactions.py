"""Records of transactions in a Produce request: what the coordinator has to be asked before they
are written, and what a producer is told where they are not."""

from __future__ import annotations

import struct
from typing import Final

import msgspec

from kraftline.broker.context import Context
from kraftline.broker.coordinators.transactions.transitions import Producer
from kraftline.broker.coordinators.transactions.verification import Client, Verdicts, Write
from kraftline.controller.refusal import Refusal
from kraftline.metadata.access import Operation, Resource
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.produce import ProduceRequest

_TOPIC_IDS: Final = 13
_ADDS_PARTITIONS: Final = 12
_KNOWS_ABORTABLE: Final = 11
_TAKES_ZSTD: Final = 7
_ZSTD: Final = 4
_ATTRIBUTES: Final = 22  # the low byte of a batch's attributes
_MAGIC: Final = 16
_TRANSACTIONAL: Final = 0x10
_HEADER: Final = 61
_PRODUCER: Final = 43
_producer = struct.Struct(">qhi").unpack_from  # id, epoch and first sequence of a batch

# The coordinator of a transaction is not to be asked now. Clients that may not know these errors
# are told one that they come again for, without looking for another leader.
_COORDINATOR_AWAY: Final = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


class Verified(msgspec.Struct, frozen=True):
    """The records of a transaction in a request: whose they are, and where they may not go."""

    who: Producer
    writes: dict[tuple[str, int], Write]
    verdicts: Verdicts


def is_transactional(request: ProduceRequest) -> bool:
    return any(
        _has_transaction(each.records)
        for topic in request.topic_data
        for each in topic.partition_data
    )


def _has_transaction(records: bytes | None) -> bool:
    return (
        records is not None
        and len(records) > _ATTRIBUTES
        and records[_MAGIC] == 2
        and records[_ATTRIBUTES] & _TRANSACTIONAL != 0
    )


def client_of(version: int) -> Client:
    if version >= _ADDS_PARTITIONS:
        return Client.ADDS
    return Client.KNOWS_ABORTABLE if version >= _KNOWS_ABORTABLE else Client.OLD


def writes_of(
    request: ProduceRequest, context: Context
) -> tuple[dict[tuple[str, int], Write], Producer | None]:
    """What there is to be verified: of the batches that are sound so far, those in a transaction,
    which are one producer's."""
    image, partitions = context.broker.cache.image, context.broker.partitions
    writes: dict[tuple[str, int], Write] = {}
    whose: set[Producer] = set()
    for topic in request.topic_data:
        name = topic.name
        if context.version >= _TOPIC_IDS:
            found = image.topics.by_id.get(topic.topic_id)
            if found is None:
                continue
            name = found.name
        if not context.may(Operation.WRITE, Resource.TOPIC, name):
            continue
        for each in topic.partition_data:
            records = each.records
            if records is None or len(records) < _HEADER or not _has_transaction(records):
                continue
            if records[_ATTRIBUTES] & 7 == _ZSTD and context.version < _TAKES_ZSTD:
                continue
            partition = partitions.find(name, each.index, image.topics)
            id, epoch, sequence = _producer(records, _PRODUCER)
            if partition is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or id < 0:
                continue
            whose.add(Producer(id, epoch))
            writes[name, each.index] = Write(name, each.index, sequence, partition)
    if len(whose) > 1:
        raise Refusal(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            "Transactional records contained more than one producer ID",
        )
    return writes, whose.pop() if whose else None


def is_worth_waiting(verdicts: Verdicts, client: Client) -> bool:
    """The end of the transaction before is on its way, and clients who add partitions here come
    right behind it."""
    return client is Client.ADDS and ErrorCode.CONCURRENT_TRANSACTIONS in verdicts.values()


def copied(request: ProduceRequest) -> ProduceRequest:
    """With records that outlive the frame."""
    return msgspec.structs.replace(
        request,
        topic_data=tuple(
            msgspec.structs.replace(
                topic,
                partition_data=tuple(
                    each
                    if each.records is None
                    else msgspec.structs.replace(each, records=bytearray(each.records))
                    for each in topic.partition_data
                ),
            )
            for topic in request.topic_data
        ),
    )


def told(error: ErrorCode, version: int) -> tuple[ErrorCode, str | None]:
    """What a producer is told of a partition that is not in its transaction."""
    if error is ErrorCode.INVALID_TXN_STATE:
        return error, "Partition was not added to the transaction"
    if error in _COORDINATOR_AWAY or (
        error is ErrorCode.CONCURRENT_TRANSACTIONS and version < _ADDS_PARTITIONS
    ):
        return (
            ErrorCode.NOT_ENOUGH_REPLICAS,
            "Unable to verify the partition has been added to the transaction. Underlying error: "
            + error.name,
        )
    return error, None
