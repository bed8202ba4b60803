"""Where the numbers of a node come from, and what health is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from kraftline.broker.broker import Broker
from kraftline.broker.lifecycle import Lifecycle
from kraftline.broker.meters import RequestMeters
from kraftline.controller.controller import Controller
from kraftline.errors import KraftlineError
from kraftline.metadata.loader import MetadataLoader, SnapshotEmitter
from kraftline.server.server import Listener


class Sources(msgspec.Struct, frozen=True, kw_only=True):
    """Parts of a node that serves. `failure` asks for what keeps it from going on; `unreadable` is
    how many log directories could not be opened at its start."""

    broker: Broker
    controller: Controller
    lifecycle: Lifecycle
    loader: MetadataLoader
    snapshots: SnapshotEmitter
    requests: RequestMeters
    listeners: Sequence[Listener]
    failure: Callable[[], KraftlineError | None]
    unreadable: int = 0
