"""One kind of quota: which limit counts for a client, and how far each client is from it.

The most specific counts: of a user and a client id together, with defaults for either, then of the
user, then of the client id. Clients that share a limit by what it is of (all client ids of a user,
say) share what they use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from kraftline.broker.quotas.rate import Rate, Windows
from kraftline.metadata.image.client_quotas import ClientQuotasImage, QuotaEntity

USER: Final = "user"
CLIENT_ID: Final = "client-id"
_IDLE_MS: Final = 3_600_000  # a client that has used nothing for so long is forgotten
_MANY: Final = 10_000  # clients, from which on it is looked for such

# User and client id that share a limit; "" where it is not of such.
Sharing: TypeAlias = tuple[str, str]


class Quota:
    """`key` is what it is called in the metadata."""

    def __init__(self, key: str, windows: Windows) -> None:
        self.key = key
        self.is_enabled = False
        self._windows = windows
        # Kinds of entities that have such a quota, and how many of each do.
        self._counts: Counter[frozenset[str]] = Counter()
        self._kinds: set[frozenset[str]] = set()
        self._entities: Mapping[QuotaEntity, Mapping[str, float]] = {}
        self._limits: dict[tuple[str, str], tuple[Sharing, float | None]] = {}
        self._rates: dict[Sharing, Rate] = {}

    def follow(self, image: ClientQuotasImage, changed: Iterable[QuotaEntity]) -> None:
        """Quotas of some entities have changed."""
        for entity in changed:
            kinds = frozenset(kind for kind, _ in entity)
            if kinds <= {USER, CLIENT_ID}:
                had = self.key in self._entities.get(entity, {})
                has = self.key in image.entities.get(entity, {})
                self._counts[kinds] += has - had
        self._kinds = {kinds for kinds, count in self._counts.items() if count}
        self.is_enabled = bool(self._kinds)
        self._entities = image.entities
        self._limits.clear()

    def record(self, user: str, client_id: str, value: float, now: int) -> int:
        """Count what a client used; for how many ms it has to be silent."""
        sharing, limit = self._limit_of(user, client_id)
        rate = self._rate(sharing, now)
        rate.record(value, now)
        return 0 if limit is None else rate.throttle_ms(limit, now)

    def count(self, user: str, client_id: str, value: float, now: int) -> None:
        """Count without asking; a negative value takes back."""
        sharing, _ = self._limit_of(user, client_id)
        self._rate(sharing, now).record(value, now)

    def most_in_windows(self, user: str, client_id: str) -> float:
        """What a client could use at once, if it had used nothing lately."""
        _, limit = self._limit_of(user, client_id)
        if limit is None:
            return float("inf")
        return limit * (self._windows.count - 1) * self._windows.size_ms / 1000

    def _rate(self, sharing: Sharing, now: int) -> Rate:
        found = self._rates.get(sharing)
        if found is None:
            if len(self._rates) >= _MANY:
                self._rates = {
                    key: rate for key, rate in self._rates.items() if now - rate.last_ms < _IDLE_MS
                }
            found = self._rates[sharing] = Rate(self._windows)
        return found

    def _limit_of(self, user: str, client_id: str) -> tuple[Sharing, float | None]:
        who = (user, client_id)
        found = self._limits.get(who)
        if found is None:
            if len(self._limits) >= _MANY:
                self._limits.clear()
            sharing = self._sharing(user, client_id)
            found = self._limits[who] = (sharing, self._limit(*sharing))
        return found

    def _has(self, user: str | None, client_id: str | None, *, of: str) -> float | None:
        """The quota of one entity; None is the default of its kind."""
        entity: QuotaEntity = (
            ((USER, user),)
            if of == USER
            else ((CLIENT_ID, client_id),)
            if of == CLIENT_ID
            else ((CLIENT_ID, client_id), (USER, user))
        )
        quotas = self._entities.get(entity)
        return None if quotas is None else quotas.get(self.key)

    def _sharing(self, user: str, client_id: str) -> Sharing:
        if self._kinds <= {frozenset({CLIENT_ID})}:
            return "", client_id
        if self._kinds == {frozenset({USER})}:
            return user, ""
        if self._kinds == {frozenset({USER, CLIENT_ID})}:
            return user, client_id
        both, of_user = "both", (user, "")
        for sharing, found in (
            ((user, client_id), self._has(user, client_id, of=both)),
            ((user, client_id), self._has(user, None, of=both)),
            (of_user, self._has(user, None, of=USER)),
            ((user, client_id), self._has(None, client_id, of=both)),
            ((user, client_id), self._has(None, None, of=both)),
            (of_user, self._has(None, None, of=USER)),
        ):
            if found is not None:
                return sharing
        return "", client_id

    def _limit(self, user: str, client_id: str) -> float | None:
        tried: tuple[float | None, ...] = ()
        if user and client_id:
            both = "both"
            tried = (
                self._has(user, client_id, of=both),
                self._has(user, None, of=both),
                self._has(None, client_id, of=both),
                self._has(None, None, of=both),
            )
        elif user:
            tried = (self._has(user, None, of=USER), self._has(None, None, of=USER))
        elif client_id:
            tried = (self._has(None, client_id, of=CLIENT_ID), self._has(None, None, of=CLIENT_ID))
        return next((each for each in tried if each is not None), None)
