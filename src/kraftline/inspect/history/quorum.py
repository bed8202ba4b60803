"""kraft.version and voters at an offset, as control records have them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kraftline.metadata.loader import MetadataBatch
from kraftline.schema.control.kraft_version_record import KRaftVersionRecord
from kraftline.schema.control.voters_record import Voter, VotersRecord
from kraftline.storage.snapshot_file import SnapshotReader


class Quorum(msgspec.Struct, frozen=True):
    """With kraft.version 0 there are no voters: they are in every node's configuration."""

    kraft_version: int = 0
    record: VotersRecord | None = None

    @property
    def voters(self) -> tuple[Voter, ...]:
        """By their id: nodes write them in no particular order."""
        found = () if self.record is None else self.record.voters
        return tuple(sorted(found, key=lambda voter: voter.voter_id))


def snapshot_quorum(path: str) -> Quorum:
    """What a snapshot says; BadData where its head cannot be read."""
    with SnapshotReader(path) as reader:
        return Quorum(reader.kraft_version, reader.voters)


def after_controls(quorum: Quorum, batches: Iterable[MetadataBatch], last: int) -> Quorum:
    """The quorum once all control records up to an offset have taken effect."""
    version, record = quorum.kraft_version, quorum.record
    for batch in batches:
        for offset, control in enumerate(batch.controls, batch.base_offset):
            if offset > last:
                break
            match control.message:
                case KRaftVersionRecord(kraft_version=level):
                    version = level
                case VotersRecord() as voters:
                    record = voters
    return Quorum(version, record)
