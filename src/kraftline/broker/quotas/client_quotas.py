"""Quotas of clients as a broker enforces them: bytes that are produced and fetched, and the time
that their requests take.

Who is above its limit is answered all the same, a fetch without records, and told for how long to
be silent; for that time its connection is not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from kraftline.broker.context import Context
from kraftline.broker.quotas.quota import Quota
from kraftline.broker.quotas.rate import Windows
from kraftline.config.effective import Config
from kraftline.metadata.image import MetadataDelta, MetadataImage
from kraftline.metadata.image.client_quotas import ClientQuotasImage, QuotaEntity
from kraftline.metadata.loader import LeaderAndEpoch, Manifest, MetadataPublisher

_PERCENT_PER_NANOSECOND: Final = 100.0 / 1e9
_MOST: Final = 2**31 - 1


class ClientQuotas(MetadataPublisher):
    """`clock` gives the time in ms."""

    def __init__(self, config: Config, clock: Callable[[], int]) -> None:
        seconds = config.whole("quota.window.size.seconds")
        windows = Windows(config.whole("quota.window.num"), seconds * 1000)
        self._clock = clock
        self._longest_ms = seconds * 1000
        self._image = ClientQuotasImage()
        self._produce = Quota("producer_byte_rate", windows)
        self._fetch = Quota("consumer_byte_rate", windows)
        self._time = Quota("request_percentage", windows)
        self.is_enabled = False

    @property
    def name(self) -> str:
        return "DynamicClientQuotaPublisher"

    def on_metadata_update(
        self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest
    ) -> None:
        if image.client_quotas is self._image:
            return
        changed: Iterable[QuotaEntity] = {**self._image.entities, **image.client_quotas.entities}
        if delta.client_quotas is not None and delta.client_quotas.image is self._image:
            changed = delta.client_quotas.changes
        self._image = image.client_quotas
        quotas = (self._produce, self._fetch, self._time)
        for quota in quotas:
            quota.follow(self._image, changed)
        self.is_enabled = any(quota.is_enabled for quota in quotas)

    def on_controller_change(self, leader: LeaderAndEpoch) -> None:
        """Nothing depends on it."""

    async def close(self) -> None:
        """Nothing is held."""

    def produced(self, context: Context, size: int) -> int:
        """A client has sent so many bytes; for how many ms it has to be silent."""
        if not self._produce.is_enabled:
            return 0
        return self._produce.record(*_who(context), size, self._clock())

    def took(self, context: Context, nanoseconds: int) -> int:
        """A client's request has taken so long; likewise."""
        if not self._time.is_enabled:
            return 0
        percent = nanoseconds * _PERCENT_PER_NANOSECOND
        return min(self._time.record(*_who(context), percent, self._clock()), self._longest_ms)

    def fetched(self, context: Context, size: int, nanoseconds: int) -> int:
        """A fetch would be answered with so many bytes; if it has to be silent, it gets none, and
        they are not counted."""
        silent = self.took(context, nanoseconds)
        if not self._fetch.is_enabled:
            return silent
        now = self._clock()
        silent = max(silent, self._fetch.record(*_who(context), size, now))
        if silent:
            self._fetch.count(*_who(context), -size, now)
        return silent

    def most_fetched(self, context: Context) -> int:
        """More would be above the limit by itself, and never be answered."""
        if not self._fetch.is_enabled:
            return _MOST
        return int(min(self._fetch.most_in_windows(*_who(context)), _MOST))


def _who(context: Context) -> tuple[str, str]:
    return context.principal.name, context.client_id or ""
