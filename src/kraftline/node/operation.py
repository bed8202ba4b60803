"""Where a node serves metrics and health: `kraftline.metrics.listener`, as `[HOST:]PORT`."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from kraftline.config.effective import METRICS_LISTENER, Config
from kraftline.config.listeners import PLAINTEXT, Endpoint
from kraftline.config.values import BadConfig
from kraftline.node.addresses import take_address

if TYPE_CHECKING:
    from kraftline.operation.http import OperationListener

_LOOPBACK = "127.0.0.1"


def operation_endpoint(config: Config) -> Endpoint | None:
    """None where nobody asked for it. Only this machine can reach it unless a host is named."""
    text = config.unknown.get(METRICS_LISTENER, "").strip()
    if not text:
        return None
    host, colon, port = text.rpartition(":")
    if not (port.isascii() and port.isdecimal() and int(port) < 1 << 16):
        raise BadConfig.said(METRICS_LISTENER, f"{METRICS_LISTENER}={text} is not [HOST:]PORT")
    return Endpoint("METRICS", host.strip("[]") if colon else _LOOPBACK, int(port), PLAINTEXT)


async def open_operation(config: Config, held: AsyncExitStack) -> OperationListener | None:
    """Where those who run the node may look, also before it serves; None where nobody asked."""
    endpoint = operation_endpoint(config)
    if endpoint is None:
        return None
    from kraftline.operation.http import OperationListener  # only for those who use it

    address = take_address(endpoint)
    held.callback(address.channel.close)
    listener = OperationListener(address.channel)
    held.push_async_callback(listener.stop)
    await listener.start()
    return listener
