"""What a coordinator keeps of one partition, and the records that change it."""

from __future__ import annotations

from typing import Protocol

import msgspec

from kraftline.metadata.image import MetadataDelta, MetadataImage
from kraftline.schema.types import Message


class Change(msgspec.Struct, frozen=True, gc=False):
    """A record of a coordinator's topic. No value: what the key names is gone. `version` is the
    one that the value is written in."""

    key: Message
    value: Message | None
    version: int = 0


class Producer(msgspec.Struct, frozen=True, gc=False):
    """Who writes in a transaction."""

    id: int
    epoch: int


class State(Protocol):
    """All that one partition says. It changes by what is replayed and by nothing else, so that it
    is the same after a restart; timers and those who wait for an answer come on top of it."""

    def replay(self, change: Change, producer: Producer | None) -> None:
        """A record has been written or read. With a `producer` it counts once its transaction is
        committed. While the partition is loaded this runs in a thread, and nobody else looks."""

    def replay_raw(self, key: bytes, value: bytes | None) -> bool:
        """While the partition is loaded: a record as the log has it, if there is a quick way with
        its kind. False: it has to be decoded and replayed."""
        return False

    def end_transaction(self, producer: Producer, *, is_committed: bool) -> None:
        """A transaction that wrote to the partition has ended."""

    def loaded(self) -> None:
        """Everything has been replayed; called in the event loop, before the first request."""

    def metadata_changed(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """The cluster's metadata has changed; called of states that are loaded, in the loop."""

    def close(self) -> None:
        """This broker does not lead the partition any more: whoever waits is told so."""
