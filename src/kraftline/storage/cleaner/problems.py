"""Why a cleaning ended before its time."""

from __future__ import annotations

from kraftline.errors import KraftlineError


class CleaningAborted(KraftlineError):
    """The log was closed, deleted or changed meanwhile, or the cleaner stops: nothing is wrong, and
    what was swapped in until then stays."""
