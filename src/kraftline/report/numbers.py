"""Numbers short enough for a table or a bar."""

from __future__ import annotations

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


def short_bytes(count: float) -> str:
    """Three digits and a unit."""
    for unit in _UNITS:
        if count < 1000 or unit == _UNITS[-1]:
            break
        count /= 1024
    if unit == "bytes":
        return f"{count:,.0f} {unit}"
    return f"{count:.{0 if count >= 100 else 1 if count >= 10 else 2}f} {unit}"
