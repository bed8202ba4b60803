"""Answers that wait until what they tell is durable."""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import TypeVar

from kraftline.controller.refusal import Refusal

_logger = logging.getLogger(__name__)
R = TypeVar("R")


def after(settled: Awaitable[None] | None, response: R) -> R | Awaitable[R]:
    """At once where nothing is to be waited for."""
    if settled is None:
        return response

    async def later() -> R:
        await settled
        return response

    return later()


async def awaited(settled: Awaitable[None]) -> None:
    """Where nobody is told; only the log is, if it does not become durable."""
    try:
        await settled
    except Refusal as refusal:
        _logger.warning("records may be lost: %s", refusal.code.name)
