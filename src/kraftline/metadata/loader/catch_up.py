"""The gate before the publishers: nobody sees metadata before the node has caught up.

Once open it stays open.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from kraftline.metadata.features import MetadataVersion

_logger = logging.getLogger(__name__)


class CatchUpGate:
    """`high_watermark` gives the first offset that is not committed, or None while unknown."""

    def __init__(self, high_watermark: Callable[[], int | None]) -> None:
        self._high_watermark = high_watermark
        self.is_open = False
        self._said: str | None = None

    def lets_through(self, where: str, offset: int, version: MetadataVersion | None) -> bool:
        """Whether an image that ends at this offset, with this metadata version, may be seen."""
        if self.is_open:
            return True
        waiting = self._waiting_for(offset, version)
        if waiting is None:
            self.is_open = True
            _logger.info(
                "%s: The loader finished catching up to the current high water mark of %s",
                where,
                self._high_watermark(),
            )
        elif waiting != self._said:
            _logger.info("%s: The loader is still catching up because %s", where, waiting)
        self._said = waiting
        return self.is_open

    def _waiting_for(self, offset: int, version: MetadataVersion | None) -> str | None:
        high_watermark = self._high_watermark()
        if high_watermark is None:
            return "we still don't know the high water mark yet."
        if high_watermark - 1 > offset:
            return (
                f"we have loaded up to offset {offset}, but the high water mark is {high_watermark}"
            )
        if version is None:
            # Kafka waits for any record of a controller. The first of every log says the version,
            # and without it nothing can be published: each commit would be a fault.
            return (
                f"we have not loaded a controller record as of offset {offset} and high water "
                f"mark is {high_watermark}"
            )
        return None
