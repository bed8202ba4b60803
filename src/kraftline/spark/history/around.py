"""What a replay of partitions wants to know of their cluster, leg by leg. It is little."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any, TypeAlias

from msgspec import Struct

from kraftline.metadata.partition import LOST, MIGRATING, UNASSIGNED
from kraftline.schema.uuids import Uuid
from kraftline.spark.history.lives import Span
from kraftline.spark.history.moments import Leg

Row: TypeAlias = dict[str, Any]


class Transaction(Struct, frozen=True, array_like=True):
    """From its Begin to its End or Abort, or to the end of its leg."""

    begin: int
    end: int
    took_effect: bool
    end_time: int | None


class BrokerState(Struct, frozen=True, array_like=True):
    """A broker from one record (excluded) on; it `is_there` until it is unregistered."""

    offset: int
    broker: int
    is_there: bool
    fenced: bool
    stopping: bool
    directories: frozenset[str]


class Clear(Struct, frozen=True, array_like=True):
    """A ClearElr record, of a topic or ("") of all."""

    topic: str
    offset: int
    index: int
    at_offset: int
    at_time: int | None
    unit: int | None
    epoch: int | None


class LegAround(Struct):
    """`told` are causes by unit and broker: why it would be out, why it would be back."""

    leg: Leg
    transactions: list[Transaction] = []
    brokers: list[BrokerState] = []
    told: dict[int, dict[int, tuple[str | None, str | None]]] = {}
    clears: list[Clear] = []
    min_isr: list[Span] = []
    brokers_over_gap: list[tuple[Row | None, Row | None]] = []


class Around(Struct):
    cluster_id: str
    legs: dict[int, LegAround]


class Causes:
    """Why a replica lost its place or got it back: from records of the same unit, or from the
    state of its broker just before. The rules of `inspect.cluster.causes`."""

    def __init__(self, around: LegAround) -> None:
        self._told = around.told
        self.offsets = [state.offset for state in around.brokers]
        # By broker: its events by their numbers among all.
        self._events: dict[int, tuple[list[int], list[BrokerState]]] = {}
        for number, state in enumerate(around.brokers):
            numbers, states = self._events.setdefault(state.broker, ([], []))
            numbers.append(number)
            states.append(state)

    def says(self, unit: int) -> bool:
        return unit in self._told

    def why(
        self, version: int, unit: int, broker: int, back: bool, directory: Uuid | None
    ) -> str | None:
        """`version` is the number of events before the record, `unit` that of the record."""
        out, again = self._told.get(unit, {}).get(broker, (None, None))
        if back:
            return again
        if out is not None:
            return out
        state = self._state(version, broker)
        if state is None or not state.is_there:
            return f"broker {broker} is not registered"
        if state.stopping:
            return f"broker {broker} is shutting down"
        if state.fenced:
            return f"broker {broker} is fenced"
        if directory is not None and _is_offline(directory, state.directories):
            return f"its directory on broker {broker} is offline"
        return None

    def _state(self, version: int, broker: int) -> BrokerState | None:
        numbers, states = self._events.get(broker, ([], []))
        before = bisect_left(numbers, version)
        return states[before - 1] if before else None


def _is_offline(directory: Uuid, known: frozenset[str]) -> bool:
    if directory == LOST:
        return True
    return directory not in (UNASSIGNED, MIGRATING) and bool(known) and str(directory) not in known
