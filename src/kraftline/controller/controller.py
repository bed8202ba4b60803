"""The active controller of a cluster with one voter: decides, appends, answers once committed.

`image` is the state with everything that was appended, committed or not: the next decision stands
on it. Nobody is answered before what the answer stands on is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

from kraftline.controller.decision import Decision
from kraftline.metadata.image import MetadataDelta, MetadataImage
from kraftline.metadata.image.metadata import Provenance
from kraftline.metadata.write_options import Versioned
from kraftline.raft import EmbeddedLog
from kraftline.schema.metadata.frame import encode_record

T = TypeVar("T")
# From the state and the time (ms) to records and an answer.
Decide: TypeAlias = Callable[[MetadataImage, int], Decision[T]]


class Controller:
    """Belongs to the event loop of its log. `clock` gives the time in ms."""

    def __init__(self, log: EmbeddedLog, image: MetadataImage, clock: Callable[[], int]) -> None:
        self.log = log
        self.image = image
        self._clock = clock

    async def run(self, decide: Decide[T]) -> T:
        """Decide on the state as it is now; the answer once it is committed."""
        await self.log.room()
        now = self._clock()
        decision = decide(self.image, now)
        if decision.records:
            self._append(decision.records, now)
        await self.log.commit()
        return decision.response

    def _append(self, records: Sequence[Versioned], now: int) -> None:
        # Replayed first: what cannot be replayed must not get into the log.
        delta = MetadataDelta(self.image)
        for message, _ in records:
            delta.replay(message)
        appended = self.log.append([encode_record(*each) for each in records], timestamp=now)
        self.image = delta.apply(Provenance(appended.end_offset - 1, appended.epoch, now, True))
