"""Tables of nights that never were, written by hand: seconds after three o'clock, UTC."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

import pyarrow as pa

from kraftline.lake.tables import TABLES
from kraftline.report.tables import NEEDED, Tables

Row: TypeAlias = "dict[str, object]"

CLUSTER = "night-watch-cluster-A1"
THREE = datetime(2026, 3, 1, 3, 0, tzinfo=UTC)


def micro(seconds: float) -> int:
    return round((THREE.timestamp() + seconds) * 1_000_000)


def at(seconds: float | None) -> datetime | None:
    return None if seconds is None else THREE + timedelta(seconds=seconds)


def tables(given: Mapping[str, list[Row]]) -> Tables:
    """The tables that a report needs; those not given are empty."""
    return {
        name: pa.Table.from_pylist(
            [{"cluster_id": CLUSTER, **row} for row in given.get(name, [])], TABLES[name].columns
        )
        for name in NEEDED
    }


def true(start: float, end: float | None, **columns: object) -> Row:
    """A row of history that was true from one second to another."""
    return {
        **columns,
        "valid_from_offset": round(start),
        "valid_from_time": at(start),
        "valid_to_offset": None if end is None else round(end),
        "valid_to_time": at(end),
        "committed": True,
        "state": "open" if end is None else "closed",
    }


def broker(number: int, *stretches: tuple[float, float | None, str]) -> list[Row]:
    """Stretches of up, fenced (lost), leaving, left and new (registered, not yet in service)."""
    rows, incarnation = [], 0
    for start, end, state in stretches:
        incarnation += state == "new"
        rows.append(
            true(
                start,
                end,
                broker=number,
                incarnation_id=f"{number}-{incarnation}",
                rack=f"rack-{number}",
                fenced=state in ("fenced", "left", "new"),
                in_controlled_shutdown=state in ("leaving", "left"),
            )
        )
    return rows


def trouble(kind: str, name: str, start: float, end: float | None) -> Row:
    topic, _, partition = name.rpartition("-")
    return true(start, end, kind=kind, topic=topic, topic_id=topic, partition=int(partition))


def change(when: float, kind: str, subject: str, text: str, **more: object) -> Row:
    row: Row = {"offset": round(when), "time": at(when), "epoch": 1, "kind": kind}
    return {**row, "subject": subject, "text": text, "committed": True, **more}


def covered(start: float, end: float, how: str = "log") -> Row:
    return {
        "leg": 0 if how == "log" else None,
        "how": how,
        "from_offset": round(start),
        "to_offset": round(end),
        "from_time": at(start),
        "to_time": at(end),
        "committed_to": round(end),
        "source": "node-1",
    }


def segment(topic: str, end_offset: int, size: int, start: float, end: float, node: int = 1) -> Row:
    return {
        "topic": topic,
        "partition": 0,
        "node": node,
        "base_offset": 0,
        "end_offset": end_offset,
        "records": end_offset,
        "bytes": size,
        "first_time": at(start),
        "last_time": at(end),
        "file": f"{topic}-0/0.log",
    }


def commits(group: str, topic: str, *points: tuple[float, int, int]) -> list[Row]:
    """(second, committed offset, lag); the last one stands."""
    ends = [second for second, _, _ in points[1:]]
    return [
        true(
            second,
            end,
            group=group,
            topic=topic,
            partition=0,
            committed_offset=offset,
            commit_time=at(second),
            log_end_offset=offset + lag,
            lag=lag,
        )
        for (second, offset, lag), end in zip(points, [*ends, None], strict=True)
    ]


def quiet() -> Tables:
    """An hour without trouble."""
    return tables(
        {
            "coverage": [covered(0, 3600)],
            "brokers": [row for number in (1, 2, 3) for row in broker(number, (0, None, "up"))],
            "topics": [true(0, None, topic="orders")],
            "partitions": [true(0, None, topic="orders", partition=n, leader=1) for n in range(3)],
        }
    )


def bad() -> Tables:
    """Broker 3 dies at 3:10 and is back at 3:20; broker 2 is restarted at 3:40."""
    well = quiet()
    orders = [f"orders-{number}" for number in range(6)]
    given: dict[str, list[Row]] = {
        "brokers": [
            *broker(1, (0, None, "up")),
            *broker(2, (0, 2400, "up"), (2400, 2405, "leaving"), (2405, 2460, "left"),
                    (2460, 2470, "new"), (2470, None, "up")),
            *broker(3, (0, 600, "up"), (600, 1190, "fenced"), (1190, 1200, "new"),
                    (1200, None, "up")),
        ],
        "health": [
            trouble("offline", "audit-0", 600, 1200),
            *(trouble("under-replicated", name, 600, 1210) for name in orders),
            *(trouble("under-replicated", name, 2400, 2480) for name in orders[:3]),
            trouble("under min ISR", "orders-4", 700, 760),
            trouble("reassigning", "sessions-0", 1500, 1800),
            true(600, 1200, kind="broker down", broker=3),
        ],
        "changes": [
            *(change(600, "leader.moved", name, f"leader of {name} moved 3 -> 1",
                     cause="broker 3 was fenced") for name in orders),
            change(600, "leader.lost", "audit-0", "audit-0 lost its leader 3"),
            change(600, "broker.fenced", "broker 3", "broker 3 was fenced"),
            change(1200, "leader.unclean", "audit-0", "unclean election: audit-0 is led by 3"),
            *(change(1210, "isr.grew", name, f"ISR of {name} grew") for name in orders),
            change(3000, "config.changed", "topic orders",
                   "retention.ms of topic orders: 7d -> 1d", name="retention.ms"),
            change(3100, "topic.deleted", "topic import-2019", "topic import-2019 deleted"),
            change(3100, "producer-ids.allocated", "producer ids", "bookkeeping"),
        ],
        "configs": [
            true(0, 3000, resource_type="topic", resource="orders", name="retention.ms",
                 value="604800000", is_secret=False),
            true(3000, None, resource_type="topic", resource="orders", name="retention.ms",
                 value="86400000", is_secret=False),
            true(0, None, resource_type="topic", resource="orders", name="min.insync.replicas",
                 value="2", is_secret=False),
            true(0, None, resource_type="topic", resource="audit", name="min.insync.replicas",
                 value="1", is_secret=False),
        ],
        "topic_sizes": [
            segment("orders", 9000, 4_000_000, 0, 3600),
            segment("orders", 8000, 3_000_000, 0, 3500, node=2),
            segment("audit", 100, 20_000, -3600, 3600),
            segment("old", 50, 90_000_000, -9000, -60),
        ],
        "group_offsets": [
            *commits("billing", "orders", (0, 0, 10), (1800, 4000, 500), (3590, 8990, 10)),
            *commits("analytics", "orders", (60, 10, 100), (1200, 900, 2000)),
        ],
        "quarantine": [
            {"file": "node-2/orders-0/0.log", "kind": "damage", "from_position": 12,
             "to_position": 90, "reason": "the checksum does not match"},
        ],
    }  # fmt: skip
    return {**well, **{name: tables(given)[name] for name in given}}
