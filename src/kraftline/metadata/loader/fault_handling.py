"""What the loader does with what should not happen: nothing is swallowed, and by role it is fatal.

Kafka: a fault while metadata is loaded ends a controller, and a broker logs it and goes on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from kraftline.errors import KraftlineError
from kraftline.metadata.faults import ReplayError
from kraftline.metadata.loader.batches import Entry, Unreadable
from kraftline.schema.jsonform import to_json
from kraftline.schema.jsontext import json_text

_logger = logging.getLogger(__name__)
_REDACTED = "(redacted)"


class MetadataFault(KraftlineError):
    """`message` is in Kafka's words. `offset` and `record` say which record it was, `publisher`
    who failed, where that is known; the error that was met is the cause."""

    def __init__(
        self,
        message: str,
        cause: BaseException | None = None,
        *,
        offset: int | None = None,
        record: Entry | None = None,
        publisher: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.record = record
        self.publisher = publisher
        self.__cause__ = cause

    def __str__(self) -> str:
        text = self.message
        cause = self.__cause__
        if isinstance(cause, ReplayError):
            text += f": {cause.reason}"
        elif cause is not None:
            text += f": {cause or type(cause).__name__}"
        return text if self.record is None else f"{text}. The record: {content(self.record)}"


class FatalFault(KraftlineError):
    """A fault after which the node must not go on: the loader stops."""

    def __init__(self, name: str, fault: MetadataFault) -> None:
        super().__init__(f"Encountered fatal fault in {name}: {fault}")
        self.fault = fault
        self.__cause__ = fault


class FaultHandler(Protocol):
    def handle(self, fault: MetadataFault) -> None:
        """Return to go on; raise FatalFault to stop the loader."""


class RoleFaultHandler:
    """Logs each fault and tells `action`; then stops the loader if `fatal` (a controller)."""

    def __init__(
        self,
        name: str = "metadata loading",
        *,
        fatal: bool,
        action: Callable[[MetadataFault], None] | None = None,
    ) -> None:
        self.name = name
        self.fatal = fatal
        self.count = 0
        self._action = action

    def handle(self, fault: MetadataFault) -> None:
        self.count += 1
        kind = "fatal fault" if self.fatal else "fault"
        # A record that does not fit explains itself; other errors need their stack.
        trace = None if isinstance(fault.__cause__, ReplayError) else fault.__cause__
        _logger.error("Encountered %s %s: %s", self.name, kind, fault, exc_info=trace)
        if self._action is not None:
            self._action(fault)
        if self.fatal:
            raise FatalFault(self.name, fault)


class CollectedFaults:
    """Keeps faults for whoever asks later, as tools do."""

    def __init__(self) -> None:
        self.faults: list[MetadataFault] = []

    def handle(self, fault: MetadataFault) -> None:
        self.faults.append(fault)


def record_fault(offset: int, record: Entry, error: Exception) -> MetadataFault:
    """The fault of one record of the log."""
    if isinstance(record, Unreadable):
        error = record.error
    elif isinstance(error, ReplayError):
        error.at(offset=offset)
    return MetadataFault(
        f"Error loading metadata log record from offset {offset}",
        error,
        offset=offset,
        record=record,
    )


def content(record: Entry) -> str:
    """A record in words for a log file: its type and its fields as JSON, without secrets."""
    if isinstance(record, Unreadable):
        if record.value is None:
            return "no value"
        # The frame says what it was meant to be; what follows may be anything.
        return f"{len(record.value)} bytes, beginning with {record.value[:3].hex()}"
    from kraftline.metadata.words.secrets import hide_secrets  # few logs have a fault

    name = type(record).__name__
    try:
        data = to_json(record, record.SPEC.versions.last)
    except KraftlineError as error:
        return f"{name} ({error})"
    assert isinstance(data, dict)
    hide_secrets(record, data, instead=_REDACTED)
    return f"{name}{json_text(data)}"
