"""What control records say about the quorum: kraft.version and voters, by offset."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from kraftline.schema.control.kraft_version_record import KRaftVersionRecord
from kraftline.schema.control.leader_change_message import LeaderChangeMessage
from kraftline.schema.control.voters_record import VotersRecord
from kraftline.schema.types import Message
from kraftline.storage.snapshot_file import SnapshotReader


class ControlState:
    """The history of both, in the order of offsets.

    A snapshot's stand at its last contained offset, which is -1 for the one that formatting
    writes: so a voter set at -1 has never been written to the log.
    """

    def __init__(self) -> None:
        self._versions: list[tuple[int, int]] = []
        self._voters: list[tuple[int, VotersRecord]] = []
        self.leader_change: LeaderChangeMessage | None = None

    def add(self, base_offset: int, messages: Iterable[Message | bytes | None]) -> None:
        """The control records of one batch; what is not about the quorum is passed over."""
        for offset, message in enumerate(messages, base_offset):
            match message:
                case KRaftVersionRecord(kraft_version=level):
                    self._versions.append((offset, level))
                case VotersRecord() as voters:
                    self._voters.append((offset, voters))
                case LeaderChangeMessage() as change:
                    self.leader_change = change

    def add_snapshot(self, snapshot: SnapshotReader) -> None:
        offset = -1 if snapshot.id is None else snapshot.id.end_offset - 1
        self._versions.append((offset, snapshot.kraft_version))
        self._versions.sort(key=_offset)
        if snapshot.voters is not None:
            self._voters.append((offset, snapshot.voters))
            self._voters.sort(key=_offset)

    @property
    def kraft_version(self) -> int:
        return self._versions[-1][1] if self._versions else 0

    @property
    def voters(self) -> VotersRecord | None:
        return self._voters[-1][1] if self._voters else None

    @property
    def voters_offset(self) -> int | None:
        return self._voters[-1][0] if self._voters else None

    def at(self, offset: int) -> tuple[int, VotersRecord | None]:
        """kraft.version and voters once the record at the offset has taken effect."""
        version = bisect_right(self._versions, offset, key=_offset)
        voters = bisect_right(self._voters, offset, key=_offset)
        return (
            self._versions[version - 1][1] if version else 0,
            self._voters[voters - 1][1] if voters else None,
        )


def _offset(entry: tuple[int, object]) -> int:
    return entry[0]
