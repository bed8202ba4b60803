"""The kernel in force: compiled, or its source interpreted (see `kraftline.kernels`).

`python -m kraftline.records.kernel` says which one it is.
"""

from __future__ import annotations

import os

from kraftline import kernels

NAME = "kraftline.records._kernel"

active = kernels.load(NAME)
COMPILED: bool = bool(active.COMPILED)


def describe() -> str:
    if COMPILED:
        return "compiled"
    if os.environ.get("KRAFTLINE_KERNEL") == "interpreted":
        return "interpreted, as KRAFTLINE_KERNEL asks (slower, same results)"
    return "no C compiler was found: the interpreted kernel is in use (slower, same results)"


if __name__ == "__main__":
    print(f"hot loops: {describe()}")
