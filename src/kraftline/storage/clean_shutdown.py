"""`.kafka_cleanshutdown`: there after a clean stop, removed at the next start.

Empty up to 3.6. From 3.7 one line of JSON with the broker's epoch, which the broker shows when it
registers again, to prove that nothing was lost.
"""

from __future__ import annotations

import msgspec

from kraftline.errors import Corrupt
from kraftline.storage.files import Path, Source, load, write_aside

NAME = ".kafka_cleanshutdown"
_LIMIT = 64 * 1024


class CleanShutdown(msgspec.Struct, frozen=True):
    """`broker_epoch` is None in the empty files of old releases."""

    broker_epoch: int | None = None
    version: int = 0


class _Json(msgspec.Struct):
    version: int = 0
    brokerEpoch: int | None = None


def read_clean_shutdown(source: Source) -> CleanShutdown:
    data, file = load(source, _LIMIT)
    if not data:
        return CleanShutdown()
    try:
        found = msgspec.json.decode(data, type=_Json)
    except msgspec.MsgspecError as error:
        raise Corrupt(f"not a clean shutdown marker: {error}", file=file, position=0) from error
    return CleanShutdown(found.brokerEpoch, found.version)


def format_clean_shutdown(marker: CleanShutdown) -> bytes:
    if marker.broker_epoch is None:
        return b""
    return msgspec.json.encode(_Json(marker.version, marker.broker_epoch))


def write_clean_shutdown(path: Path, marker: CleanShutdown) -> None:
    write_aside(path, format_clean_shutdown(marker))
