"""What can go wrong with a partition's log, with the error code that Kafka gives it."""

from __future__ import annotations

import errno
from enum import IntEnum

import msgspec

from kraftline.errors import KraftlineError


class ErrorCode(IntEnum):
    """The codes of Kafka's protocol that a log can give."""

    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    MESSAGE_TOO_LARGE = 10
    RECORD_LIST_TOO_LARGE = 18
    INVALID_TIMESTAMP = 32
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    TRANSACTION_COORDINATOR_FENCED = 52
    KAFKA_STORAGE_ERROR = 56
    INVALID_RECORD = 87
    INCONSISTENT_TOPIC_ID = 103


class RecordError(msgspec.Struct, frozen=True):
    """Why one record of a batch was refused; `index` counts from 0 in the batch."""

    index: int
    message: str


class LogProblem(KraftlineError):
    """Base of what a log refuses or fails at."""

    code: ErrorCode


class AppendRefused(LogProblem):
    """A batch that is not taken into the log.

    `told` is what Kafka tells the client beside the code, which is little; `str()` says all.
    Kafka tells the log's start offset with some refusals and not with others: `tells_start`.
    """

    def __init__(
        self,
        code: ErrorCode,
        reason: str,
        *,
        told: str | None = None,
        record_errors: tuple[RecordError, ...] = (),
        tells_start: bool = True,
    ) -> None:
        super().__init__(reason)
        self.code = code
        self.told = told
        self.record_errors = record_errors
        self.tells_start = tells_start


class OffsetOutOfRange(LogProblem):
    """An offset that the log does not have."""

    code = ErrorCode.OFFSET_OUT_OF_RANGE


class StorageFailed(LogProblem):
    """The disk refused. Nothing of what was asked for has been done."""

    code = ErrorCode.KAFKA_STORAGE_ERROR


class DiskFull(StorageFailed):
    """There is no room now; the log goes on when there is."""


class DirectoryOffline(StorageFailed):
    """The disk of a log directory has failed; its logs take and give nothing any more."""


class LogClosed(LogProblem):
    """The log has been closed, or its partition deleted."""

    code = ErrorCode.KAFKA_STORAGE_ERROR


class InconsistentTopicId(LogProblem):
    """A partition's directory belongs to another topic of the same name."""

    code = ErrorCode.INCONSISTENT_TOPIC_ID


def is_full(error: OSError) -> bool:
    """Whether an error of the disk passes once there is room."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)
