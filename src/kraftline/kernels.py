"""Chooses between a compiled kernel and the same source file interpreted.

`KRAFTLINE_KERNEL=interpreted` in the environment asks for the second: slower, same results.
"""

from __future__ import annotations

import importlib
import os
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType


def load(name: str) -> ModuleType:
    """The kernel in force under this module name."""
    if os.environ.get("KRAFTLINE_KERNEL") == "interpreted":
        return interpreted(name)
    return importlib.import_module(name)


def interpreted(name: str) -> ModuleType:
    """The kernel from its source, whether or not a compiled one exists."""
    alias = f"{name}_interpreted"
    if alias in sys.modules:
        return sys.modules[alias]
    package, _, stem = name.rpartition(".")
    home = find_spec(package)
    assert home is not None
    assert home.origin is not None
    spec = spec_from_file_location(alias, Path(home.origin).with_name(f"{stem}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[alias] = module
    return module
