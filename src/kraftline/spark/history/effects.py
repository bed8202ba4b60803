"""When records take effect: where they stand, or at the End of the transaction around them.

Of a transaction that was aborted, or that is open where its leg ends, nothing takes effect. As in
Kafka's loader, a Begin inside a transaction and an End or Abort outside of one do nothing. What the
log tells of itself, control records and transactions that were aborted, is told on the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from kraftline.metadata import words
from kraftline.schema.control.frame import ControlType, control_class
from kraftline.schema.jsonform import from_json
from kraftline.spark.history.around import LegAround, Transaction
from kraftline.spark.history.moments import Moment, unit_of_transaction
from kraftline.spark.history.rows import Rows

_BEGIN: Final = "BEGIN_TRANSACTION_RECORD"
_END: Final = "END_TRANSACTION_RECORD"
_ABORT: Final = "ABORT_TRANSACTION_RECORD"
MARKERS: Final = frozenset({_BEGIN, _END, _ABORT})
CONTROLS: Final = frozenset({"LEADER_CHANGE", "KRAFT_VOTERS", "KRAFT_VERSION"})


class Logged(NamedTuple):
    """A record as it was staged; `fields` are those of its type, or the payload of a control
    record. Times are microseconds."""

    type: str
    offset: int
    nth: int  # at that offset: 0, or its place in a snapshot
    epoch: int | None
    time: int | None
    unit: int | None
    fields: Any


class Taken(NamedTuple):
    """A record that took effect."""

    moment: Moment
    type: str
    fields: Any


class Effects:
    """The records of a leg that took effect; its transactions are noted in `around`."""

    def __init__(self, around: LegAround, rows: Rows) -> None:
        self._around, self._rows = around, rows
        self._begin: Logged | None = None
        self._waiting: list[Logged] = []
        self._controls = 0

    def of(self, units: Iterable[Sequence[Logged]]) -> Iterator[list[Taken]]:
        """Records that took effect together, in their order."""
        for records in units:
            plain: list[Taken] = []
            for record in records:
                if record.type in CONTROLS:
                    self._control(record)
                elif record.type == _BEGIN:
                    if self._begin is None:
                        self._begin = record
                        if plain:
                            yield plain
                            plain = []
                elif record.type in MARKERS:
                    took_effect = self._ended(record)
                    if took_effect:
                        yield took_effect
                elif self._begin is not None:
                    self._waiting.append(record)
                else:
                    at = Moment(*record[1:3], record.offset, record.time, record.unit, record.epoch)
                    plain.append(Taken(at, record.type, record.fields))
            if plain:
                yield plain
        if self._begin is not None:
            end = self._around.leg.end_offset
            self._around.transactions.append(Transaction(self._begin.offset, end, False, None))

    def _ended(self, end: Logged) -> list[Taken]:
        """The records of a transaction that is over, if they took effect."""
        begin, waiting, controls = self._begin, self._waiting, self._controls
        self._begin, self._waiting, self._controls = None, [], 0
        if begin is None:
            return []
        took_effect = end.type == _END
        transaction = Transaction(begin.offset, end.offset, took_effect, end.time)
        self._around.transactions.append(transaction)
        if took_effect:
            unit = unit_of_transaction(end.offset)
            return [
                Taken(Moment(*r[1:3], end.offset, end.time, unit, r.epoch), r.type, r.fields)
                for r in waiting
            ]
        # A new controller's own record may stand between those of the transaction.
        count = end.offset - begin.offset - 1 - controls
        why = f"aborted: {end.fields['reason'] or 'no reason given'}"
        change = words.transaction_change(begin.fields["name"], count, why)
        self._rows.change(change, self._around.leg, (end.offset, end.time), end.epoch)
        return []

    def _control(self, record: Logged) -> None:
        if record.unit is None:
            return
        self._controls += self._begin is not None and record.type == "LEADER_CHANGE"
        kind = control_class(ControlType[record.type])
        message = from_json(kind, msgspec.json.decode(record.fields), 0)
        change = words.log_change(message, record.epoch or 0)
        if change is not None:
            at = record.offset, record.time
            self._rows.change(change, self._around.leg, at, record.epoch)
