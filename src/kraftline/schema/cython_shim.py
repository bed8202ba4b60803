"""What the kernels need of the `cython` module when they run interpreted and it is not there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

compiled = False

_Thing = TypeVar("_Thing")


def declare(_type: object = None, value: object = None, **_options: object) -> object:
    return value


def cclass(thing: _Thing) -> _Thing:
    return thing


final = cfunc = inline = cclass


class _Nogil:
    """`@cython.nogil` and `with cython.nogil:`."""

    def __call__(self, thing: _Thing) -> _Thing:
        return thing

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_error: object) -> None:
        return None


nogil = _Nogil()


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
