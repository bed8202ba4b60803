"""What most deltas are: a map, and what is to become of some of its keys."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeVar

from immutables import Map

K = TypeVar("K")
V = TypeVar("V")


def applied(base: Map[K, V], changes: Mapping[K, V | None]) -> Map[K, V]:
    """The map with each change in it; None removes. The same map if nothing is different."""
    fresh: dict[K, V] = {}
    gone: list[K] = []
    for key, value in changes.items():
        if value is None:
            if key in base:
                gone.append(key)
        elif base.get(key) != value:
            fresh[key] = value
    base = without(base, gone)
    return base.update(fresh) if fresh else base


def applied_inside(
    base: Map[K, Mapping[str, V]], changes: Mapping[K, Mapping[str, V | None]]
) -> Map[K, Mapping[str, V]]:
    """The same for maps of maps, where an inner map that ends up empty goes."""
    whole: dict[K, Mapping[str, V] | None] = {}
    for key, inner in changes.items():
        merged: dict[str, V | None] = {**base.get(key, {}), **inner}
        whole[key] = {name: value for name, value in merged.items() if value is not None} or None
    return applied(base, whole)


def drop_unnamed(base: Map[K, V], changes: dict[K, V | None]) -> None:
    """After a snapshot: what it did not name is removed."""
    for key in base:
        changes.setdefault(key, None)


def drop_unnamed_inside(
    base: Map[K, Mapping[str, V]], changes: dict[K, dict[str, V | None]]
) -> None:
    """The same for maps of maps."""
    for key, before in base.items():
        inner = changes.setdefault(key, {})
        for name in before:
            inner.setdefault(name, None)


def without(base: Map[K, V], keys: Collection[K]) -> Map[K, V]:
    """The map without these keys, whether it has them or not."""
    if not keys:
        return base
    changing = base.mutate()
    for key in keys:
        changing.pop(key, None)
    return changing.finish()
