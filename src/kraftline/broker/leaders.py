"""Who leads a partition, for clients that asked the wrong broker: told beside the error, so that
they need not ask for metadata."""

from __future__ import annotations

from kraftline.metadata.image import MetadataImage
from kraftline.metadata.registrations import Listener


def current_leader(image: MetadataImage, topic: str, partition: int) -> tuple[int, int]:
    """Leader and leader epoch; -1 where neither is known."""
    found = image.topics.named(topic)
    registration = None if found is None else found.partition(partition)
    if registration is None:
        return -1, -1
    return registration.leader, registration.leader_epoch


def endpoint(
    image: MetadataImage, broker: int, listener: str
) -> tuple[Listener, str | None] | None:
    """Where a broker is, on the listener that the client came through, and its rack; None for one
    that is not there to be asked."""
    found = image.cluster.brokers.get(broker)
    if found is None or found.fenced:
        return None
    at = found.listener(listener)
    return None if at is None else (at, found.rack)
