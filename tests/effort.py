"""How hard to try: `make test` runs a few rounds of everything, `make soak` many."""

from __future__ import annotations

import os

SOAK = bool(os.environ.get("KRAFTLINE_SOAK"))


def rounds(few: int) -> int:
    """So many now, ten times as many in a soak."""
    return few * 10 if SOAK else few
