"""Everything of a cluster but its partitions, replayed record by record in the order of the log.

There is little of it beside partitions, and each thing depends on others: configs on topics, what
is told of a topic on its configs, what is said of partitions on brokers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from kraftline.inspect.cluster.health import MIN_ISR
from kraftline.lake.names import CONFIG_RESOURCES
from kraftline.metadata import words
from kraftline.metadata.image.configs import TOPIC
from kraftline.metadata.words import Change
from kraftline.metadata.words.values import is_secret
from kraftline.schema.metadata.zk_migration_state_record import ZkMigrationStateRecord
from kraftline.spark.history.around import BrokerState, Clear, LegAround
from kraftline.spark.history.brokers import BROKER_TYPES, BrokerEvent, Brokers, told
from kraftline.spark.history.by_state import changes_by_state
from kraftline.spark.history.effects import CONTROLS, MARKERS, Effects, Logged, Taken
from kraftline.spark.history.lives import Life, OverGap, Span
from kraftline.spark.history.moments import (
    BEFORE_ALL,
    Leg,
    Moment,
)
from kraftline.spark.history.rows import Rows
from kraftline.spark.history.said import SAID_TYPES, Key, key_of, name_of, said_of
from kraftline.spark.history.spans import Turn, spans
from kraftline.spark.history.troubles import BROKER_DOWN

Row: TypeAlias = dict[str, Any]

MIGRATION: Final = "ZK_MIGRATION_STATE_RECORD"
# All that is read for `Things`.
TYPES: Final = frozenset(
    {MIGRATION, "CONFIG_RECORD", "CLEAR_ELR_RECORD"}
    | MARKERS
    | CONTROLS
    | SAID_TYPES
    | BROKER_TYPES
)
# Tables with a row for each of a thing's states, of which changes are told by that.
_TOLD_BY_STATE: Final = frozenset(
    {"brokers", "controllers", "configs", "acls", "client_quotas", "scram", "delegation_tokens"}
)
OPENED: Final = (
    "topics",
    "brokers",
    "controllers",
    "configs",
    "acls",
    "client_quotas",
    "scram",
    "features",
    "producer_ids",
    "delegation_tokens",
    "health",
)
_TOPIC_CONFIG: Final = CONFIG_RESOURCES[TOPIC]
_NUMBER: Final = re.compile("[0-9]{1,9}")


class _Thing:
    """A thing of a table: its state by the last event, and the row that is open."""

    __slots__ = ("at", "open_at", "place", "row", "state")

    def __init__(self) -> None:
        self.state: Row | None = None
        self.at: Moment | None = None  # of the last event, which is not a row yet
        self.row: Row | None = None
        self.open_at: Moment | None = None
        self.place: int | None = None  # of the row among those that were open, while it is one


class Things:
    """One leg of a cluster: `opened` and `replay` in order, then `finish`; the rest is what the
    replay of its partitions wants to know."""

    def __init__(self, leg: Leg, rows: Rows, before: Things | None) -> None:
        self.leg = leg
        self.rows = rows
        self.around = LegAround(leg, [], [], {}, [], [], [])
        self.lives: list[Life] = []
        self.over_gap: list[OverGap] = []
        self.lasting: dict[str, list[int]] = {}  # places of opened rows, by table
        # How things stood where the log broke off, until it is known how they stand behind that.
        self._before = before
        self._things: dict[tuple[str, Key], _Thing] = {}
        self._brokers = Brokers()
        self._alive: dict[str, Life] = {}  # by topic id
        self._keys: dict[str, dict[str, None]] = {}  # of configs, by topic
        self._levels: dict[str, int] = {}
        self._turns: dict[int, list[Turn]] = {}
        self._of_topics: dict[str, list[Span]] = {}  # min.insync.replicas

    def opened(self, table: str, row: Row, place: int) -> None:
        """A row that was open after the last build. If it is after this one too, `lasting` has its
        place, and nobody hears of it otherwise."""
        start, time = row.pop("valid_from_offset"), row.pop("valid_from_time")
        moment = Moment(start, BEFORE_ALL, start, time, None, None, opened=True)
        match table:
            case "health":
                turns = self._turns.setdefault(row["broker"], [])
                turns.append(Turn(start, time, True, row["detail"]))
                return
            case "topics":
                self._begun(moment, row["topic_id"], row["topic"])
            case "brokers":
                self._known(moment, self._brokers.opened(row))
            case "configs":
                self._has_key(row)
            case "features":
                self._levels[row["feature"]] = row["level"]
        key = key_of(table, row)
        self._event(moment, table, key, row)
        self._things[table, key].place = place

    def replay(self, units: Iterable[Sequence[Logged]]) -> None:
        """All records of the leg, those of a unit together."""
        for records in Effects(self.around, self.rows).of(units):
            if records[0].moment.unit is not None:
                self._behind_gap()
            self._unit(records)

    def finish(self) -> None:
        """The leg is over: whatever is still true ends with it, or is open."""
        leg = self.leg
        self._behind_gap()
        for (table, _), thing in self._things.items():
            self._settle(table, thing)
            if thing.row is not None and thing.place is not None and leg.next_base_offset is None:
                self.lasting.setdefault(table, []).append(thing.place)
                self._kept_min_isr(table, thing, None)
            elif thing.row is not None:
                self._closed(table, thing, None)
        for broker, turns in self._turns.items():
            for begun, over in spans(turns):
                row = {
                    "kind": BROKER_DOWN,
                    "topic": None,
                    "topic_id": None,
                    "partition": None,
                    "broker": broker,
                    "detail": begun.what,
                }
                end = None if over is None else (over.at_offset, over.at_time)
                self.rows.valid("health", row, leg, (begun.at_offset, begun.at_time), end)
        for life in self._alive.values():
            life.ended_at, life.ended_time = leg.next_base_offset, leg.next_base_time
        self._with_min_isr()
        if leg.next_base_offset is not None:
            text = (
                f"offsets {leg.end_offset} to {leg.next_base_offset} are missing from the log; "
                "until here this has changed, in an unknown order:"
            )
            gap = Change(
                kind="log.gap",
                subject="log",
                text=text,
                before=leg.end_offset,
                after=leg.next_base_offset,
            )
            self.rows.change(gap, leg, (leg.next_base_offset, leg.next_base_time), None)

    def _unit(self, records: Sequence[Taken]) -> None:
        """Records that take effect together."""
        # Nothing of a snapshot is created by it.
        created = {
            fields["name"]
            for moment, record_type, fields in records
            if record_type == "TOPIC_RECORD" and moment.unit is not None
        }
        lives = len(self.lives)
        of_brokers: list[BrokerEvent] = []
        configs: dict[str, list[tuple[int, str, str | None]]] = {}
        for moment, record_type, fields in records:
            if record_type in BROKER_TYPES:
                event = self._brokers.replay(record_type, fields)
                if event is not None:
                    of_brokers.append(event)
                    self._known(moment, event)
                    self._event(moment, "brokers", (event.broker,), event.after)
            elif record_type == "CONFIG_RECORD":
                self._config(moment, fields, created, configs)
            elif record_type == "CLEAR_ELR_RECORD":
                clear = Clear(fields["topic_name"], *moment[:-1])
                self.around.clears.append(clear)
            elif record_type == MIGRATION:
                if moment.unit is not None:
                    state = ZkMigrationStateRecord(zk_migration_state=fields["zk_migration_state"])
                    self._told(moment, words.log_change(state, 0))
            else:
                self._said(moment, record_type, fields)
        if records and records[0][0].unit is not None:
            causes = {broker: (out, back) for broker, out, back in told(of_brokers)}
            if causes:
                self.around.told.setdefault(records[0][0].unit, {}).update(causes)
        for life in self.lives[lives:]:
            found = sorted(configs.get(life.topic, ()), key=_order)
            life.configs = [(name, value) for _, name, value in found]

    def _said(self, moment: Moment, record_type: str, fields: Row) -> None:
        if record_type == "FEATURE_LEVEL_RECORD":
            self._level(moment, fields)
        said = said_of(record_type, fields)
        if said is None:
            return
        if record_type == "TOPIC_RECORD":
            self._begun(moment, fields["topic_id"], fields["name"])
        elif record_type == "REMOVE_TOPIC_RECORD":
            self._removed(moment, fields["topic_id"])
        self._event(moment, said.table, said.key, said.state)

    def _event(
        self, moment: Moment, table: str, key: Key, state: Row | None, *, silent: bool = False
    ) -> None:
        """The state of a thing from now on; None if it is not there any more."""
        thing = self._things.get((table, key))
        if thing is None:
            thing = self._things[table, key] = _Thing()
        was = thing.state
        if moment.unit is not None and not silent and table in _TOLD_BY_STATE:
            # Of secrets nobody knows whether they are the same.
            secret = state is not None and (table == "scram" or state.get("is_secret", False))
            if state != was or secret:
                self._by_state(table, was, state, (moment.at_offset, moment.at_time), moment.epoch)
        # Of several events at one offset only the last counts.
        if thing.at is not None and thing.at.at_offset != moment.at_offset:
            self._settle(table, thing)
        thing.state, thing.at = state, moment

    def _by_state(
        self,
        table: str,
        was: Row | None,
        now: Row | None,
        at: tuple[int, int | None],
        epoch: int | None,
        leg: Leg | None = None,
    ) -> None:
        known = now or was
        if known is None:
            return
        name = next((known[key] for key in ("name", "key", "feature") if key in known), None)
        for change in changes_by_state(table, was, now, directly=leg is None):
            self.rows.change(change, leg or self.leg, at, epoch, name)

    def _settle(self, table: str, thing: _Thing) -> None:
        """What the last event left is a row, if it is not the one that is open. What is kept of
        SCRAM credentials does not tell whether they are others: they count as such."""
        if thing.at is None:
            return
        if thing.state != thing.row or (table == "scram" and thing.state is not None):
            if thing.row is not None:
                self._closed(table, thing, thing.at)
            thing.row, thing.open_at = thing.state, thing.at
            if not thing.at.opened:
                thing.place = None
        thing.at = None

    def _closed(self, table: str, thing: _Thing, by: Moment | None) -> None:
        row, start = thing.row, thing.open_at
        assert row is not None
        assert start is not None
        end = None if by is None else (by.at_offset, by.at_time)
        self.rows.valid(table, row, self.leg, (start.at_offset, start.at_time), end)
        self._kept_min_isr(table, thing, end)

    def _kept_min_isr(self, table: str, thing: _Thing, end: tuple[int, int | None] | None) -> None:
        row, start = thing.row, thing.open_at
        if table == "configs" and row is not None and start is not None and row["name"] == MIN_ISR:
            self._set_min_isr(row, start, end)

    def _config(
        self,
        moment: Moment,
        fields: Row,
        created: set[str],
        configs: dict[str, list[tuple[int, str, str | None]]],
    ) -> None:
        name = fields["name"]
        secret, there = is_secret(name), fields["value"] is not None
        row = {
            "resource_type": name_of(fields["resource_type"], CONFIG_RESOURCES),
            "resource": fields["resource_name"],
            "name": name,
            "value": None if secret else fields["value"],
            "is_secret": secret,
        }
        self._has_key(row)
        is_new = row["resource_type"] == _TOPIC_CONFIG and row["resource"] in created
        if is_new and there:
            configs.setdefault(row["resource"], []).append((moment.offset, name, row["value"]))
        key = key_of("configs", row)
        self._event(moment, "configs", key, row if there else None, silent=is_new and there)

    def _has_key(self, row: Row) -> None:
        if row["resource_type"] == _TOPIC_CONFIG:
            self._keys.setdefault(row["resource"], {})[row["name"]] = None

    def _begun(self, moment: Moment, topic_id: str, topic: str) -> None:
        self._over(moment, topic_id, removed=False)
        life = Life(
            topic_id=topic_id,
            topic=topic,
            leg=self.leg.leg,
            offset=moment.offset,
            index=moment.nth,
            began_at=moment.at_offset,
            began_time=moment.at_time,
            began_unit=moment.unit,
            began_epoch=moment.epoch,
            opened=moment.opened,
        )
        self.lives.append(life)
        self._alive[topic_id] = life

    def _over(self, moment: Moment, topic_id: str, *, removed: bool) -> Life | None:
        life = self._alive.pop(topic_id, None)
        if life is not None:
            life.removed = removed
            life.next_offset, life.next_index = moment.offset, moment.nth
            life.next_unit, life.next_epoch = moment.unit, moment.epoch
            life.ended_at, life.ended_time = moment.at_offset, moment.at_time
        return life

    def _removed(self, moment: Moment, topic_id: str) -> None:
        """With a topic its configs are gone."""
        life = self._over(moment, topic_id, removed=True)
        for name in self._keys.get(life.topic, ()) if life is not None else ():
            assert life is not None
            self._event(moment, "configs", (_TOPIC_CONFIG, life.topic, name), None, silent=True)

    def _level(self, moment: Moment, fields: Row) -> None:
        """A level that nobody takes is told of all the same, and is not what was before the
        next."""
        name, level = fields["name"], fields["feature_level"]
        if moment.unit is not None:
            change = words.feature_change(name, self._levels.get(name) or None, level)
            self._told(moment, change, name)
        if said_of("FEATURE_LEVEL_RECORD", fields) is not None:
            self._levels[name] = level

    def _known(self, moment: Moment, event: BrokerEvent) -> None:
        """What partitions and `health` follow from."""
        now, number = event.after, event.broker
        state = (False, False, False, frozenset[str]())
        if now is not None:
            where = frozenset(now["directories"])
            state = (True, now["fenced"], now["in_controlled_shutdown"], where)
        self.around.brokers.append(BrokerState(moment.offset, number, *state))
        if moment.opened or (now is None and event.before is None):
            return
        turns = self._turns.setdefault(number, [])
        if now is None:
            turns.append(Turn(moment.at_offset, moment.at_time, True, "unregistered"))
            return
        stopping = now["in_controlled_shutdown"]
        detail = "shutting down" if stopping else "fenced"
        is_down = now["fenced"] or stopping
        turns.append(Turn(moment.at_offset, moment.at_time, is_down, detail))

    def _told(self, moment: Moment, change: Change | None, name: str | None = None) -> None:
        if change is not None:
            at = moment.at_offset, moment.at_time
            self.rows.change(change, self.leg, at, moment.epoch, name)

    def _set_min_isr(self, row: Row, start: Moment, end: tuple[int, int | None] | None) -> None:
        # A value that is no number, or 0, is as good as none.
        if row["value"] is None or not _NUMBER.fullmatch(row["value"]) or not int(row["value"]):
            return
        if end is None and self.leg.next_base_offset is not None:
            end = self.leg.next_base_offset, self.leg.next_base_time
        over, over_time = (None, None) if end is None else end
        span = Span(
            start.at_offset, over, int(row["value"]), start.at_time, over_time, start.opened
        )
        if row["resource_type"] == _TOPIC_CONFIG:
            self._of_topics.setdefault(row["resource"], []).append(span)
        elif row["resource_type"] == "broker" and row["resource"] == "":
            self.around.min_isr.append(span)

    def _with_min_isr(self) -> None:
        for life in self.lives:
            life.min_isr = self._of_topics.get(life.topic, [])

    def _states(self) -> Iterator[tuple[str, Key, Row]]:
        for (table, key), thing in self._things.items():
            if thing.state is not None:
                yield table, key, thing.state

    def _behind_gap(self) -> None:
        """The snapshot behind a gap has been read: what has changed until there, though not
        when."""
        before, self._before = self._before, None
        if before is None:
            return
        was = {(table, key): state for table, key, state in before._states()}
        now = {(table, key): state for table, key, state in self._states()}
        assert before.leg.next_base_offset is not None
        at = before.leg.next_base_offset, before.leg.next_base_time
        topics = {key: (was.get(key), now.get(key)) for key in {**was, **now} if key[0] == "topics"}
        # Configs come and go with their topic, whose change tells of them.
        moved = {(b or a or {})["topic"] for a, b in topics.values() if a != b}
        configs: dict[str, list[tuple[str, str | None, bool]]] = {}
        for key in {**was, **now}:
            table, one, other = key[0], was.get(key), now.get(key)
            if table == "configs" and other and other["resource_type"] == _TOPIC_CONFIG:
                said = other["name"], other["value"], other["is_secret"]
                configs.setdefault(other["resource"], []).append(said)
            known = other or one
            assert known is not None
            of_topic = table == "configs" and known["resource_type"] == _TOPIC_CONFIG
            if one == other or (of_topic and known["resource"] in moved):
                continue
            if table in _TOLD_BY_STATE or table == "features":
                self._by_state(table, one, other, at, None, before.leg)
        for (_, (topic_id,)), (one, other) in topics.items():
            was_name, name = (None if side is None else side["topic"] for side in (one, other))
            set_now = configs.get(name or "", [])
            self.over_gap.append(OverGap(str(topic_id), before.leg.leg, was_name, name, set_now))
        before.around.brokers_over_gap = [
            (was.get(key), now.get(key)) for key in {**was, **now} if key[0] == "brokers"
        ]


def _order(config: tuple[int, str, str | None]) -> tuple[int, str, str]:
    return config[0], config[1], config[2] or ""
