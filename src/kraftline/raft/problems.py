"""What can go wrong with the log of metadata, for those who append to it or open it."""

from __future__ import annotations

from kraftline.errors import KraftlineError


class LogRefused(KraftlineError):
    """The directory cannot be opened as the log of this node, and why."""


class LogFailed(KraftlineError):
    """The disk refused a write or a flush. Nothing that waited was acknowledged, and the log
    takes no more: what is on the disk is known only after it has been opened again."""


class LogClosed(KraftlineError):
    """The log has been closed."""


class AppendTooLarge(KraftlineError):
    """Records that must take effect together do not fit into one batch."""


class Backlogged(KraftlineError):
    """More waits for the disk than the log holds in memory: wait for `room()`, then append."""


class SnapshotRefused(KraftlineError):
    """No snapshot can be made with this id."""
