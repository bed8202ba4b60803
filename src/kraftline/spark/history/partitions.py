"""All that is made of partitions, from rows that come in their order: the table itself, what was
unhealthy, what changed, and what happened to their topics.

A bucket of topics at a time is columns of numbers, and nothing is done row by row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftline.lake.tables import CHANGES, CLOSED, HEALTH, OPEN, PARTITIONS, TIME, Table
from kraftline.schema.uuids import Uuid
from kraftline.spark.history.around import Around
from kraftline.spark.history.health import KINDS, unhealthy
from kraftline.spark.history.lists import Ints, interned
from kraftline.spark.history.lives import Life, OverGap
from kraftline.spark.history.marks import Told
from kraftline.spark.history.out import TablesOut
from kraftline.spark.history.placed import LIFE, NEVER, NONE, Flags, Placed, placed, starts
from kraftline.spark.history.rare import registration
from kraftline.spark.history.rows import Rows, plain_schema
from kraftline.spark.history.steps import Steps, steps_of
from kraftline.spark.history.telling import told
from kraftline.spark.history.topics import New, Topic


class Partitions:
    """Partitions of some topics, all of those topics' partitions."""

    def __init__(self, arounds: Mapping[str, Around], out: TablesOut) -> None:
        self._arounds, self._out = arounds, out
        self._topics: dict[tuple[str, str], Topic] = {}
        self._rows: dict[str, Rows] = {}

    def replay(self, table: pa.Table) -> None:
        """Write all that is made of rows that come in their order."""
        self._look_at_topics(table)
        lives = {
            (topic.cluster_id, topic.topic_id, leg): found
            for topic in self._topics.values()
            for leg, found in topic.lives.items()
        }
        rows = placed(table, self._arounds, lives)
        steps = steps_of(rows)
        self._write_partitions(steps)
        self._write_health(rows, steps)
        self._write_changes(steps)
        self._note(steps)
        for topic in self._topics.values():
            topic.tell(self._arounds[topic.cluster_id], self._rows_of(topic.cluster_id))
        for found in self._rows.values():
            found.flush()

    def _look_at_topics(self, table: pa.Table) -> None:
        said = table.filter(pc.greater_equal(table.column("how"), LIFE))
        columns = (said.column(name).to_pylist() for name in ("cluster_id", "how", "payload"))
        for cluster_id, how, payload in zip(*columns, strict=True):
            found: Life | OverGap
            if how == LIFE:
                found = msgspec.msgpack.decode(payload, type=Life)
            else:
                found = msgspec.msgpack.decode(payload, type=OverGap)
            key = cluster_id, found.topic_id
            topic = self._topics.get(key)
            if topic is None:
                topic = self._topics[key] = Topic(*key, {}, [], {}, {}, {}, {})
            if isinstance(found, Life):
                topic.lives.setdefault(found.leg, []).append(found)
            else:
                topic.over_gap.append(found)

    def _rows_of(self, cluster_id: str) -> Rows:
        rows = self._rows.get(cluster_id)
        if rows is None:
            rows = self._rows[cluster_id] = Rows(cluster_id, self._out)
        return rows

    def _write_partitions(self, steps: Steps) -> None:
        chosen = np.flatnonzero(steps.rows)
        valid_to, valid_to_time = steps.valid_to
        rows = steps.at.take(chosen)
        lists = steps.values.arrow()
        ids = pa.array(steps.ids, pa.string())
        # Lists of numbers of directories, as lists of the directories themselves.
        directories = pa.ListArray.from_arrays(lists.offsets, _named(lists.values, ids))
        columns = {
            **_names(rows),
            "leader": pa.array(steps.leader[chosen]),
            "leader_epoch": pa.array(steps.leader_epoch[chosen]),
            "partition_epoch": pa.array(steps.partition_epoch[chosen]),
            "leader_recovery_state": pa.array(steps.recovery[chosen]),
            **{
                name: (directories if name == "directories" else lists).take(
                    pa.array(codes[chosen])
                )
                for name, codes in steps.lists.items()
            },
            **_validity(rows, valid_to[chosen], valid_to_time[chosen]),
        }
        self._write(PARTITIONS, rows, columns, valid_to[chosen] == NEVER)

    def _write_health(self, placed: Placed, steps: Steps) -> None:
        found = unhealthy(placed, steps)
        rows, turns = found.turns.rows, found.turns
        ends = _or([leg.leg.next_base_offset for leg in placed.legs], NEVER)
        times = _or([leg.leg.next_base_time for leg in placed.legs], NONE)
        lasts = found.valid_to == NEVER
        valid_to = np.where(lasts, ends[rows.leg], found.valid_to)
        valid_to_time = np.where(lasts, times[rows.leg], found.valid_to_time)
        no_detail = turns.detail < 0
        detail = pa.array(np.where(no_detail, 0, turns.detail), mask=no_detail)
        columns = {
            **_names(rows),
            "kind": pa.array(KINDS, pa.string()).take(pa.array(turns.kind)),
            "broker": pa.nulls(len(rows.row), pa.int32()),
            "detail": pa.array(found.details, pa.string()).take(detail),
            **_validity(rows, valid_to, valid_to_time),
        }
        self._write(HEALTH, rows, columns, valid_to == NEVER)

    def _write_changes(self, steps: Steps) -> None:
        for found in told(steps):
            self._write(CHANGES, *_changes(steps, found), None)

    def _write(
        self, table: Table, rows: Placed, columns: Mapping[str, pa.Array], is_open: Flags | None
    ) -> None:
        schema = plain_schema(table.name)
        arrays = [_plain(columns[f.name]).cast(f.type) for f in schema]
        batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
        code = rows.leg * 2 + (0 if is_open is None else is_open)
        for value in np.unique(code).tolist():
            leg, opened = divmod(value, 2)
            chosen = batch if (code == value).all() else batch.filter(pa.array(code == value))
            state = None if is_open is None else OPEN if opened else CLOSED
            self._out.write(table.name, rows.clusters[leg], state, chosen)

    def _note(self, steps: Steps) -> None:
        """What is said of topics when all of their partitions are known."""
        lists, replicas = steps.values, steps.lists["replicas"]
        # A partition that came is told of as its unit left it.
        at = steps.at
        begins = np.flatnonzero(starts(at.group, at.life, at.unit))
        ends = np.append(begins[1:], len(at.row))[: len(begins)] - 1
        left = replicas[np.repeat(ends, np.diff(np.append(begins, len(at.row))))]
        came = ~steps.had_before
        # Partitions that were there before are counted where others came to them.
        grown = np.zeros(len(at.lives.all), bool)
        grown[at.life[came & (at.unit != NONE)]] = True
        for step, topic, key in self._by_life(steps, came & grown[at.life], at.unit):
            first = step[np.argmin(at.offset[step])]
            new = New(
                int(at.offset[first]),
                _none(int(at.unit[first])),
                int(at.at_offset[step].min()),
                _none(int(at.at_time[step].min())),
                _none(int(at.epoch[step].min())),
                int(at.partition[first]),
                lists.values[left[first]],
                lists.sizes()[left[step]].tolist(),
            )
            topic.new.setdefault(key, []).append(new)
        gone = (steps.next_at == NEVER) & steps.at.lives.removed[steps.at.life]
        for step, topic, key in self._by_life(steps, gone, steps.at.life):
            topic.last.setdefault(key, []).extend(lists.sizes()[replicas[step]].tolist())
        self._note_gaps(steps)

    def _by_life(
        self, steps: Steps, some: Flags, also: Ints
    ) -> Iterator[tuple[Ints, Topic, tuple[int, int, int]]]:
        """Some steps, those of a life that have something else in common together, with their
        topic and the life's place in the log."""
        chosen = np.flatnonzero(some)
        at = steps.at
        codes = interned(at.life[chosen], also[chosen])
        chosen = chosen[np.argsort(codes, kind="stable")]
        ends = np.append(np.flatnonzero(starts(np.sort(codes))), len(chosen))
        for start, end in pairwise(ends.tolist()):
            step = chosen[start:end]
            life = at.lives.all[at.life[step[0]]]
            topic = self._topics[at.clusters[at.leg[step[0]]], life.topic_id]
            yield step, topic, (life.leg, life.offset, life.index)

    def _note_gaps(self, steps: Steps) -> None:
        at = steps.at
        ids = [Uuid.parse(each) for each in steps.ids]
        is_row, valid_to = steps.rows, steps.valid_to[0]
        for number, leg in enumerate(at.legs):
            gap_offset = leg.leg.next_base_offset
            if gap_offset is None:
                continue
            here = np.array([name == at.clusters[number] for name in at.clusters])[at.leg]
            sides = (
                ("was", (at.leg == number) & (valid_to == gap_offset)),
                ("now", here & (at.at_offset == gap_offset)),
            )
            for side, chosen in sides:
                for step in np.flatnonzero(chosen & is_row).tolist():
                    life = at.lives.all[at.life[step]]
                    topic = self._topics[at.clusters[number], life.topic_id]
                    known = getattr(topic, side).setdefault(leg.leg.leg, {})
                    known[int(at.partition[step])] = registration(
                        steps,
                        step,
                        ids,
                        leader_epoch=int(steps.leader_epoch[step]),
                        partition_epoch=int(steps.partition_epoch[step]),
                    )


