"""The records of many files, one after the other, in the form that was asked for.

Lines of JSON for a whole metadata log take a short cut: the kernel writes them straight from the
batches, and only what is out of the ordinary goes through rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import msgspec

from kraftline.errors import BadData, NotKafka
from kraftline.inspect.dump.payloads import TopicFilter
from kraftline.inspect.dump.rows import Row, RowMaker, Selection, json_line, read_rows
from kraftline.inspect.dump.sources import Decoder, Source
from kraftline.records.checksums import sound_until
from kraftline.records.framing import batches
from kraftline.storage.files import shown, unreadable, vanished
from kraftline.storage.follow import follow
from kraftline.storage.metadata_dirs import whole_snapshots
from kraftline.storage.names import METADATA_TOPIC, base_offset_of, format_segment_file
from kraftline.storage.partition_dir import read_partition_directory
from kraftline.storage.segment import Damage, Run, SegmentReader

Progress = Callable[[int], None]
_T = TypeVar("_T")
WORTH_A_PROGRAM = 1 << 20


def json_lines(
    sources: Sequence[Source],
    selection: Selection,
    on_damage: Callable[[Damage], None],
    on_unreadable: Callable[[NotKafka], None],
    on_progress: Progress | None = None,
) -> Iterator[bytes | memoryview]:
    """JSON lines, many at a time; a piece is good until the next one is asked for."""
    topics = _topic_filter(sources, selection)
    for source, progress in _with_progress(sources, on_progress):
        if selection.is_everything and _is_large_metadata(source):
            lines = _metadata_lines(source, selection, on_damage, progress)
        else:
            lines = _joined(read_rows(source, selection, on_damage, topics, on_progress=progress))
        yield from _readable(source, lines, on_unreadable)


def _topic_filter(sources: Sequence[Source], selection: Selection) -> TopicFilter:
    """A filter that knows the ids of topics whose own records are not among those to be read.

    They may stand in a snapshot, where the log before it is gone, in a segment that was not given,
    before the lower bound, or in the metadata log beside a coordinator's.
    """
    topics = TopicFilter(selection.topics)
    if not selection.topics.topics:
        return topics
    bounded = selection.from_offset is not None or selection.since is not None
    folders: dict[str, set[str]] = {}
    for source in sources:
        if source.decoder is Decoder.METADATA:
            folder, name = os.path.split(source.path)
            folders.setdefault(folder or ".", set()).add(name)
    if not folders:
        nodes = {
            os.path.dirname(os.path.dirname(os.path.abspath(source.path)))
            for source in sources
            if source.decoder is not Decoder.NONE
        }
        folders = {os.path.join(node, f"{METADATA_TOPIC}-0"): set() for node in nodes}
    for folder, given in folders.items():
        try:
            log = read_partition_directory(folder)
        except NotKafka:
            continue  # what is wanted can be read all the same
        topics.learn(snapshot.path for snapshot in whole_snapshots(log))
        topics.learn(
            segment.path
            for segment in log.segments
            if bounded or os.path.basename(segment.path) not in given
        )
    return topics


def _is_large_metadata(source: Source) -> bool:
    return source.decoder is Decoder.METADATA and _size(source.path) >= WORTH_A_PROGRAM


def total_bytes(sources: Iterable[Source]) -> int:
    """How much there is to read, for a progress bar."""
    return sum(_size(source.path) for source in sources)


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0  # whoever opens it says why


def read_all(
    sources: Sequence[Source],
    selection: Selection,
    on_damage: Callable[[Damage], None],
    on_unreadable: Callable[[NotKafka], None],
    on_progress: Progress | None = None,
) -> Iterator[Row]:
    """The chosen rows of every source."""
    topics = _topic_filter(sources, selection)
    for source, progress in _with_progress(sources, on_progress):
        rows = read_rows(source, selection, on_damage, topics, on_progress=progress)
        yield from _readable(source, rows, on_unreadable)


def _with_progress(
    sources: Iterable[Source], on_progress: Progress | None
) -> Iterator[tuple[Source, Progress]]:
    """Sources, each with what hears of positions in it: it counts on from the files before."""
    before = 0

    def progress(position: int) -> None:
        if on_progress is not None:
            on_progress(before + position)

    for source in sources:
        yield source, progress
        before += _size(source.path)


def _readable(
    source: Source, items: Iterator[_T], on_unreadable: Callable[[NotKafka], None]
) -> Iterator[_T]:
    """Step over a file that cannot be opened, or whose disk fails; one that a broker has deleted
    since it was listed is not there."""
    try:
        yield from items
    except NotKafka as error:
        if not vanished(error):
            on_unreadable(error)
    except OSError as error:
        on_unreadable(unreadable(source.path, error))


def followed_rows(
    sources: Sequence[Source], selection: Selection, on_damage: Callable[[Damage], None]
) -> Iterator[Row]:
    """The chosen rows of one partition, as they come, up to the last offset that is wanted.

    With a lower bound of time the log is read from its start: nothing tells where that is in
    segments yet to come.
    """
    folders = {os.path.dirname(source.path) or "." for source in sources}
    if len(folders) != 1:
        raise NotKafka("--follow takes one partition: a directory like orders-0, or its segment")
    for source in sources:
        name = os.path.basename(source.path)
        if name != format_segment_file(base_offset_of(name) or 0):
            raise NotKafka(
                f"{source.path}: --follow takes segments as a broker names them, which grow; "
                "leave it out to read this file"
            )
    last = sources[-1]
    topics = _topic_filter(sources, selection)
    start = selection.from_offset or base_offset_of(sources[0].path) or 0
    makers: dict[int, RowMaker] = {}
    for base_offset, run in follow(folders.pop(), start, on_damage=on_damage):
        if base_offset not in makers:
            path = os.path.join(os.path.dirname(last.path), format_segment_file(base_offset))
            source = msgspec.structs.replace(last, path=path)
            makers = {base_offset: RowMaker(source, selection, on_damage, topics)}
        base = run.position - run.start
        for batch in batches(run.buffer, run.start, run.end, position=base):
            yield from makers[base_offset].checked_rows(batch)
            if selection.ends_before(batch.next_offset):
                return


def _joined(rows: Iterable[Row]) -> Iterator[bytes]:
    pending: list[bytes] = []
    try:
        for row in rows:
            pending.append(json_line(row))
            if len(pending) == 1024:
                yield b"".join(pending)
                pending.clear()
    except (BadData, OSError):  # what came before is still good
        yield b"".join(pending)
        raise
    yield b"".join(pending)


def _metadata_lines(
    source: Source,
    selection: Selection,
    on_damage: Callable[[Damage], None],
    on_progress: Progress,
) -> Iterator[bytes | memoryview]:
    lines = LineMaker(source, selection, on_damage)
    with SegmentReader(source.path, on_damage=on_damage) as reader:
        for run in reader.runs():
            yield from lines.of_run(run)
            on_progress(run.position)
        lines.rows.finish(reader.tail)


class LineMaker:
    """JSON lines of runs of batches of a metadata log."""

    def __init__(
        self, source: Source, selection: Selection, on_damage: Callable[[Damage], None]
    ) -> None:
        self.rows = RowMaker(source, selection, on_damage, TopicFilter(selection.topics))
        # Only now: the kernel's program is not worth its making for a small file.
        from kraftline.records.metadata_lines import MetadataLines

        name = msgspec.json.encode(shown(source.path))
        self._lines = MetadataLines(b'{"file":' + name + b',"position":')

    def of_run(self, run: Run) -> Iterator[bytes | memoryview]:
        at, base = run.start, run.position - run.start
        while at < run.end:
            sound = sound_until(run.buffer, at, run.end)
            while at < sound:
                text, reached = self._lines.write(run.buffer, at, sound, base + at)
                if reached == at:
                    reached, text = self._by_rows(run, at)
                yield text
                at = reached
            if at < run.end:
                at, text = self._by_rows(run, at)
                yield text

    def _by_rows(self, run: Run, at: int) -> tuple[int, memoryview]:
        """One batch through rows: where the next one starts, and its lines."""
        batch = next(batches(run.buffer, at, run.end, position=run.position - run.start))
        text = b"".join(map(json_line, self.rows.checked_rows(batch)))
        return at + batch.size_in_bytes, memoryview(text)
