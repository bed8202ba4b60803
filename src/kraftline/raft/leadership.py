"""How the only voter becomes leader: a new epoch, and the control records that begin it.

As Kafka's single voter does it. The quorum state is on the disk before the first record of the
epoch is: so no two records ever have the same offset and epoch, whatever is lost in a crash.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from kraftline.raft.control_state import ControlState
from kraftline.raft.problems import LogRefused
from kraftline.schema.control.kraft_version_record import KRaftVersionRecord
from kraftline.schema.control.leader_change_message import LeaderChangeMessage
from kraftline.schema.control.leader_change_message import Voter as ChangeVoter
from kraftline.schema.control.voters_record import (
    Endpoint,
    KRaftVersionFeature,
    Voter,
    VotersRecord,
)
from kraftline.schema.types import Message
from kraftline.schema.uuids import Uuid
from kraftline.storage.meta_properties import NAME as META_PROPERTIES
from kraftline.storage.meta_properties import MetaProperties, read_meta_properties
from kraftline.storage.names import BOOTSTRAP
from kraftline.storage.quorum_state import (
    NAME,
    QuorumState,
    read_quorum_state,
    write_quorum_state,
)

_SUPPORTED = KRaftVersionFeature(min_supported_version=0, max_supported_version=1)


def check_owner(directory: str, node_id: int) -> MetaProperties:
    """The directory's meta.properties; LogRefused unless it was formatted for this node."""
    path = os.path.join(directory, META_PROPERTIES)
    if not os.path.exists(path):
        raise LogRefused(
            f"{directory}: not formatted, there is no {META_PROPERTIES}; use `kraftline format`"
        )
    meta = read_meta_properties(path)
    if meta.node_id != node_id:
        raise LogRefused(f"{path}: node.id={meta.node_id}, but this is node {node_id}")
    return meta


def check_only_voter(
    directory: str,
    node_id: int,
    directory_id: Uuid | None,
    controls: ControlState,
    *,
    is_configured: bool,
) -> QuorumState | None:
    """The quorum state on disk; LogRefused where others have a vote, or have had the last.

    `is_configured` says that this node is a voter by its configuration. Without that and without
    voters in its log a node of Kafka waits for ever; here a directory with a seed and no log is
    refused, which was formatted to join others or lost its log. One with meta.properties alone
    is taken for a new one.
    """
    path = os.path.join(directory, NAME)
    state = read_quorum_state(path) if os.path.exists(path) else None
    if controls.kraft_version > 1:
        raise LogRefused(f"{directory}: kraft.version {controls.kraft_version} is not known")
    if controls.kraft_version == 1:
        voters = controls.voters
        if voters is None:
            raise LogRefused(
                f"{directory}: kraft.version is 1, but neither a snapshot nor the log has voters"
            )
        keys = [(voter.voter_id, voter.voter_directory_id) for voter in voters.voters]
        if keys != [(node_id, directory_id)]:
            shown = ", ".join(f"{id} in directory {where}" for id, where in keys) or "nobody"
            raise LogRefused(
                f"{directory}: the voters are {shown}; an embedded log needs node {node_id} in "
                f"directory {directory_id} to be the only one"
            )
        return state
    has_seed = os.path.exists(os.path.join(os.path.dirname(directory), BOOTSTRAP))
    if has_seed and not is_configured and controls.leader_change is None:
        raise LogRefused(
            f"{directory}: nobody has a vote. controller.quorum.voters is not set, and there is "
            "neither a log nor a snapshot with voters: the directory was formatted with "
            "--no-initial-controllers, or has lost its metadata log. A new node that is the only "
            "controller is formatted with --standalone"
        )
    ids = {node_id}
    if controls.leader_change is not None:
        ids |= {voter.voter_id for voter in controls.leader_change.voters}
    if state is not None and state.current_voters is not None:
        ids |= set(state.current_voters)
    if ids != {node_id}:
        raise LogRefused(
            f"{directory}: the quorum has the voters {', '.join(map(str, sorted(ids)))}; an "
            f"embedded log needs node {node_id} to be the only one"
        )
    return state


def next_epoch(state: QuorumState | None, last_epoch: int) -> int:
    return max(0 if state is None else state.leader_epoch, last_epoch, 0) + 1


def write_leadership(directory: str, node_id: int, epoch: int, kraft_version: int) -> None:
    """Make durable that this node leads; in the form that belongs to the kraft.version."""
    state = QuorumState(leader_id=node_id, leader_epoch=epoch, data_version=1)
    if kraft_version == 0:
        state = msgspec.structs.replace(state, data_version=0, current_voters=(node_id,))
    write_quorum_state(os.path.join(directory, NAME), state)


def start_of_epoch(
    node_id: int,
    directory_id: Uuid | None,
    controls: ControlState,
    endpoints: Sequence[Endpoint] = (),
) -> list[Message]:
    """The control records with which an epoch begins.

    With kraft.version 1 the voters follow if the log never had them, or if this node's
    `endpoints` (none given: unchanged) are not those that the voters name.
    """
    voter = ChangeVoter(voter_id=node_id)
    records: list[Message] = [
        LeaderChangeMessage(leader_id=node_id, voters=(voter,), granting_voters=(voter,))
    ]
    if controls.kraft_version == 0 or controls.voters is None or directory_id is None:
        return records
    (known,) = controls.voters.voters
    here = Voter(
        voter_id=node_id,
        voter_directory_id=directory_id,
        endpoints=tuple(endpoints) or known.endpoints,
        kraft_version_feature=_SUPPORTED,
    )
    if controls.voters_offset == -1 or _key(here) != _key(known):
        records.append(KRaftVersionRecord(kraft_version=controls.kraft_version))
        records.append(VotersRecord(voters=(here,)))
    return records


def _key(voter: Voter) -> tuple[frozenset[Endpoint], KRaftVersionFeature]:
    # The order of endpoints has no meaning.
    return frozenset(voter.endpoints), voter.kraft_version_feature
