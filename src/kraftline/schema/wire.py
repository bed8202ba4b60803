"""The wire types in force: compiled where they were compiled, interpreted where not."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

from kraftline import kernels

_NAME = "kraftline.schema._wire"

if TYPE_CHECKING:
    from kraftline.schema._wire import COMPILED, KINDS, NO_SUCH_TAG, Reader, Writer
else:
    _module = kernels.load(_NAME)
    COMPILED, Reader, Writer = _module.COMPILED, _module.Reader, _module.Writer
    KINDS, NO_SUCH_TAG = _module.KINDS, _module.NO_SUCH_TAG


def interpreted() -> ModuleType:
    """The wire types from their source, whatever else was compiled."""
    return kernels.interpreted(_NAME)


__all__ = ["COMPILED", "KINDS", "NO_SUCH_TAG", "Reader", "Writer", "interpreted"]
