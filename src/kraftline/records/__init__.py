"""Bytes to batches and records and back: v2 batches, v0 and v1 message sets, checksums, codecs.

Start with `batches` (bytes to batches), `Batch`, `Record` and `build_batch`; many records at once
are in `runs` (tuples, places), `arrow` and `column_reader` (columns).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kraftline.records.batch import Batch
    from kraftline.records.framing import batches
    from kraftline.records.record import Codec, Record
    from kraftline.records.write import build_batch, empty_batch

__all__ = ["Batch", "Codec", "Record", "batches", "build_batch", "empty_batch"]

_HOMES = {
    "Batch": "batch",
    "Codec": "record",
    "Record": "record",
    "batches": "framing",
    "build_batch": "write",
    "empty_batch": "write",
}


def __getattr__(name: str) -> object:
    # On first use, so that `python -m kraftline.records.kernel` and small tools load little.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
