"""A metadata log as one history: every segment and snapshot of every copy that is given.

What "as of" means is the same for all verbs: digits are an offset, and every record up to and
including it has taken effect; anything else is a time.
"""

from __future__ import annotations

from kraftline.inspect.history.history import History, open_history
from kraftline.inspect.history.moments import parse_moment, show_range, show_time
from kraftline.inspect.history.trouble import Trouble, Unanswerable

__all__ = [
    "History",
    "Trouble",
    "Unanswerable",
    "open_history",
    "parse_moment",
    "show_range",
    "show_time",
]
