"""May this batch into the log? Kafka's rules for what a leader appends, walked by the kernel.

- Exactly one whole batch of format v2, with a right checksum, not larger than max.message.bytes.
- From a client also: offsets from 0, as many as records; no control batch; a producer has a
  sequence.
- Records are walked whether or not anyone needs a field: their lengths, count and offsets must
  add up. (Kafka takes an uncompressed batch whose records have any offsets, and answers some
  broken bytes with UNKNOWN_SERVER_ERROR; here these are INVALID_RECORD.)
- Keys where the topic is compacted, timestamps within limits where they are the producer's: each
  record at fault is named.
- Timestamps and codec become the topic's, in place where only the header changes.
"""

from __future__ import annotations

from array import array
from typing import Final

import google_crc32c

from kraftline.errors import BadData
from kraftline.records.batch import HEADER_SIZE, take_scratch
from kraftline.records.compression import compress, decompress
from kraftline.records.kernel import active as kernel
from kraftline.records.patch import set_max_timestamp
from kraftline.records.record import Codec
from kraftline.records.write import frame_batch
from kraftline.storage.log.batch_fields import CONTROL, TRANSACTIONAL, BatchFields, Origin
from kraftline.storage.log.config import LogConfig
from kraftline.storage.log.problems import AppendRefused, ErrorCode, RecordError

_scan = kernel.scan
_measure = kernel.measure
_crc = google_crc32c.value
_ROW: Final = bytes(8 * kernel.STRIDE)
_SUMS: Final = bytes(8 * kernel.TOTALS)
_SIZE: Final = kernel.SIZE
_MAGIC: Final = kernel.MAGIC
_ATTRIBUTES: Final = kernel.ATTRIBUTES
_COUNT: Final = kernel.COUNT
_BASE_OFFSET: Final = kernel.BASE_OFFSET
_LAST_OFFSET_DELTA: Final = kernel.LAST_OFFSET_DELTA
_BODY: Final = kernel.BODY
_BODY_END: Final = kernel.BODY_END
_STORED_CRC: Final = kernel.CRC
_MAX_TIMESTAMP: Final = kernel.MAX_TIMESTAMP
_BASE_TIMESTAMP: Final = kernel.BASE_TIMESTAMP
_PRODUCER_ID: Final = kernel.PRODUCER_ID
_PRODUCER_EPOCH: Final = kernel.PRODUCER_EPOCH
_BASE_SEQUENCE: Final = kernel.BASE_SEQUENCE
_NULL_KEYS: Final = kernel.NULL_KEYS
_NOT_CONSECUTIVE: Final = kernel.NOT_CONSECUTIVE
_OLDEST: Final = kernel.OLDEST
_NEWEST: Final = kernel.NEWEST

_CODEC: Final = 0x07
_APPEND_TIME: Final = 0x08
_NO_TIMESTAMP: Final = -1


