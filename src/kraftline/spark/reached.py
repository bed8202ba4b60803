"""How far a lake has come with a cluster's log: kept with every build, compared with the next."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct


class EpochRun(Struct, frozen=True):
    """Offsets of one leader epoch without a gap, half open; times in ms."""

    epoch: int
    from_offset: int
    to_offset: int
    first_time: int
    max_time: int


class Base(Struct, frozen=True):
    """The snapshot that a leg begins with; `time` is of the last record in it."""

    end_offset: int
    epoch: int
    time: int

    @property
    def offset(self) -> int:
        """Where its rows stand: the last offset that it contains."""
        return max(self.end_offset - 1, 0)


class LegReached(Struct, frozen=True):
    """A leg as it was built. No base: the log from offset 0 on. The sources are a file and a
    directory, as `coverage` has them."""

    base: Base | None
    runs: tuple[EpochRun, ...]
    base_source: str | None = None
    log_source: str | None = None


class Reached(Struct, frozen=True):
    """What of a cluster's log is in the lake. `told` sums up what was said of gaps and damage, so
    that a build without news is known as such; `open_from` is where a transaction began that is
    open at the end of the last leg. `topics` sums up the topic segments that were read."""

    legs: tuple[LegReached, ...] = ()
    unbased: tuple[EpochRun, ...] = ()
    committed_to: int = 0
    open_from: int | None = None
    told: str = ""
    topics: str = ""


def joined(runs: Iterable[EpochRun]) -> tuple[EpochRun, ...]:
    """The same with neighbours of one epoch put together."""
    out: list[EpochRun] = []
    for run in runs:
        last = out[-1] if out else None
        if last and (last.epoch, last.to_offset) == (run.epoch, run.from_offset):
            time = max(last.max_time, run.max_time)
            out[-1] = EpochRun(run.epoch, last.from_offset, run.to_offset, last.first_time, time)
        else:
            out.append(run)
    return tuple(out)


def below(runs: Iterable[EpochRun], offset: int) -> list[tuple[int, int, int]]:
    """Epochs and offsets up to an offset, to compare."""
    cut = ((run.epoch, run.from_offset, min(run.to_offset, offset)) for run in runs)
    return [each for each in cut if each[1] < each[2]]
