"""Chooses the kernel: the compiled one, or the same source file interpreted.

`KRAFTLINE_KERNEL=interpreted` forces the interpreted one (same results, slower).
`python -m kraftline.records.kernel` says which one is in use.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType


def load_interpreted() -> ModuleType:
    """The kernel's source as a module of its own, whether or not a compiled one exists."""
    name = "kraftline.records._kernel_interpreted"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name("_kernel.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[name] = module
    return module


def load() -> ModuleType:
    """The kernel in force."""
    if os.environ.get("KRAFTLINE_KERNEL") == "interpreted":
        return load_interpreted()
    from kraftline.records import _kernel

    return _kernel


active = load()
COMPILED: bool = bool(active.COMPILED)


def describe() -> str:
    if COMPILED:
        return "compiled"
    if os.environ.get("KRAFTLINE_KERNEL") == "interpreted":
        return "interpreted, as KRAFTLINE_KERNEL asks (slower, same results)"
    return "no C compiler was found: the interpreted kernel is in use (slower, same results)"


if __name__ == "__main__":
    print(describe())