def _changes(steps: Steps, found: Told) -> tuple[Placed, dict[str, pa.Array]]:
    rows = steps.at.take(found.step)
    names = _names(rows)
    number = names["partition"].cast(pa.string())
    subject = pc.binary_join_element_wise(names["topic"], number, "-")
    text = [subject if piece is None else piece for piece in found.text]
    return rows, {
        "kind": found.kind,
        "broker": found.broker,
        "before": found.before,
        "after": found.after,
        "cause": found.cause,
        "topic": names["topic"],
        "partition": names["partition"],
        "subject": subject,
        "text": pc.binary_join_element_wise(*text, ""),
        "name": pa.nulls(len(found.step), pa.string()),
        "offset": pa.array(rows.at_offset),
        "time": _times(rows.at_time),
        "epoch": _nullable(rows.epoch),
        "committed": pa.array(_committed(rows)),
    }


def _names(rows: Placed) -> dict[str, pa.Array]:
    """Of partitions that are in a life."""
    topics = pa.array([life.topic for life in rows.lives.all], pa.string())
    ids = pa.array([life.topic_id for life in rows.lives.all], pa.string())
    life = pa.array(rows.life)
    return {
        "topic": topics.take(life),
        "topic_id": ids.take(life),
        "partition": pa.array(rows.partition),
    }


