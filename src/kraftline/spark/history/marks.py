"""Sentences of `metadata.words` for many rows: said once with marks for the numbers, which are then
filled in for all rows at once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from kraftline.metadata.words import Change
from kraftline.spark.history.lists import Ints
from kraftline.spark.history.rows import text_of

TOPIC: Final = "\0"
NAME: Final = f"{TOPIC}-0"  # of the partition
CAUSE: Final = "\1"
# Marks for numbers are single characters of a range that no sentence has.
_MARKS: Final = re.compile(f"({NAME}|[\1-\7])")


class Mark(int):
    """A number that is printed as a mark."""

    mark: str

    def __str__(self) -> str:
        return self.mark

    def __format__(self, spec: str) -> str:
        return self.mark


def mark(number: int, text: str) -> Mark:
    made = Mark(number)
    made.mark = text
    return made


class Told(Struct):
    """A change per row: `step` is its step, the rest columns of the table `changes`; `text` has
    pieces, None where the name of the partition belongs."""

    step: Ints
    kind: pa.Array
    broker: pa.Array
    before: pa.Array
    after: pa.Array
    cause: pa.Array
    text: list[pa.Array | None]


class Filling(Struct):
    """What marks stand for: texts, and numbers where a mark is a broker."""

    texts: Mapping[str, pa.Array]
    brokers: Mapping[str, Ints]

    def told(self, step: Ints, change: Change) -> Told:
        """A change with marks, for the rows of some steps."""
        count = len(step)
        who = change.brokers[0] if change.brokers else None
        return Told(
            step,
            _same(change.kind, count),
            self._broker(who, count),
            self._value(change.before, count),
            self._value(change.after, count),
            self._joined(change.because, count),
            self._pieces(change.text, count),
        )

    def _pieces(self, text: str, count: int) -> list[pa.Array | None]:
        found: list[pa.Array | None] = []
        for piece in filter(None, _MARKS.split(text)):
            if piece == NAME:
                found.append(None)
            else:
                known = self.texts.get(piece)
                found.append(_same(piece, count) if known is None else known)
        return found

    def _joined(self, text: str | None, count: int) -> pa.Array:
        if text is None:
            return pa.nulls(count, pa.string())
        pieces = self._pieces(text, count)
        return pieces[0] if len(pieces) == 1 else pc.binary_join_element_wise(*pieces, "")

    def _value(self, value: Any, count: int) -> pa.Array:
        return self.texts[value.mark] if isinstance(value, Mark) else _same(text_of(value), count)

    def _broker(self, who: int | None, count: int) -> pa.Array:
        if isinstance(who, Mark):
            return pa.array(self.brokers[who.mark])
        return pa.nulls(count, pa.int32()) if who is None else pa.array(np.full(count, who))


def _same(text: str | None, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(text, pa.string()), count)
