"""Partition logs as a broker keeps them: appended to, read, flushed, deleted and recovered."""

from kraftline.storage.log.batch_fields import Origin
from kraftline.storage.log.config import LogConfig, log_config
from kraftline.storage.log.loading import Opening, Stopped
from kraftline.storage.log.logs import Logs
from kraftline.storage.log.lookups import OffsetAt
from kraftline.storage.log.partition_log import Appended, Committed, PartitionLog
from kraftline.storage.log.problems import (
    AppendRefused,
    DirectoryOffline,
    DiskFull,
    ErrorCode,
    InconsistentTopicId,
    LogClosed,
    LogProblem,
    OffsetOutOfRange,
    RecordError,
    StorageFailed,
)
from kraftline.storage.log.reading import FileRange

__all__ = [
    "AppendRefused",
    "Appended",
    "Committed",
    "DirectoryOffline",
    "DiskFull",
    "ErrorCode",
    "FileRange",
    "InconsistentTopicId",
    "LogClosed",
    "LogConfig",
    "LogProblem",
    "Logs",
    "OffsetAt",
    "OffsetOutOfRange",
    "Opening",
    "Origin",
    "PartitionLog",
    "RecordError",
    "Stopped",
    "StorageFailed",
    "log_config",
]
