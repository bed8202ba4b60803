"""Where the replicas of new partitions go.

Striped over racks and, inside each, over brokers, from random starting points: each partition
starts one rack and one broker further than the last, and its replicas go round the racks from
there. After as many partitions as there are unfenced brokers all lists are shuffled, so that the
same brokers do not always meet. A fenced broker is used only where the others do not suffice, and
never first.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import msgspec

from kraftline.controller.refusal import Refusal
from kraftline.metadata.image import MetadataImage
from kraftline.schema.api.error_codes import ErrorCode


class Usable(msgspec.Struct, frozen=True, gc=False):
    id: int
    rack: str | None
    is_fenced: bool


def usable_brokers(image: MetadataImage) -> list[Usable]:
    """Those that may get new replicas."""
    return [
        Usable(broker.id, broker.rack, broker.fenced)
        for _, broker in sorted(image.cluster.brokers.items())
        if not broker.in_controlled_shutdown and broker.has_uncordoned_directories
    ]


def place(
    brokers: Iterable[Usable], partitions: int, replicas: int, random: Random
) -> list[tuple[int, ...]]:
    """The replicas of each partition; Refusal where there are too few brokers."""
    racks = _Racks(brokers, random)
    if replicas <= 0:
        raise _refused(
            f"Invalid replication factor {replicas}: the replication factor must be positive."
        )
    if not racks.unfenced:
        raise _refused(
            "All brokers are currently fenced, or have all their log directories cordoned."
        )
    if replicas > racks.total:
        raise _refused(
            f"The target replication factor of {replicas} cannot be reached because only "
            f"{racks.total} broker(s) are registered or some brokers have all their log "
            "directories cordoned."
        )
    return [racks.next_partition(replicas) for _ in range(partitions)]


def _refused(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, message)


class _Ring:
    """Brokers of one rack, gone round from a place that moves on with each partition."""

    def __init__(self, brokers: list[int], random: Random) -> None:
        self.brokers = sorted(brokers)
        self._start = random.randrange(len(brokers)) if brokers else 0
        self._round = 0
        self._taken = 0

    def next(self, turn: int) -> int | None:
        """The next broker that this turn has not had; None when it had all."""
        if not self.brokers:
            return None
        if turn != self._round:
            self._round = turn
            self._taken = 0
            self._start = (self._start + 1) % len(self.brokers)
        if self._taken >= len(self.brokers):
            return None
        found = self.brokers[(self._start + self._taken) % len(self.brokers)]
        self._taken += 1
        return found


class _Racks:
    def __init__(self, brokers: Iterable[Usable], random: Random) -> None:
        known = list(brokers)
        self.total = len(known)
        self.unfenced = sum(not each.is_fenced for each in known)
        self._random = random
        by_rack: dict[str | None, tuple[list[int], list[int]]] = {}
        for each in known:
            up, fenced = by_rack.setdefault(each.rack, ([], []))
            (fenced if each.is_fenced else up).append(each.id)
        # No rack comes before all that have a name.
        names = sorted(by_rack, key=lambda name: (name is not None, name or ""))
        self._racks = [
            (_Ring(by_rack[name][0], random), _Ring(by_rack[name][1], random)) for name in names
        ]
        self._offset = random.randrange(len(names)) if names else 0
        self._turn = 0

    def next_partition(self, replicas: int) -> tuple[int, ...]:
        if self._turn == self.unfenced and self.unfenced > 1:
            self._shuffle()
            self._turn = 0
        self._offset %= len(self._racks)
        first, leader = self._leader()
        chosen = [leader]
        at, skips_first = self._offset, True
        while len(chosen) < replicas:
            if skips_first and at == first:
                # It has the leader already; later rounds may use it again.
                skips_first = False
            else:
                up, fenced = self._racks[at]
                found = up.next(self._turn)
                if found is None:
                    found = fenced.next(self._turn)
                if found is not None:
                    chosen.append(found)
            at = (at + 1) % len(self._racks)
        self._turn += 1
        self._offset += 1
        return tuple(chosen)

    def _leader(self) -> tuple[int, int]:
        for step in range(len(self._racks)):
            at = (self._offset + step) % len(self._racks)
            found = self._racks[at][0].next(self._turn)
            if found is not None:
                return at, found
        raise AssertionError("no broker is up, which was checked before")

    def _shuffle(self) -> None:
        self._random.shuffle(self._racks)
        for up, fenced in self._racks:
            self._random.shuffle(up.brokers)
            self._random.shuffle(fenced.brokers)
