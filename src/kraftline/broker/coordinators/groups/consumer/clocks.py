"""The deadlines of members: of their sessions, and of what they have to do in time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kraftline.broker.coordinators.timers import Timers

_SESSION: Final = "consumer session"
_REVOKE: Final = "consumer revocation"
_JOIN: Final = "consumer join"
_SYNC: Final = "consumer sync"
_RETRY_MS: Final = 500
_ALL: Final = (_SESSION, _REVOKE, _JOIN, _SYNC)


class Clocks:
    """`fence` puts a member out of its group; where that cannot be written it is tried again."""

    def __init__(self, timers: Timers, fence: Callable[[str, str, str, int | None], bool]) -> None:
        self._timers = timers
        self._fence = fence

    def session(self, group_id: str, member_id: str, ms: int) -> None:
        """Something was heard of it."""
        self._set(_SESSION, group_id, member_id, ms, "nothing was heard of it in time")

    def revocation(self, group_id: str, member_id: str, epoch: int, ms: int) -> None:
        """It has to give partitions up, and so leave this epoch."""
        why = f"it did not give up partitions of epoch {epoch} in {ms} ms"
        self._set(_REVOKE, group_id, member_id, ms, why, epoch)

    def no_revocation(self, group_id: str, member_id: str) -> None:
        self._timers.cancel((_REVOKE, group_id, member_id))

    def join(self, group_id: str, member_id: str, ms: int) -> None:
        """It was told to join again; the first time counts."""
        if (_JOIN, group_id, member_id) not in self._timers:
            self._set(_JOIN, group_id, member_id, ms, "it did not join again in time")

    def has_joined(self, group_id: str, member_id: str) -> None:
        self._timers.cancel((_JOIN, group_id, member_id))

    def sync(self, group_id: str, member_id: str, ms: int) -> None:
        """It has to ask for its assignment."""
        self._set(_SYNC, group_id, member_id, ms, "it did not ask for its assignment in time")

    def has_synced(self, group_id: str, member_id: str) -> None:
        self._timers.cancel((_SYNC, group_id, member_id))

    def forget(self, group_id: str, member_id: str) -> None:
        for kind in _ALL:
            self._timers.cancel((kind, group_id, member_id))

    def _set(
        self, kind: str, group_id: str, member_id: str, ms: int, why: str, epoch: int | None = None
    ) -> None:
        def over() -> None:
            if not self._fence(group_id, member_id, why, epoch):
                self._timers.set((kind, group_id, member_id), _RETRY_MS, over)

        self._timers.set((kind, group_id, member_id), ms, over)
