"""What `info` found, as a person reads it: facts first, then tables, then what is odd."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from rich import box
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kraftline.inspect.info.files import FileInfo
from kraftline.inspect.info.log_dirs import LogDirectoryInfo, QuorumInfo, TopicInfo
from kraftline.inspect.info.partitions import PartitionInfo, SnapshotInfo
from kraftline.inspect.info.segments import SegmentInfo
from kraftline.inspect.verify.text import show_size

_ROWS = 40
_NONE = "-"
_TIMES = ("timestamp", "written")


def log_directory_text(
    info: LogDirectoryInfo, *, everything: bool, narrow: bool
) -> Iterator[RenderableType]:
    yield _title("Log directory", info.path)
    yield _facts(
        [
            ("cluster", info.cluster_id or _NONE),
            ("node", _or_none(info.node_id)),
            ("directory id", info.directory_id or _NONE),
            ("meta.properties", _meta(info.meta_version)),
            ("last stop", _stop(info)),
            ("features", _features(info.features)),
        ]
    )
    if info.metadata_log is not None:
        yield from _metadata(info.metadata_log, info.quorum)
    yield from _topics(info.topics, everything, narrow)
    if info.others:
        yield _heading(f"Not in service: {len(info.others)}")
        yield _partitions(info.others, everything, narrow)
    yield from _remarks(info.odd, info.unreadable)


def partition_text(info: PartitionInfo, *, everything: bool) -> Iterator[RenderableType]:
    name = os.path.basename(os.path.abspath(info.path))
    if info.topic is not None:
        name = f"{info.topic}-{info.partition}"
    state = "" if info.state == "normal" else f" ({info.state})"
    yield _title(f"Partition {name}{state}", info.path)
    offsets = info.offsets
    facts = [
        ("topic id", info.topic_id or _NONE),
        ("size", f"{show_size(info.size)} in {_plural(info.segment_count, 'segment')}"),
        ("offsets", _offsets(info.first_offset, info.end_offset)),
        ("times", _span(info.first_timestamp, info.last_timestamp)),
        ("leader epochs", _epochs(info)),
    ]
    if offsets is not None:
        facts += [
            ("recovery point", _or_none(offsets.recovery_point)),
            ("high watermark", _or_none(offsets.high_watermark)),
        ]
        if offsets.log_start_offset is not None:
            facts.append(("log start", str(offsets.log_start_offset)))
        if offsets.first_dirty_offset is not None:
            facts.append(("first dirty", f"{offsets.first_dirty_offset} (cleaner)"))
    if info.working_files:
        facts.append(("on their way", f"{_plural(info.working_files, 'file')} (.deleted, .swap …)"))
    yield _facts(facts)
    if info.segments:
        yield _heading("Segments")
        yield _segments(info.segments, everything)
    if info.snapshots:
        yield _heading("Metadata snapshots")
        yield _snapshots(info.snapshots)
    if info.producer_states:
        yield _heading("Producer snapshots")
        table = _table(("up to offset", "right"), ("producers", "right"), ("size", "right"))
        for state_file in info.producer_states[-_ROWS:]:
            table.add_row(
                str(state_file.end_offset),
                _or_none(state_file.producers),
                show_size(state_file.size),
            )
        yield table
    yield from _remarks(info.odd, info.unreadable)


def file_text(info: FileInfo) -> Iterator[RenderableType]:
    name = info.kind if "." in info.kind else info.kind.capitalize()
    yield _title(name, info.path)
    facts = [("size", show_size(info.size))]
    for name, value in info.content.items():
        facts.append((name.replace("_", " "), _value(name, value)))
    yield _facts(facts)
    yield from _remarks((), info.unreadable)


def _title(kind: str, path: str) -> Text:
    return Text.assemble((kind, "bold"), ("  ", ""), (path, "dim"))


def _heading(text: str) -> RenderableType:
    return Padding(Text(text, style="bold"), (1, 0, 0, 0))


def _facts(rows: Sequence[tuple[str, str]]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(f"  {name}", Text(value))
    return table


def _table(*columns: tuple[str, str]) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        header_style="dim",
        show_edge=False,
    )
    for name, how in columns:
        if how == "right":
            table.add_column(name, justify="right", no_wrap=True)
        elif how == "fold":
            table.add_column(name, overflow="fold")
        else:
            table.add_column(name, no_wrap=True)
    return table


def _metadata(log: PartitionInfo, quorum: QuorumInfo | None) -> Iterator[RenderableType]:
    yield _heading("Metadata log")
    facts = []
    if quorum is not None:
        leader = "no leader known" if quorum.leader_id is None else f"leader {quorum.leader_id}"
        voted = "" if quorum.voted_id is None else f", voted for {quorum.voted_id}"
        voters = ""
        if quorum.voters:
            voters = f", voters {', '.join(map(str, quorum.voters))}"
        facts.append(("quorum", f"{leader} in epoch {quorum.leader_epoch}{voted}{voters}"))
    segments = f"{_plural(log.segment_count, 'segment')}, {show_size(log.size)}"
    facts += [
        ("log", f"offsets {_offsets(log.first_offset, log.end_offset)}, {segments}"),
        ("times", _span(log.first_timestamp, log.last_timestamp)),
    ]
    yield _facts(facts)
    if log.snapshots:
        yield Text("")
        yield _snapshots(log.snapshots)


def _snapshots(snapshots: Sequence[SnapshotInfo]) -> Table:
    table = _table(
        ("snapshot up to", "right"),
        ("epoch", "right"),
        ("size", "right"),
        ("of (UTC)", ""),
        ("state", ""),
    )
    for snapshot in snapshots[-_ROWS:]:
        table.add_row(
            str(snapshot.end_offset),
            str(snapshot.epoch),
            show_size(snapshot.size),
            _time(snapshot.last_contained_log_timestamp),
            "" if snapshot.state == "whole" else snapshot.state,
        )
    return table


def _topics(
    topics: Sequence[TopicInfo], everything: bool, narrow: bool
) -> Iterator[RenderableType]:
    partitions = [p for topic in topics for p in topic.partitions]
    if not topics:
        return
    size = show_size(sum(topic.size for topic in topics))
    yield _heading(
        f"{_plural(len(topics), 'topic')}, {_plural(len(partitions), 'partition')}, {size}; "
        "largest first"
    )
    if len(partitions) <= _ROWS or everything:
        yield _partitions(partitions, True, narrow)
        return
    table = _table(
        ("topic", "fold"),
        ("partitions", "right"),
        ("size", "right"),
        ("offsets", "right"),
        ("oldest (UTC)", ""),
        ("newest (UTC)", ""),
    )
    for topic in topics[:_ROWS]:
        first = [p.first_timestamp for p in topic.partitions if p.first_timestamp is not None]
        last = [p.last_timestamp for p in topic.partitions if p.last_timestamp is not None]
        count = sum((p.end_offset or 0) - (p.first_offset or 0) for p in topic.partitions)
        table.add_row(
            topic.topic,
            str(len(topic.partitions)),
            show_size(topic.size),
            f"{count:,}",
            _minute(min(first, default=None)),
            _minute(max(last, default=None)),
        )
    yield table
    if len(topics) > _ROWS:
        yield Text(f"… and {len(topics) - _ROWS:,} more topics (--all shows every partition)")


def _partitions(partitions: Sequence[PartitionInfo], everything: bool, narrow: bool) -> Table:
    columns = [("partition", "fold"), ("size", "right"), ("offsets", "right")]
    if not narrow:
        columns += [("segments", "right"), ("oldest (UTC)", "")]
    table = _table(*columns, ("newest (UTC)", ""))
    for info in partitions if everything else partitions[:_ROWS]:
        name = f"{info.topic}-{info.partition}"
        if len(name) > 60:
            name = f"{name[:40]}…{name[-10:]}"
        if info.state != "normal":
            name += f" ({info.state})"
        cells = [name, show_size(info.size), _offsets(info.first_offset, info.end_offset)]
        if not narrow:
            cells += [str(info.segment_count), _minute(info.first_timestamp)]
        table.add_row(*cells, _minute(info.last_timestamp))
    return table


def _segments(segments: Sequence[SegmentInfo], everything: bool) -> Table:
    table = _table(
        ("base offset", "right"),
        ("size", "right"),
        ("offsets", "right"),
        ("oldest (UTC)", ""),
        ("newest (UTC)", ""),
        ("", "fold"),
    )
    for segment in segments if everything else segments[-_ROWS:]:
        remarks = [] if segment.tail == "complete" else [f"{segment.tail} tail"]
        missing = {"index", "timeindex"} - set(segment.indexes)
        remarks += [f"no .{kind}" for kind in sorted(missing)] if segment.size else []
        remarks += [".txnindex"] if "txnindex" in segment.indexes else []
        remarks += ["empty"] if segment.size == 0 else []
        remarks += [segment.damage] if segment.damage else []
        table.add_row(
            str(segment.base_offset),
            show_size(segment.size),
            _offsets(segment.first_offset, segment.end_offset),
            _time(segment.first_timestamp),
            _time(segment.last_timestamp),
            ", ".join(remarks),
        )
    return table


def _remarks(odd: Sequence[str], unreadable: Sequence[str]) -> Iterator[RenderableType]:
    for heading, lines, style in (
        ("Could not be read", unreadable, "red"),
        ("Odd", odd, "yellow"),
    ):
        if lines:
            yield _heading(heading)
            for line in lines[:_ROWS]:
                yield Text(f"  {line}", style=style)
            if len(lines) > _ROWS:
                yield Text(f"  … and {len(lines) - _ROWS:,} more", style=style)


def _meta(version: int | None) -> str:
    names = {None: "missing or unreadable", 0: "version 0 (ZooKeeper)", 1: "version 1 (KRaft)"}
    return names.get(version, f"version {version}")


def _stop(info: LogDirectoryInfo) -> str:
    if not info.clean_shutdown:
        return "no mark of a clean stop: a broker is running here, or was killed"
    epoch = "" if info.broker_epoch is None else f", broker epoch {info.broker_epoch}"
    return f"clean{epoch}"


def _features(features: dict[str, int] | None) -> str:
    if not features:
        return _NONE
    names = sorted(features, key=lambda name: (name != "metadata.version", name))
    return ", ".join(f"{name} {features[name]}" for name in names)


def _epochs(info: PartitionInfo) -> str:
    shown = [f"{e.epoch} from {e.start_offset}" for e in info.leader_epochs[-5:]]
    return ("… " if len(info.leader_epochs) > 5 else "") + ", ".join(shown) if shown else _NONE


def _offsets(first: int | None, end: int | None) -> str:
    if first is None or end is None:
        return _NONE
    return f"none, next {end}" if first >= end else f"{first}..{end - 1}"


def _span(first: int | None, last: int | None) -> str:
    if first is None and last is None:
        return _NONE
    return f"{_time(first)} to {_time(last)} UTC"


def _time(timestamp: int | None) -> str:
    if timestamp is None or timestamp < 0:
        return _NONE
    try:
        return f"{datetime.fromtimestamp(timestamp / 1000, UTC):%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return str(timestamp)


def _minute(timestamp: int | None) -> str:
    """A time for narrow tables."""
    text = _time(timestamp)
    return text[:-3] if ":" in text else text


def _value(name: str, value: Any) -> str:
    if value is None or value in ("", [], (), {}):
        return _NONE
    if name == "last_contained_log_timestamp" and value == 0:
        return _NONE  # what a formatted directory starts with
    if name.endswith(_TIMES) and isinstance(value, int):
        return f"{_time(value)} UTC ({value})"
    if isinstance(value, dict):
        return ", ".join(
            f"{key.replace('_', ' ')} {_value(key, item)}" for key, item in value.items()
        )
    if isinstance(value, list | tuple):
        shown = [_value("", item) for item in value[:_ROWS]]
        more = [f"… and {len(value) - _ROWS:,} more"] if len(value) > _ROWS else []
        separator = "\n" if any(isinstance(item, dict) for item in value) else ", "
        return separator.join(shown + more)
    return f"{value:,}" if isinstance(value, int) and name in ("records", "batches") else str(value)


def _plural(count: int, one: str) -> str:
    return f"{count:,} {one}{'' if count == 1 else 's'}"


def _or_none(number: int | None) -> str:
    return _NONE if number is None else str(number)
