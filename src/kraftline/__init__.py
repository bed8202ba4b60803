"""Kraftline reads, writes, serves and explains Apache Kafka's own state."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kraftline.node import Node

__version__ = "0.1.0"
__all__ = ["Node", "__version__"]


def __getattr__(name: str) -> object:
    """A node is imported by those who make one: the tools for files start without it."""
    if name == "Node":
        from kraftline.node import Node

        return Node
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
