"""zstd's own function for a frame, by its address: kernels call it without Python, for many batches
in a row, in a time in which other threads run."""

from __future__ import annotations

import ctypes
import weakref
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

_ASSEMBLY: Final = 10502  # the first version whose loops are written in it: a tenth quicker


@cache
def _library() -> ctypes.CDLL | None:
    """zstd as the system has it, or as the package `zstandard` brings it along, which is built
    without assembly; None where its functions are hidden."""
    package = find_spec("zstandard")
    folders = (package and package.submodule_search_locations) or []
    brought = [str(path) for folder in folders for path in Path(folder).glob("_cffi.*")]
    for name in ("libzstd.so.1", *brought):
        try:
            library = ctypes.CDLL(name)
            library.ZSTD_createDCtx.restype = ctypes.c_void_p
            library.ZSTD_freeDCtx.argtypes = (ctypes.c_void_p,)
            library.ZSTD_decompressDCtx  # noqa: B018  # is it there?
            if name in brought or library.ZSTD_versionNumber() >= _ASSEMBLY:
                return library
        except (OSError, AttributeError):
            continue
    return None


class Frames:
    """What the kernel needs to decompress frames: a function, and the tables that it keeps warm
    from one frame to the next. One thread's alone; `function` is 0 where there is none."""

    __slots__ = ("__weakref__", "context", "function")

    def __init__(self) -> None:
        self.function = self.context = 0
        library = _library()
        context = library.ZSTD_createDCtx() if library is not None else None
        if library is not None and context:
            self.function = ctypes.cast(library.ZSTD_decompressDCtx, ctypes.c_void_p).value or 0
            self.context = context
            weakref.finalize(self, library.ZSTD_freeDCtx, context)
