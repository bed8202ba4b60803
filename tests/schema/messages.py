"""Every message class by its name in Kafka, for tests that go over all of them."""

from __future__ import annotations

import inspect
import pkgutil
from functools import cache
from importlib import import_module

import kraftline.schema
from kraftline.schema.types import Message

GROUPS = ("metadata", "coordinator", "control", "ondisk", "api")


@cache
def message_classes() -> dict[str, type[Message]]:
    """Top-level messages: the last class of each Spec in a generated module."""
    found: dict[str, type[Message]] = {}
    for group in GROUPS:
        package = import_module(f"kraftline.schema.{group}")
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            module = import_module(info.name)
            own = [
                cls
                for cls in vars(module).values()
                if inspect.isclass(cls) and issubclass(cls, Message) and cls.__module__ == info.name
            ]
            # Within a module a message comes after the structs that it uses.
            last = {id(cls.SPEC): cls for cls in own}
            found.update({cls.__name__: cls for cls in last.values()})
    return found


def versioned() -> list[tuple[type[Message], int]]:
    """Every message in every version it has."""
    return [(cls, version) for cls in message_classes().values() for version in cls.SPEC.versions]


assert kraftline.schema.__path__
