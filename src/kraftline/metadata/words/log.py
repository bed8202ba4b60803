"""What happened to the log itself: a new active controller, voters, transactions."""

from __future__ import annotations

from kraftline.metadata.words.change import Change
from kraftline.metadata.words.values import numbers, plural
from kraftline.schema.control.kraft_version_record import KRaftVersionRecord
from kraftline.schema.control.leader_change_message import LeaderChangeMessage
from kraftline.schema.control.voters_record import VotersRecord
from kraftline.schema.metadata.zk_migration_state_record import ZkMigrationStateRecord
from kraftline.schema.types import Message

_MIGRATION = {
    0: "no migration from ZooKeeper: the cluster began with KRaft",
    1: "the migration from ZooKeeper has been prepared",
    2: "the metadata was copied from ZooKeeper; writing to both",
    3: "the migration from ZooKeeper is done",
}


def log_change(message: Message, epoch: int) -> Change | None:
    """A control record, or one that changes no image, in words; None for others."""
    match message:
        case LeaderChangeMessage(leader_id=leader):
            return Change(
                kind="controller.elected",
                subject=f"controller {leader}",
                text=f"controller {leader} became active, in epoch {epoch}",
                after={"leader": leader, "epoch": epoch},
            )
        case VotersRecord(voters=voters):
            ids = sorted(each.voter_id for each in voters)
            return Change(
                kind="voters.set",
                subject="voters",
                text=f"the voters of the quorum are {numbers(ids)}",
                after=ids,
            )
        case KRaftVersionRecord(kraft_version=level):
            return Change(
                kind="feature.set",
                subject="kraft.version",
                text=f"kraft.version is {level}",
                after=level,
            )
        case ZkMigrationStateRecord(zk_migration_state=state):
            return Change(
                kind="migration.state",
                subject="migration",
                text=_MIGRATION.get(state, f"migration from ZooKeeper in state {state}"),
                after=state,
                minor=state == 0,
            )
    return None


def transaction_change(name: str | None, count: int, dropped: str) -> Change:
    """A metadata transaction of which nothing took effect."""
    called = f"metadata transaction {name!r}" if name else "a metadata transaction"
    records = plural(count, "record")
    if dropped == "open":
        kind = "transaction.open"
        text = f"{called} with {records} is not ended yet: none of it counts"
    else:
        kind, text = "transaction.aborted", f"{called} with {records} was {dropped}"
    return Change(kind=kind, subject="transaction", text=text, before=count)
