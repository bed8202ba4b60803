"""Brokers: registered whole, changed by records that say only what is different."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias

from msgspec import Struct

from kraftline.lake.tables import BROKERS
from kraftline.metadata.registrations import in_order
from kraftline.schema.uuids import Uuid
from kraftline.spark.history.said import by_name

Row: TypeAlias = dict[str, Any]

OWN: Final = BROKERS.columns.names[1 : BROKERS.columns.names.index("valid_from_offset")]
BROKER_TYPES: Final = frozenset(
    {
        "REGISTER_BROKER_RECORD",
        "BROKER_REGISTRATION_CHANGE_RECORD",
        "UNREGISTER_BROKER_RECORD",
        "FENCE_BROKER_RECORD",
        "UNFENCE_BROKER_RECORD",
    }
)


class BrokerEvent(Struct, frozen=True):
    """A record that was taken: how the broker was and is (None: not there), and why one of its
    replicas might lose its place with it (`out`; `less` if nothing else says so) or get it back."""

    broker: int
    before: Row | None
    after: Row | None
    out: str | None = None
    less: str | None = None
    back: str | None = None


class Brokers:
    """The registered brokers of a leg."""

    def __init__(self) -> None:
        self._known: dict[int, Row] = {}

    def opened(self, row: Row) -> BrokerEvent:
        """A row that was open."""
        self._known[row["broker"]] = row
        return BrokerEvent(row["broker"], None, row)

    def replay(self, record_type: str, fields: Row) -> BrokerEvent | None:
        """What a record does; None if no node would take it."""
        match record_type:
            case "REGISTER_BROKER_RECORD":
                return self._registered(fields)
            case "UNREGISTER_BROKER_RECORD":
                number = fields["broker_id"]
                before = self._known.pop(number, None)
                return BrokerEvent(number, before, None, out=f"broker {number} was unregistered")
            case "BROKER_REGISTRATION_CHANGE_RECORD":
                return self._changed(fields)
            case _:
                fenced = record_type == "FENCE_BROKER_RECORD"
                return self._merged(fields["id"], fields["epoch"], {"fenced": fenced})

    def _registered(self, fields: Row) -> BrokerEvent | None:
        if any(point["name"] == "" for point in fields["end_points"]):
            return None
        number = fields["broker_id"]
        before = self._known.get(number)
        cordoned = fields["cordoned_log_dirs"]
        after = {
            "broker": number,
            "broker_epoch": fields["broker_epoch"],
            "incarnation_id": fields["incarnation_id"],
            "rack": fields["rack"],
            "fenced": fields["fenced"],
            "in_controlled_shutdown": fields["in_controlled_shutdown"],
            "is_migrating_zk_broker": fields["is_migrating_zk_broker"],
            "endpoints": by_name(fields["end_points"]),
            "features": by_name(fields["features"]),
            "directories": _sorted(fields["log_dirs"] or ()),
            "cordoned_directories": cordoned,
        }
        self._known[number] = after
        restarted = before is not None and before["incarnation_id"] != after["incarnation_id"]
        out = f"broker {number} restarted without a clean stop" if restarted else None
        return BrokerEvent(number, before, after, out=out)

    def _changed(self, fields: Row) -> BrokerEvent | None:
        fenced, shutdown = fields["fenced"], fields["in_controlled_shutdown"]
        if fenced not in (-1, 0, 1) or shutdown not in (0, 1):
            return None
        said: Row = {}
        if fenced:
            said["fenced"] = fenced == 1
        if shutdown:
            said["in_controlled_shutdown"] = True
        if fields["log_dirs"]:
            said["directories"] = _sorted(fields["log_dirs"])
        if fields["cordoned_log_dirs"] is not None:
            said["cordoned_directories"] = fields["cordoned_log_dirs"]
        return self._merged(fields["broker_id"], fields["broker_epoch"], said)

    def _merged(self, number: int, epoch: int, said: Row) -> BrokerEvent | None:
        before = self._known.get(number)
        # A record that is not of this registration is passed over.
        if before is None or before["broker_epoch"] != epoch:
            return None
        after = self._known[number] = {**before, **said}
        name = f"broker {number}"
        out = less = back = None
        if said.get("fenced"):
            out = f"{name} was fenced"
        elif said.get("in_controlled_shutdown"):
            out = f"{name} began a controlled shutdown"
        if said.get("fenced") is False:
            back = f"{name} was unfenced"
        if "directories" in said and set(before["directories"]) - set(said["directories"]):
            less = f"{name} lost a directory"
        return BrokerEvent(number, before, after, out=out, less=less, back=back)


def told(events: list[BrokerEvent]) -> Iterator[tuple[int, str | None, str | None]]:
    """What the events of one unit say of each broker that they say something of: why it would be
    out, why it would be back."""
    for number in dict.fromkeys(event.broker for event in events):
        mine = [event for event in events if event.broker == number]
        # The last one counts; a lost directory only where there is nothing else.
        out = [event.out for event in mine if event.out] or [e.less for e in mine if e.less]
        back = [event.back for event in mine if event.back]
        if out or back:
            yield number, out[-1] if out else None, back[-1] if back else None


def _sorted(directories: Iterable[str]) -> list[str]:
    return [str(each) for each in in_order(map(Uuid.parse, directories))]
