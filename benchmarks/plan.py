"""Sizes, rounds and inputs of one run; what a line of the result says."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from benchmarks.contest import Contender, Timing, contest
from benchmarks.inputs import Made, Maker
from benchmarks.rival import check, dump_command


@dataclass(frozen=True)
class Sizes:
    """Bytes of data segments and records of metadata logs, the smaller first."""

    data: tuple[int, ...] = (100_000_000, 500_000_000)
    metadata: tuple[int, ...] = (200_000, 2_000_000)
    small: tuple[int, ...] = (100, 2_000)
    memory: tuple[int, ...] = (100_000_000, 1_000_000_000)


QUICK = Sizes((2_000_000, 8_000_000), (2_000, 10_000), (100, 1_000), (4_000_000, 16_000_000))


@dataclass(frozen=True)
class Line:
    """One comparison. `reach` and `aim` are how many times quicker than the rival we mean to be.

    With `whole`, whole processes are compared; without, the work alone, starts left out of both.
    """

    group: str
    work: str
    size: str
    us: Timing
    rival_name: str
    rival: Timing
    reach: float
    aim: float
    whole: bool = False

    @property
    def ratio(self) -> float:
        return self.whole_ratio if self.whole else _work(self.rival) / _work(self.us)

    @property
    def whole_ratio(self) -> float:
        return self.rival.whole / self.us.whole


@dataclass(frozen=True)
class Peak:
    """Our peak memory on a small and a large input, in bytes."""

    work: str
    sizes: tuple[str, str]
    peaks: tuple[int, int]


def _work(timing: Timing) -> float:
    assert timing.work is not None
    return timing.work


class Plan:
    """What every group of benchmarks is given."""

    def __init__(self, maker: Maker, sizes: Sizes, rounds: int) -> None:
        self.maker = maker
        self.sizes = sizes
        self.rounds = rounds
        self.notes: list[str] = []
        self.kafka_start = cache(self._kafka_start)

    def contest(self, contenders: dict[str, Contender], *, least: int = 1) -> dict[str, Timing]:
        return contest(contenders, max(self.rounds, least))

    def _kafka_start(self) -> float:
        """What DumpLogSegments takes for a log of one record: its start, more or less."""
        tiny = self.maker.metadata(1)
        dump = Contender(dump_command(tiny.path, metadata=True))
        return self.contest({"start": dump}, least=5)["start"].whole

    def without_start(self, kafka: Timing) -> Timing:
        return replace(kafka, work=max(kafka.whole - self.kafka_start(), 0.001))


def checked(made: Made, timing: Timing) -> None:
    """Nothing was left out: quick and wrong would not count."""
    if timing.rows is not None and timing.rows != made.records:
        raise AssertionError(f"{made.path}: {timing.rows} rows of {made.records}")


def kafka_reads(made: Made, *, metadata: bool) -> None:
    check(made, metadata=metadata)
