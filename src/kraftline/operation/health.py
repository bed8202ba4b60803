"""Is the node alive, and is it there for clients?

- Healthy: nothing has happened that it cannot go on with.
- Ready: healthy, the broker runs, and the cluster has not fenced it.
"""

from __future__ import annotations

import msgspec

from kraftline.broker.lifecycle import BrokerState
from kraftline.operation.sources import Sources


class Health(msgspec.Struct, frozen=True):
    """`why` is empty where all is well."""

    is_well: bool
    state: str
    why: str = ""


def healthy(sources: Sources | None) -> Health:
    """None: the node starts."""
    if sources is None:
        return Health(True, BrokerState.STARTING.name)
    problem = sources.failure()
    return Health(problem is None, sources.lifecycle.state.name, str(problem or ""))


def ready(sources: Sources | None) -> Health:
    health = healthy(sources)
    if sources is None:
        return Health(False, health.state, "the node is starting")
    if not health.is_well:
        return health
    state = sources.lifecycle.state
    if state is not BrokerState.RUNNING:
        return Health(False, state.name, f"the broker is in state {state.name}")
    registered = sources.broker.cache.image.cluster.brokers.get(sources.broker.node_id)
    if registered is None or registered.fenced:
        return Health(False, state.name, "the broker is fenced")
    return health
