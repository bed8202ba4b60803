"""Where committed metadata records come from: the embedded log of a node that votes alone."""

from kraftline.raft.embedded import Appended, EmbeddedLog
from kraftline.raft.listener import Listener, Registration
from kraftline.raft.problems import (
    AppendTooLarge,
    Backlogged,
    LogClosed,
    LogFailed,
    LogRefused,
    SnapshotRefused,
)
from kraftline.raft.reading import CommittedBatches
from kraftline.raft.recovery import Recovery
from kraftline.raft.settings import LogSettings
from kraftline.storage.cuts import Cut

__all__ = [
    "Appended",
    "AppendTooLarge",
    "Backlogged",
    "CommittedBatches",
    "Cut",
    "EmbeddedLog",
    "Listener",
    "LogClosed",
    "LogFailed",
    "LogRefused",
    "LogSettings",
    "Recovery",
    "Registration",
    "SnapshotRefused",
]
