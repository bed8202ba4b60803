"""Message classes by name or number, imported at first use: most runs need a few of hundreds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from kraftline.schema.types import Message


def message_class(package: str, module: str, name: str) -> type[Message]:
    """The class `name` of a module in `package`."""
    cls: type[Message] = getattr(import_module(f"{package}.{module}"), name)
    return cls


def lazy_names(
    package: str, modules: Mapping[str, tuple[str, ...]]
) -> Callable[[str], type[Message]]:
    """A package's `__getattr__`: `modules` says which classes each of its modules has."""
    where = {name: module for module, names in modules.items() for name in names}

    def __getattr__(name: str) -> type[Message]:
        module = where.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return message_class(package, module, name)

    return __getattr__