def _named(numbers: pa.Array, ids: pa.Array) -> pa.Array:
    """Texts for numbers, null where a number is none of theirs: of a list of brokers."""
    found = numbers.to_numpy()
    foreign = (found < 0) | (found >= len(ids))
    return ids.take(pa.array(np.where(foreign, 0, found), mask=foreign))


def _validity(rows: Placed, valid_to: Ints, valid_to_time: Ints) -> dict[str, pa.Array]:
    lasts = valid_to == NEVER
    return {
        "valid_from_offset": pa.array(rows.at_offset),
        "valid_from_time": _times(rows.at_time),
        "valid_to_offset": pa.array(np.where(lasts, 0, valid_to), mask=lasts),
        "valid_to_time": _times(np.where(lasts, NONE, valid_to_time)),
        "committed": pa.array(_committed(rows)),
    }


def _committed(rows: Placed) -> Flags:
    ends = _or([leg.leg.committed_to for leg in rows.legs], NONE)
    found: Flags = rows.at_offset < ends[rows.leg]
    return found


def _or(values: Iterable[int | None], null: int) -> Ints:
    return np.array([null if each is None else each for each in values], np.int64)


def _times(column: Ints) -> pa.Array:
    return _nullable(column).cast(TIME)


def _nullable(column: Ints) -> pa.Array:
    none = column == NONE
    return pa.array(np.where(none, 0, column), mask=none)


def _none(value: int) -> int | None:
    return None if value == NONE else value


def _plain(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
