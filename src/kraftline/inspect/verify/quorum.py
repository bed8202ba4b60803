"""kraft.version and voters, as control records have them: of a snapshot, and of the log."""

from __future__ import annotations

from typing import NamedTuple

from kraftline.raft.control_state import ControlState
from kraftline.schema.control.voters_record import Voter, VotersRecord
from kraftline.storage.snapshot_file import SnapshotReader


class Quorum(NamedTuple):
    """Nodes write the voters in no particular order. With kraft.version 0 there are none: they are
    in every node's configuration."""

    kraft_version: int
    voters: frozenset[Voter]


def quorum_of(state: ControlState | SnapshotReader) -> Quorum:
    return Quorum(state.kraft_version, _voters(state.voters))


def _voters(record: VotersRecord | None) -> frozenset[Voter]:
    return frozenset() if record is None else frozenset(record.voters)


def snapshot_quorum(path: str) -> Quorum:
    """What a snapshot says; BadData where its head cannot be read."""
    with SnapshotReader(path, any_epoch=True) as reader:
        return quorum_of(reader)


def quorum_difference(right: Quorum, found: Quorum) -> str:
    """`voters 1, 2 instead of 1, 2, 3`; nothing if they are the same."""
    said = []
    if found.kraft_version != right.kraft_version:
        said.append(f"kraft.version {found.kraft_version} instead of {right.kraft_version}")
    theirs, mine = ({each.voter_id: each for each in q.voters} for q in (found, right))
    if theirs.keys() != mine.keys():
        said.append(f"voters {_ids(theirs)} instead of {_ids(mine)}")
    for voter in sorted(theirs.keys() & mine.keys()):
        said += _voter(mine[voter], theirs[voter])
    return ", ".join(said)


def _ids(voters: dict[int, Voter]) -> str:
    return ", ".join(map(str, sorted(voters))) or "none"


def _voter(right: Voter, found: Voter) -> list[str]:
    name = f"voter {right.voter_id}"
    if found.voter_directory_id != right.voter_directory_id:
        return [
            f"{name} with directory {found.voter_directory_id} instead of "
            f"{right.voter_directory_id}"
        ]
    if found.endpoints != right.endpoints:
        return [f"{name} with listeners {_listeners(found)} instead of {_listeners(right)}"]
    return [f"{name} with other versions of kraft.version"] if found != right else []


def _listeners(voter: Voter) -> str:
    return ", ".join(f"{each.name}://{each.host}:{each.port}" for each in voter.endpoints) or "none"
