"""Whose configs a client may change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from kraftline.broker.context import Context
from kraftline.metadata.access import Operation, Resource
from kraftline.metadata.image.configs import GROUP, TOPIC, ConfigResource


class Named(Protocol):
    """A resource of a request."""

    @property
    def resource_type(self) -> int: ...

    @property
    def resource_name(self) -> str: ...


def forbidden_to_alter(resources: Iterable[Named], context: Context) -> frozenset[ConfigResource]:
    """Those that the client may not change: topics and groups by name, all else as the cluster."""
    if not context.is_guarded:
        return frozenset()
    return frozenset(
        ConfigResource(each.resource_type, each.resource_name)
        for each in resources
        if not _may(each, context)
    )


def _may(resource: Named, context: Context) -> bool:
    kinds = {TOPIC: Resource.TOPIC, GROUP: Resource.GROUP}
    kind = kinds.get(resource.resource_type)
    if kind is None:
        return context.may(Operation.ALTER_CONFIGS, Resource.CLUSTER)
    return context.may(Operation.ALTER_CONFIGS, kind, resource.resource_name)