def admit(
    data: memoryview, config: LogConfig, origin: Origin, now: int, partition: str
) -> BatchFields:
    """The batch in `data`, which is writable, checked and with the topic's timestamps and codec.

    Its base offset and leader epoch are the log's to write. AppendRefused where it may not in.
    """
    table = array("q", _ROW)
    rows, stop, why = _scan(data, 0, len(data), 0, table)
    if rows == 0 or stop != len(data):
        data = _only_batch(data, rows, stop, why)
    attributes = table[_ATTRIBUTES]
    codec = attributes & _CODEC
    from_client = origin is Origin.CLIENT
    if table[_MAGIC] != 2:
        raise AppendRefused(
            ErrorCode.INVALID_RECORD,
            f"a batch of format v{table[_MAGIC]} for {partition}: only v2 is taken",
            tells_start=False,
        )
    if from_client and table[_BASE_OFFSET] != 0:
        raise _invalid(f"the base offset is {table[_BASE_OFFSET]}, not 0", partition)
    if table[_SIZE] > config.max_message_bytes:
        raise _too_large(table[_SIZE], config, partition)
    if _crc(bytes(data[21:])) != table[_STORED_CRC] & 0xFFFFFFFF:
        raise AppendRefused(
            ErrorCode.CORRUPT_MESSAGE, f"a wrong checksum, for {partition}", tells_start=False
        )
    count = table[_LAST_OFFSET_DELTA] + 1
    if from_client:
        _check_client(table, count, partition)

    body = data
    if codec:
        body = _unpack(codec, data, partition)
        table[_BODY], table[_BODY_END] = 0, len(body)
    sums = array("q", _SUMS)
    try:
        _measure(body, table, 0, 1, sums)
    except BadData as error:
        raise _invalid(error.reason, partition) from None
    if from_client and sums[_NOT_CONSECUTIVE]:
        raise _invalid("the offsets of its records do not follow each other", partition)
    oldest, newest = sums[_OLDEST], sums[_NEWEST]
    if attributes & _APPEND_TIME:
        oldest = newest = table[_MAX_TIMESTAMP]
    if (
        (config.compact and sums[_NULL_KEYS] and not attributes & CONTROL)
        or (config.log_append_time and attributes & _APPEND_TIME)
        or now - oldest > config.timestamp_before_max_ms
        or newest - now > config.timestamp_after_max_ms
    ):
        _check_records(body, table, config, now, partition)

    if config.log_append_time:
        max_timestamp = log_append_time = now
    else:
        max_timestamp, log_append_time = max(newest, _NO_TIMESTAMP), -1
    target = codec if config.codec is None or attributes & CONTROL else config.codec
    if target != codec:
        packed = compress(target, body[table[_BODY] : table[_BODY_END]], level=config.level)
        data = _reframed(packed, table, target, config.log_append_time, max_timestamp)
        if len(data) > config.max_message_bytes:
            raise _too_large(len(data), config, partition)
    elif config.log_append_time:
        set_max_timestamp(data, 0, "LogAppendTime", now)
    elif attributes & _APPEND_TIME or max_timestamp != table[_MAX_TIMESTAMP]:
        set_max_timestamp(data, 0, "CreateTime", max_timestamp)
    return BatchFields(
        data,
        attributes,
        count,
        max_timestamp,
        table[_PRODUCER_ID],
        table[_PRODUCER_EPOCH],
        table[_BASE_SEQUENCE],
        log_append_time,
    )


def _only_batch(data: memoryview, rows: int, stop: int, why: int) -> memoryview:
    """The one whole batch at the start of the data. What is left of a second one that was cut is
    dropped, as Kafka drops it."""
    if rows == 0 and why == kernel.BAD_MAGIC:
        magic = data[stop + 16] - 256 if data[stop + 16] > 127 else data[stop + 16]
        raise _framing(f"Invalid magic found in record: {magic}", told=True)
    if rows == 0 and why == kernel.BAD_LENGTH:
        size = int.from_bytes(data[stop + 8 : stop + 12], "big", signed=True)
        if size < 14:
            text = f"Record size {size} is less than the minimum record overhead (14)"
            raise _framing(text, told=True)
        raise _framing(f"a batch with a length of {size}, too small for its header")
    if rows == 1:
        more, _, why = _scan(data, stop, len(data), 0, array("q", _ROW))
        if more == 0 and why == kernel.CUT:
            return data[:stop]
        if more == 0:
            raise _framing("bytes that are no batch behind the batch")
    raise AppendRefused(
        ErrorCode.INVALID_RECORD,
        "exactly one whole batch is taken for a partition at a time",
        tells_start=False,
    )


def _check_client(table: array[int], count: int, partition: str) -> None:
    announced = table[_COUNT]
    if count <= 0:
        raise _invalid(f"a last offset delta of {count - 1}", partition)
    if announced <= 0:
        raise _invalid(f"a count of {announced} records", partition)
    if announced != count:
        raise _invalid(f"{announced} records announced, for {count} offsets", partition)
    if table[_ATTRIBUTES] & CONTROL:
        raise _invalid("clients may not write control records", partition)
    if table[_PRODUCER_ID] >= 0 and table[_BASE_SEQUENCE] < 0:
        raise _invalid(
            f"sequence {table[_BASE_SEQUENCE]} of producer {table[_PRODUCER_ID]}", partition
        )


def _unpack(codec: int, data: memoryview, partition: str) -> memoryview:
    scratch = take_scratch()
    try:
        return decompress(codec, data[HEADER_SIZE:], scratch=scratch)
    except BadData as error:
        raise _invalid(error.reason, partition) from None
    finally:
        scratch.shrink()  # what was unpacked keeps what it needs


