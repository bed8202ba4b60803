"""`quorum-state`: a node's vote and the leader it knows, one line of JSON.

data_version 0 with a static quorum, 1 once kraft.version is 1. -1 means none.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from kraftline.errors import Corrupt, Unsupported
from kraftline.schema.uuids import ZERO, Uuid
from kraftline.storage.files import Path, Source, load, write_aside

NAME = "quorum-state"
_LIMIT = 16 * 1024 * 1024


class QuorumState(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of both versions; `voted_directory_id` is written in version 1 only, cluster
    id, applied offset and voters in version 0 only (Kafka leaves them empty, 0 and ids)."""

    leader_id: int = -1
    leader_epoch: int = -1
    voted_id: int = -1
    voted_directory_id: Uuid = ZERO
    cluster_id: str = ""
    applied_offset: int = 0
    current_voters: tuple[int, ...] | None = ()
    data_version: int = 0


_Int16 = Annotated[int, msgspec.Meta(ge=-(2**15), lt=2**15)]
_Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)]
_Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class _Version(msgspec.Struct):
    data_version: _Int16


class _Voter(msgspec.Struct, rename="camel"):
    voter_id: _Int32


# The order of the fields is the order in which Kafka writes them.
class _V0(msgspec.Struct, kw_only=True):
    clusterId: str
    leaderId: _Int32
    leaderEpoch: _Int32
    votedId: _Int32
    appliedOffset: _Int64
    currentVoters: list[_Voter] | None
    data_version: int = 0


class _V1(msgspec.Struct, kw_only=True):
    leaderId: _Int32
    leaderEpoch: _Int32
    votedId: _Int32
    votedDirectoryId: str
    data_version: int = 1


def read_quorum_state(source: Source) -> QuorumState:
    data, file = load(source, _LIMIT)
    line = data.splitlines()[0] if data else b""
    try:
        version = msgspec.json.decode(line, type=_Version).data_version
        if version == 0:
            v0 = msgspec.json.decode(line, type=_V0)
            voters = v0.currentVoters
            return QuorumState(
                leader_id=v0.leaderId,
                leader_epoch=v0.leaderEpoch,
                voted_id=v0.votedId,
                cluster_id=v0.clusterId,
                applied_offset=v0.appliedOffset,
                current_voters=None if voters is None else tuple(v.voter_id for v in voters),
            )
        if version == 1:
            v1 = msgspec.json.decode(line, type=_V1)
            return QuorumState(
                leader_id=v1.leaderId,
                leader_epoch=v1.leaderEpoch,
                voted_id=v1.votedId,
                voted_directory_id=Uuid.parse(v1.votedDirectoryId),
                data_version=1,
            )
    # A ValueError comes from a UUID; msgspec's errors are ValueErrors too.
    except ValueError as error:
        raise Corrupt(f"not a quorum state: {error}", file=file, position=0) from error
    raise Unsupported(f"data_version {version} of {NAME}", file=file, position=0)


def format_quorum_state(state: QuorumState) -> bytes:
    if state.data_version == 0:
        voters = state.current_voters
        return msgspec.json.encode(
            _V0(
                clusterId=state.cluster_id,
                leaderId=state.leader_id,
                leaderEpoch=state.leader_epoch,
                votedId=state.voted_id,
                appliedOffset=state.applied_offset,
                currentVoters=None if voters is None else [_Voter(voter) for voter in voters],
            )
        )
    return msgspec.json.encode(
        _V1(
            leaderId=state.leader_id,
            leaderEpoch=state.leader_epoch,
            votedId=state.voted_id,
            votedDirectoryId=str(state.voted_directory_id),
        )
    )


def write_quorum_state(path: Path, state: QuorumState) -> None:
    write_aside(path, format_quorum_state(state))
