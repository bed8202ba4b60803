"""What a node says: lines as Kafka's look, or a JSON object to a line for programs."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime

import msgspec


class JsonLines(logging.Formatter):
    """`time` is UTC; `error` has the traceback of what went wrong."""

    def format(self, record: logging.LogRecord) -> str:
        said = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            said["error"] = self.formatException(record.exc_info)
        return msgspec.json.encode(said).decode()


def say_on_stderr(form: str = "text") -> None:
    """Log lines with time, level and what; as JSON where the form is `json`."""
    handler = logging.StreamHandler(sys.stderr)
    if form == "json":
        handler.setFormatter(JsonLines())
    else:
        handler.setFormatter(logging.Formatter("[%(asctime)s] %(levelname)s %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    # It tells each step; people want to know when it is done, and why snapshots are written.
    logging.getLogger("kraftline.metadata.loader").setLevel(logging.WARNING)
    logging.getLogger("kraftline.metadata.loader.snapshot_generator").setLevel(logging.INFO)
