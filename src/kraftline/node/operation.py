"""The listener for those who run a node: opened before the node serves, closed after."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from kraftline.config.listeners import Endpoint
from kraftline.node.addresses import take_address

if TYPE_CHECKING:
    from kraftline.operation.http import OperationListener


async def open_operation(
    endpoint: Endpoint | None, held: AsyncExitStack
) -> OperationListener | None:
    """None where nobody asked for one."""
    if endpoint is None:
        return None
    from kraftline.operation.http import OperationListener  # only for those who use it

    address = take_address(endpoint)
    held.callback(address.channel.close)
    listener = OperationListener(address.channel)
    held.push_async_callback(listener.stop)
    await listener.start()
    return listener
