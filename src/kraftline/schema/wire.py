"""The wire types in force: compiled where they were compiled, interpreted where not.

`KRAFTLINE_KERNEL=interpreted` in the environment asks for the interpreted ones.
"""

from __future__ import annotations

import os
from types import ModuleType
from typing import TYPE_CHECKING


def interpreted() -> ModuleType:
    """The wire types from their source, whatever else was compiled."""
    # Here, because a run with the compiled ones can do without.
    from importlib.util import module_from_spec, spec_from_file_location

    source = os.path.join(os.path.dirname(__file__), "_wire.py")
    found = spec_from_file_location("kraftline.schema._wire_interpreted", source)
    assert found is not None
    assert found.loader is not None
    module = module_from_spec(found)
    found.loader.exec_module(module)
    return module


if TYPE_CHECKING or os.environ.get("KRAFTLINE_KERNEL") != "interpreted":
    from kraftline.schema._wire import COMPILED, Reader, Writer
else:
    _module = interpreted()
    COMPILED, Reader, Writer = False, _module.Reader, _module.Writer

__all__ = ["COMPILED", "Reader", "Writer", "interpreted"]
