"""A node as a process: runs until it is told to stop or cannot go on, and says on stderr what it
does."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import resource
import signal

import uvloop

from kraftline import __version__
from kraftline.config.effective import Config
from kraftline.node.node import Node
from kraftline.operation.process import age

_logger = logging.getLogger("kraftline")
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def run_node(config: Config) -> None:
    """Return after an orderly stop; what kept the node from starting or going on is raised."""
    # Connections and segments need descriptors: as many as this process may have.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    uvloop.run(_run(config))


async def _run(config: Config) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, _told_to_stop, number, stop)
    node = Node(config)
    starting = asyncio.create_task(node.start())
    if not await _first(starting, stop):
        starting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await starting
        await node.stop()
        return
    _say_ready(node)
    # What is there now stays: the collector need not look at it again.
    gc.freeze()
    gc.enable()
    failing = asyncio.create_task(node.failed())
    try:
        await _first(failing, stop)
    finally:
        failing.cancel()
        await node.stop()
    _logger.info("Stopped: everything is flushed.")


async def _first(work: asyncio.Task[None], stop: asyncio.Event) -> bool:
    """Has the work come to its end before someone said stop? What it raised is raised."""
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait((work, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not work.done():
        return False
    work.result()
    return True


def _told_to_stop(number: signal.Signals, stop: asyncio.Event) -> None:
    _logger.info("%s: stopping", signal.Signals(number).name)
    stop.set()


def _say_ready(node: Node) -> None:
    where = ", ".join(map(str, node.addresses))
    if node.operation is not None:
        _logger.info("Metrics and health are on port %d", node.operation.port)
    count = f"{node.partitions:,} partition{'' if node.partitions == 1 else 's'}"
    _logger.info(
        "Kraftline %s is ready on %s: node %d of cluster %s, %s, started in %.2f s",
        __version__,
        where,
        node.node_id,
        node.cluster_id,
        count,
        age(),
    )
