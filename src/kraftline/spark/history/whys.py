"""Why replicas lost their places, for many rows at once: each cause is worked out once."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from kraftline.schema.uuids import Uuid
from kraftline.spark.history.around import Causes, LegAround
from kraftline.spark.history.lists import Ints, firsts_of, interned
from kraftline.spark.history.placed import Placed
from kraftline.spark.history.steps import Steps

NO_CAUSE: Final = -1
_NOWHERE: Final = -1


class Whys:
    """Causes of a chunk's changes, as numbers of `texts`."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._legs = [_Brokers(leg) for leg in steps.at.legs]
        self._ids = [Uuid.parse(each) for each in steps.ids]
        self._lists = steps.values.matrix()
        self._numbers: dict[str, int] = {}
        self.texts: list[str] = []

    def number(self, text: str | None) -> int:
        if text is None:
            return NO_CAUSE
        found = self._numbers.get(text)
        if found is None:
            found = self._numbers[text] = len(self.texts)
            self.texts.append(text)
        return found

    def arrow(self, codes: Ints) -> pa.Array:
        none = codes == NO_CAUSE
        return pa.array(self.texts, pa.string()).take(pa.array(np.where(none, 0, codes), mask=none))

    def out(self, step: Ints, broker: Ints) -> Ints:
        """Why a broker lost its place with a step."""
        return self._asked(step, broker, self._places(step, broker), back=False)

    def back(self, step: Ints, broker: Ints) -> Ints:
        """Why a broker got its place back."""
        return self._asked(step, broker, np.full(len(step), _NOWHERE), back=True)

    def _asked(self, step: Ints, broker: Ints, place: Ints, *, back: bool) -> Ints:
        leg = self._steps.at.leg[step]
        version, kind, unit = self._known(self._steps.at.take(step), broker)
        codes = interned(leg, kind, unit, broker, place)
        found = []
        for at in firsts_of(codes).tolist():
            where = None if place[at] == _NOWHERE else self._ids[place[at]]
            known = self._legs[leg[at]].causes
            text = known.why(int(version[at]), int(unit[at]), int(broker[at]), back, where)
            found.append(self.number(text))
        return np.array(found, np.int64)[codes]

    def _known(self, rows: Placed, broker: Ints) -> tuple[Ints, Ints, Ints]:
        """Behind which of a leg's events of brokers each row stands, of those that concern its
        broker; which state that left it in; and the row's unit, where that says something of
        brokers (else 0)."""
        version, kind, unit = (np.zeros(len(broker), np.int64) for _ in range(3))
        for number, known in enumerate(self._legs):
            here = np.flatnonzero(rows.leg == number)
            version[here] = known.last_event(broker[here], rows.offset[here]) + 1
            kind[here] = known.kinds[version[here]]
            units = interned(rows.unit[here])
            says = [known.causes.says(int(rows.unit[here[at]])) for at in firsts_of(units).tolist()]
            if any(says):
                unit[here] = np.where(np.array(says)[units], rows.unit[here], 0)
        return version, kind, unit

    def _places(self, step: Ints, broker: Ints) -> Ints:
        """The directory of a broker's replica: where it is, else where it was."""
        before = self._steps.before[step]
        now, was = self._place(step, broker), self._place(before, broker)
        return np.where(now == _NOWHERE, was, now)

    def _place(self, step: Ints, broker: Ints) -> Ints:
        lists = self._steps.lists
        is_his = self._lists[lists["replicas"][step]] == broker[:, None]
        at = is_his.argmax(axis=1)
        directory = self._lists[lists["directories"][step], at]
        return np.where(is_his.any(axis=1), directory, _NOWHERE).astype(np.int64)


class _Brokers:
    """A leg's events of brokers, to be looked up by broker."""

    def __init__(self, leg: LegAround) -> None:
        self.causes = Causes(leg)
        self._offsets = np.array(self.causes.offsets, np.int64)
        brokers = np.array([state.broker for state in leg.brokers], np.int64)
        # States that lead to the same causes, by the number of an event plus one.
        states = [None, *((s.is_there, s.fenced, s.stopping, s.directories) for s in leg.brokers)]
        numbers = {state: number for number, state in enumerate(dict.fromkeys(states))}
        self.kinds = np.array([numbers[state] for state in states], np.int64)
        self._order = np.lexsort((np.arange(len(brokers)), brokers))
        self._sorted = brokers[self._order]

    def last_event(self, broker: Ints, offset: Ints) -> Ints:
        """The number of the last event of a broker before an offset; -1 if there is none."""
        count = len(self._sorted)
        if not count:
            return np.full(len(broker), -1)
        # Events are in the order of the log: those before an offset are those below a number.
        below = np.searchsorted(self._offsets, offset, "left")
        first = np.searchsorted(self._sorted, broker, "left")
        keys = self._sorted * (count + 1) + self._order
        place = np.searchsorted(keys, broker * (count + 1) + below, "left") - 1
        return np.where(place >= first, self._order[place], -1)
