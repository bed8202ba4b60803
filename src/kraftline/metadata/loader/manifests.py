"""What a publication says about itself: where it came from, and what it took."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from kraftline.metadata.image import Provenance


class LeaderAndEpoch(msgspec.Struct, frozen=True):
    """Who leads the quorum; None while nobody does."""

    leader_id: int | None = None
    epoch: int = 0


UNKNOWN_LEADER = LeaderAndEpoch()


class LogDeltaManifest(msgspec.Struct, frozen=True):
    """The delta came from the log. Batches and bytes of a batch that a transaction cut in two are
    counted with its last part."""

    provenance: Provenance
    leader: LeaderAndEpoch
    batches: int
    elapsed_ns: int
    bytes: int


class SnapshotManifest(msgspec.Struct, frozen=True):
    """The delta came from a snapshot, or is the whole image for a publisher that is new."""

    provenance: Provenance
    elapsed_ns: int


Manifest: TypeAlias = LogDeltaManifest | SnapshotManifest
