"""What the kernels need of the `cython` module when they run interpreted and it is not there."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar, overload

compiled = False

_Thing = TypeVar("_Thing")


def declare(_type: object = None, value: object = None, **_options: object) -> object:
    return value


def cclass(thing: _Thing) -> _Thing:
    return thing


final = cfunc = inline = cclass


@overload
def nogil() -> AbstractContextManager[None]: ...
@overload
def nogil(thing: _Thing) -> _Thing: ...
def nogil(thing: _Thing | None = None) -> _Thing | AbstractContextManager[None]:
    """A decorator, and with a call the context manager."""
    return nullcontext() if thing is None else thing


def exceptval(*_value: object, **_options: object) -> Callable[[_Thing], _Thing]:
    return lambda thing: thing


class _CType:
    """Any C type: it only ever stands in an annotation or a declaration."""

    def __getitem__(self, _index: object) -> _CType:
        return self


def __getattr__(name: str) -> _CType:
    if name.startswith("__"):
        raise AttributeError(name)
    return _CType()
