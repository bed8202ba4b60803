"""Rows of a dump: one per record, and the filters that choose them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from kraftline.errors import BadData
from kraftline.inspect.dump.payloads import TopicFilter, control_type, fill_control, payloads_of
from kraftline.inspect.dump.sources import Source, Wanted
from kraftline.records.batch import Batch
from kraftline.records.record import Record
from kraftline.schema.control.frame import ControlType
from kraftline.storage.files import shown
from kraftline.storage.segment import Damage, SegmentReader, Tail, TailKind

_SPLIT = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def type_name(text: str) -> str:
    """`TopicRecord`, `topic_record` and `TOPIC` all mean TOPIC_RECORD: what is compared."""
    name = _SPLIT.sub("_", text).upper().replace("-", "_")
    return name.removesuffix("_RECORD").removesuffix("_MESSAGE")


def can_hold(sources: Iterable[Source], types: frozenset[str]) -> bool:
    """Whether records of these types may be there: where nothing is typed, only control records
    have a type. (A type that is a number is that of a control record.)"""
    control = {type_name(kind.name) for kind in ControlType}
    if any(name in control or name.isdecimal() for name in types):
        return True
    return any(payloads_of(source.decoder).typed for source in sources)


class Header(Struct, frozen=True, gc=False):
    key: str
    value: bytes | None


class Row(Struct, rename="camel", gc=False):
    """One record. Bytes are base64 in JSON; `payload` is there where the record is typed.

    `problem` says why a record of a typed log has no payload; its bytes are in key and value.
    """

    file: str
    position: int
    offset: int
    timestamp: int
    timestamp_type: str
    leader_epoch: int
    codec: str
    producer_id: int
    producer_epoch: int
    sequence: int
    is_transactional: bool
    is_control: bool
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    key_payload: dict[str, Any] | UnsetType | None = UNSET
    payload: dict[str, Any] | UnsetType | None = UNSET
    problem: str | UnsetType = UNSET


class Selection(Struct, frozen=True, kw_only=True):
    """Which records to give. Offsets and times are inclusive; times are in milliseconds."""

    types: frozenset[str] = frozenset()
    topics: Wanted = Wanted()
    keys: frozenset[bytes] = frozenset()
    from_offset: int | None = None
    to_offset: int | None = None
    since: int | None = None
    until: int | None = None

    @property
    def looks_inside(self) -> bool:
        """Whether records must be decoded to choose: by type, key or what they are about."""
        return bool(self.types or self.keys or self.topics.topics)

    @property
    def is_everything(self) -> bool:
        times = (self.since, self.until, self.from_offset, self.to_offset)
        return not self.looks_inside and all(bound is None for bound in times)

    def takes_batch(self, batch: Batch) -> bool:
        if self.from_offset is not None and batch.last_offset < self.from_offset:
            return False
        return self.since is None or batch.max_timestamp >= self.since

    def ends_before(self, offset: int) -> bool:
        return self.to_offset is not None and self.to_offset < offset

    def takes_record(self, record: Record) -> bool:
        if self.from_offset is not None and record.offset < self.from_offset:
            return False
        if self.to_offset is not None and record.offset > self.to_offset:
            return False
        if self.since is not None and record.timestamp < self.since:
            return False
        if self.until is not None and record.timestamp > self.until:
            return False
        return not self.keys or record.key in self.keys


class RowMaker:
    """Makes the rows of one source, batch by batch."""

    def __init__(
        self,
        source: Source,
        selection: Selection,
        on_damage: Callable[[Damage], None],
        topics: TopicFilter,
    ) -> None:
        self._source = source
        self._file = shown(source.path)
        self._selection = selection
        self._footer = False
        self._on_damage = on_damage
        self._payloads = payloads_of(source.decoder)
        # Under a topic filter, records of internal logs count if they are about the topic.
        own = source.partition is not None and selection.topics.topic(source.partition.topic)
        self._about = None if own or not selection.topics.topics else topics

    def rows(self, batch: Batch) -> Iterator[Row]:
        """The chosen records of a batch; one that cannot be decoded is reported as damage."""
        selection = self._selection
        # Of a snapshot's two control batches the first is its header.
        self._footer = batch.is_control and batch.base_offset > 0
        if not selection.takes_batch(batch):
            return
        try:
            records = batch.records(check_crc=False)
            codec = CODECS[batch.codec]
        except BadData as error:
            self._report(batch, error, known_offset(batch))
            return
        epoch, producer = batch.partition_leader_epoch, batch.producer_id
        producer_epoch, transactional = batch.producer_epoch, batch.is_transactional
        control = batch.is_control
        payloads = self._payloads
        for record in records:
            if not selection.takes_record(record):
                continue
            row = Row(
                self._file,
                batch.position,
                record.offset,
                record.timestamp,
                record.timestamp_type,
                epoch,
                codec,
                producer,
                producer_epoch,
                record.sequence,
                transactional,
                control,
                record.key,
                record.value,
                tuple(Header(key, value) for key, value in record.headers),
            )
            if control or payloads.typed:
                self._fill(row, batch)
            if self._about is not None and not self._about.takes(row):
                continue
            if selection.types:
                name = control_type(row) if control else payloads.type_of(row)
                if name is None or type_name(name) not in selection.types:
                    continue
            yield row

    def checked_rows(self, batch: Batch) -> Iterator[Row]:
        """The same of a batch whose checksum nobody has looked at."""
        try:
            batch.check()
        except BadData as error:
            self._report(batch, error, known_offset(batch))
        else:
            yield from self.rows(batch)

    def finish(self, tail: Tail | None, *, passed_over: bool = False) -> None:
        """Tell of a file that ends too early. Where all its batches were passed over in search of
        the first to read, nobody has looked for a footer."""
        source = self._source
        if tail is None or source.may_grow:
            return
        reason = None
        if tail.kind is TailKind.PARTIAL:
            reason = "the file ends within a batch"
        elif source.is_snapshot and not self._footer and not passed_over:
            reason = "the snapshot does not end with its footer"
        if reason is not None:
            at, length = tail.position, tail.length
            self._on_damage(Damage(file=source.path, position=at, length=length, reason=reason))

    def _fill(self, row: Row, batch: Batch) -> None:
        try:
            if row.is_control:
                fill_control(row)
            else:
                self._payloads.fill(row)
        except BadData as error:
            row.problem = error.reason
            self._report(batch, error, row.offset)

    def _report(self, batch: Batch, error: BadData, offset: int) -> None:
        self._on_damage(
            Damage(
                file=self._source.path,
                position=batch.position,
                length=batch.size_in_bytes,
                reason=error.reason,
                offset=offset if error.offset is None else error.offset,
            )
        )


def is_wrapper(batch: Batch) -> bool:
    """Whether it is a compressed message set of v0 or v1, whose header has only its last offset."""
    return batch.magic < 2 and bool(batch.attributes & 7)


def known_offset(batch: Batch) -> int:
    """The first offset, where that is known without decompressing what may be damaged."""
    return batch.last_offset if is_wrapper(batch) else batch.base_offset


def read_rows(
    source: Source,
    selection: Selection,
    on_damage: Callable[[Damage], None],
    topics: TopicFilter,
    *,
    on_progress: Callable[[int], None],
) -> Iterator[Row]:
    """The chosen rows of a file; indexes are used to get to the first one."""
    maker = RowMaker(source, selection, on_damage, topics)
    with SegmentReader(source.path, on_damage=on_damage) as reader:
        start = start_position(reader, selection)
        if start is None:
            maker.finish(reader.tail, passed_over=True)
            return
        reached = 0
        for batch, position in reader.batches(start):
            on_progress(position)
            if selection.ends_before(reached if is_wrapper(batch) else batch.base_offset):
                return
            yield from maker.rows(batch)
            reached = batch.next_offset
        maker.finish(reader.tail)


def start_position(reader: SegmentReader, selection: Selection) -> int | None:
    """Where to begin for the selection's lower bounds; None when nothing there is wanted.

    Damage on the way is told once: behind the start, whoever reads on meets it again.
    """
    if selection.ends_before(reader.base_offset):
        return None
    passed: dict[Damage, None] = {}
    tell, reader.on_damage = reader.on_damage, lambda damage: passed.setdefault(damage)
    start = _sought(reader, selection)
    reader.on_damage = tell
    for damage in passed:
        if tell is not None and (start is None or damage.position < start):
            tell(damage)
    return start


def _sought(reader: SegmentReader, selection: Selection) -> int | None:
    start = 0
    if selection.from_offset is not None:
        found = reader.position_of_offset(selection.from_offset)
        if found is None:
            return None
        start = found
    if selection.since is not None:
        found = reader.position_of_time(selection.since)
        if found is None:
            return None
        start = max(start, found)
    return start


_encoder = msgspec.json.Encoder()


def json_line(row: Row) -> bytes:
    return _encoder.encode(row) + b"\n"
