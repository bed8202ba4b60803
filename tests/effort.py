"""How hard to try: `make test` runs a few rounds of everything, `make soak` many."""

from __future__ import annotations

import os

SOAK = bool(os.environ.get("KRAFTLINE_SOAK"))


def rounds(few: int) -> int:
    """So many now, forty times as many in a soak."""
    return few * 40 if SOAK else few
