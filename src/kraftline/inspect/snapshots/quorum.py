"""Other voters for a quorum that keeps them in its log."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kraftline.inspect.snapshots.refusal import Refused
from kraftline.inspect.snapshots.source import State
from kraftline.metadata.features import FEATURES, KRAFT_VERSION, from_level
from kraftline.metadata.voters import InitialVoter, voters_record
from kraftline.metadata.words import voter_changes
from kraftline.schema.control.voters_record import Voter, VotersRecord
from kraftline.schema.metadata.unregister_controller_record import UnregisterControllerRecord
from kraftline.schema.types import Message

_DYNAMIC = 1


class Quorum(msgspec.Struct, frozen=True):
    """The voters to be, the records that go with them, and what to tell."""

    voters: VotersRecord
    records: tuple[Message, ...]
    changes: tuple[str, ...]
    notes: tuple[str, ...]


def replace_voters(
    state: State, wanted: Sequence[InitialVoter], listener: str | None = None
) -> Quorum:
    """Voters that stay as they are keep all that the log says of them. Those that go lose their
    registration as controllers as well."""
    before = {} if state.voters is None else {v.voter_id: v for v in state.voters.voters}
    notes = []
    if state.kraft_version < _DYNAMIC:
        notes.append(_becomes_dynamic(state))
    name = listener or _listener(state)
    made = {each.voter_id: each for each in voters_record(wanted, name).voters}
    after = {n: _same(before.get(n), voter) or voter for n, voter in made.items()}
    gone = sorted(before.keys() - after.keys())
    registered = state.image.cluster.controllers
    if not before:
        # A static quorum: whoever is registered and not wanted was one of its controllers.
        gone = sorted(set(registered) - after.keys())
    notes += [
        f"node {node} is a broker too and stays one; --remove-broker {node} takes it out"
        for node in gone
        if node in state.image.cluster.brokers
    ]
    return Quorum(
        VotersRecord(voters=tuple(after[n] for n in sorted(after))),
        tuple(UnregisterControllerRecord(controller_id=n) for n in gone if n in registered),
        tuple(change.text for change in voter_changes(before.values(), after.values())),
        tuple(notes),
    )


def _becomes_dynamic(state: State) -> str:
    least = FEATURES[KRAFT_VERSION].levels[_DYNAMIC].default_from
    version = state.image.features.metadata_version
    if version is None or version.level < least:
        raise Refused(
            f"the voters are in controller.quorum.voters of every node (kraft.version 0); to have "
            f"them in the log takes metadata.version {from_level(least)}, and this is {version}",
            hint="Change controller.quorum.voters instead.",
        )
    return (
        "the quorum was a static one (controller.quorum.voters): it becomes dynamic, "
        "kraft.version 1; give every node controller.quorum.bootstrap.servers instead"
    )


def _listener(state: State) -> str:
    if state.voters is not None:
        for voter in state.voters.voters:
            for endpoint in voter.endpoints:
                return endpoint.name
    for _, controller in sorted(state.image.cluster.controllers.items()):
        for listener in controller.listeners:
            return listener.name
    return "CONTROLLER"


def _same(before: Voter | None, after: Voter) -> Voter | None:
    """The voter as it is, if what was asked for is already so."""
    if before is None or before.voter_directory_id != after.voter_directory_id:
        return None
    (wanted,) = after.endpoints
    found = any((e.host, e.port) == (wanted.host, wanted.port) for e in before.endpoints)
    return before if found else None
