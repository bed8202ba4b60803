"""Where a node serves metrics and health: `kraftline.metrics.listener`, as `[HOST:]PORT`."""

from __future__ import annotations

from kraftline.config.effective import METRICS_LISTENER, Config
from kraftline.config.listeners import PLAINTEXT, Endpoint
from kraftline.config.values import BadConfig

_LOOPBACK = "127.0.0.1"


def metrics_endpoint(config: Config) -> Endpoint | None:
    """None where nobody asked for it. Only this machine can reach it unless a host is named."""
    text = config.unknown.get(METRICS_LISTENER, "").strip()
    if not text:
        return None
    host, colon, port = text.rpartition(":")
    if not (port.isascii() and port.isdecimal() and int(port) < 1 << 16):
        raise BadConfig.said(METRICS_LISTENER, f"{METRICS_LISTENER}={text} is not [HOST:]PORT")
    return Endpoint("METRICS", host.strip("[]") if colon else _LOOPBACK, int(port), PLAINTEXT)