def _reframed(
    packed: bytes, table: array[int], codec: int, log_append_time: bool, max_timestamp: int
) -> memoryview:
    """The same records, compressed in another way, as a new batch."""
    return memoryview(
        bytearray(
            frame_batch(
                packed,
                count=table[_COUNT],
                base_offset=0,
                last_offset=table[_LAST_OFFSET_DELTA],
                base_timestamp=table[_BASE_TIMESTAMP],
                max_timestamp=max_timestamp,
                codec=Codec(codec),
                timestamp_type="LogAppendTime" if log_append_time else "CreateTime",
                producer_id=table[_PRODUCER_ID],
                producer_epoch=table[_PRODUCER_EPOCH],
                base_sequence=table[_BASE_SEQUENCE],
                is_transactional=bool(table[_ATTRIBUTES] & TRANSACTIONAL),
            )
        )
    )


def _check_records(
    body: memoryview, table: array[int], config: LogConfig, now: int, partition: str
) -> None:
    """Name every record at fault. There may be none: a record without a time has no limits."""
    found = array("q", bytes(8 * kernel.P_STRIDE * table[_COUNT]))
    kernel.positions(body, table, 0, 1, found)
    says_append_time = bool(table[_ATTRIBUTES] & _APPEND_TIME)
    keyless: list[RecordError] = []
    untimely: list[RecordError] = []
    for index in range(table[_COUNT]):
        at = index * kernel.P_STRIDE
        timestamp = found[at + kernel.P_TIMESTAMP]
        if config.compact and found[at + kernel.P_KEY_END] < 0:
            keyless.append(
                RecordError(
                    index,
                    "Compacted topic cannot accept message without key in topic partition "
                    + partition,
                )
            )
        elif not config.log_append_time and timestamp != _NO_TIMESTAMP:
            if (
                now - timestamp > config.timestamp_before_max_ms
                or timestamp - now > config.timestamp_after_max_ms
            ):
                untimely.append(
                    RecordError(
                        index,
                        f"Timestamp {timestamp} of message with offset "
                        f"{found[at + kernel.P_OFFSET]} is out of range. The timestamp should be "
                        f"within [{_wrapped(now - config.timestamp_before_max_ms)}, "
                        f"{_wrapped(now + config.timestamp_after_max_ms)}]",
                    )
                )
        elif says_append_time:
            untimely.append(
                RecordError(
                    index,
                    f"Invalid timestamp type in message {_as_java_says(found, at)}. Producer "
                    "should not set timestamp type to LogAppendTime.",
                )
            )
    if untimely:
        told = "One or more records have been rejected due to invalid timestamp"
        errors = tuple(sorted([*keyless, *untimely], key=lambda error: error.index))
        raise AppendRefused(
            ErrorCode.INVALID_TIMESTAMP,
            f"{told}, for {partition}: {errors[0].message}",
            told=told,
            record_errors=errors,
        )
    if keyless:
        shown = ", ".join(
            f"RecordError(batchIndex={error.index}, message='{error.message}')"
            for error in keyless[:3]
        )
        told = (
            f"One or more records have been rejected due to {len(keyless)} record errors in "
            f"total, and only showing the first three errors at most: [{shown}]"
        )
        raise AppendRefused(
            ErrorCode.INVALID_RECORD,
            f"{len(keyless)} records without key for {partition}, which is compacted",
            told=told,
            record_errors=tuple(keyless),
        )


def _as_java_says(found: array[int], at: int) -> str:
    key = max(0, found[at + kernel.P_KEY_END] - found[at + kernel.P_KEY])
    value = max(0, found[at + kernel.P_VALUE_END] - found[at + kernel.P_VALUE])
    return (
        f"DefaultRecord(offset={found[at + kernel.P_OFFSET]}, "
        f"timestamp={found[at + kernel.P_TIMESTAMP]}, key={key} bytes, value={value} bytes)"
    )


def _wrapped(number: int) -> int:
    """A sum as Java's 64 bits have it."""
    return (number + 2**63) % 2**64 - 2**63


def _invalid(reason: str, partition: str) -> AppendRefused:
    return AppendRefused(ErrorCode.INVALID_RECORD, f"a batch for {partition}: {reason}")


def _framing(reason: str, *, told: bool = False) -> AppendRefused:
    return AppendRefused(
        ErrorCode.CORRUPT_MESSAGE, reason, told=reason if told else None, tells_start=False
    )


def _too_large(size: int, config: LogConfig, partition: str) -> AppendRefused:
    return AppendRefused(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"a batch of {size} bytes for {partition}, where max.message.bytes is "
        f"{config.max_message_bytes}",
        tells_start=False,
    )
