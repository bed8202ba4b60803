"""From a partition of a coordinator's topic to its state, in a thread.

Of each key only the last record counts, so only that is looked into: what a cleaner would leave of
the log is what is replayed, in the order that it has there. Transactions are the exception: what
was written in them is replayed as it comes, since it depends on how they ended, and while one is
open so is what removes a key, since that takes along what the transaction holds of it.

Records that this node does not know (of later versions, of coordinators that it has not, or put
there by somebody else) stay in the log; they are passed over, and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

import msgspec

from kraftline.broker.coordinators.state import Change, Producer, State
from kraftline.errors import BadData
from kraftline.records.batch import Batch
from kraftline.records.compression import Scratch
from kraftline.records.control import ControlType, read_control
from kraftline.records.framing import batches
from kraftline.records.kernel import active as kernel
from kraftline.records.runs import Fields, Run, prepare
from kraftline.schema.coordinator.frame import CoordinatorTopic, decode_key, decode_value
from kraftline.storage.log import PartitionLog
from kraftline.storage.log.batch_fields import CONTROL, TRANSACTIONAL


class Loading(msgspec.Struct):
    """How far it is: `offset` is the next to be read, of those below `end_offset`."""

    offset: int
    end_offset: int
    records: int = 0
    foreign: int = 0


class LoadingStopped(Exception):
    """Nobody wants the state any more."""


_CHUNK: Final = 4 << 20
_BUDGET: Final = 1 << 20  # uncompressed bytes that are looked at in one go


def load(
    log: PartitionLog,
    topic: CoordinatorTopic,
    state: State,
    progress: Loading,
    is_wanted: Callable[[], bool],
) -> None:
    """Replay what the log has below `progress.end_offset`."""
    loader = _Loader(topic, state, progress)
    scratch = Scratch()
    while progress.offset < progress.end_offset:
        if not is_wanted():
            raise LoadingStopped
        data = log.read(progress.offset, _CHUNK, up_to=progress.end_offset).read()
        if not data:
            break  # compaction has emptied the rest
        at = 0
        while at < len(data):
            run = prepare(data, at, check_crc=False, scratch=scratch, budget=_BUDGET, partial=True)
            if run.end == at:
                break  # the chunk ends inside a batch; the next begins with it
            loader.take(run, data)
            at = run.end
    loader.settle()


class _Loader:
    """`_latest` has the last value of each key that is not replayed yet, oldest first; `_open` the
    producers whose transactions have not ended."""

    def __init__(self, topic: CoordinatorTopic, state: State, progress: Loading) -> None:
        self._topic = topic
        self._state = state
        self._progress = progress
        self._latest: dict[bytes | None, bytes | None] = {}
        self._open: set[int] = set()

    def take(self, run: Run, data: bytes) -> None:
        table, stride, progress = run.table, kernel.STRIDE, self._progress
        for source, first, last in run.groups:
            for start, stop, is_plain in _stretches(run, first, last):
                if is_plain:
                    self._note(kernel.tuples(source, table, start, stop))
                else:
                    self.settle()
                    for row in range(start, stop):
                        place = table[row * stride + kernel.POSITION]
                        size = table[row * stride + kernel.SIZE]
                        for batch in batches(data[place : place + size]):
                            self._in_transaction(batch)
            end = (last - 1) * stride
            progress.offset = (
                table[end + kernel.BASE_OFFSET] + table[end + kernel.LAST_OFFSET_DELTA] + 1
            )

    def settle(self) -> None:
        """Replay what is left of the records since the last transaction."""
        state, topic = self._state, self._topic
        for key, value in self._latest.items():
            if key is not None and state.replay_raw(key, value):
                continue
            change = None if key is None else _change(topic, key, value)
            if change is None:
                self._progress.foreign += 1
            else:
                state.replay(change, None)
        self._latest = {}

    def _note(self, records: list[Fields]) -> None:
        self._progress.records += len(records)
        keys = [each[2] for each in records]
        values = [each[3] for each in records]
        start = 0
        if self._open:
            for at, value in enumerate(values, 1):
                if value is None:
                    self._keep(keys[start:at], values[start:at])
                    self.settle()
                    start = at
        self._keep(keys[start:], values[start:])

    def _keep(self, keys: list[bytes | None], values: list[bytes | None]) -> None:
        last = dict(zip(keys, values, strict=True))
        latest = self._latest
        # Keys in the order of their last records, made by what is quick.
        for key in reversed(dict.fromkeys(reversed(keys))):
            latest.pop(key, None)
            latest[key] = last[key]

    def _in_transaction(self, batch: Batch) -> None:
        producer = Producer(batch.producer_id, batch.producer_epoch)
        for record in batch.records():
            if batch.is_control:
                kind = read_control(record).type
                if kind in (ControlType.COMMIT, ControlType.ABORT):
                    self._open.discard(producer.id)
                    self._state.end_transaction(producer, is_committed=kind == ControlType.COMMIT)
                continue
            self._progress.records += 1
            self._open.add(producer.id)
            change = None
            if record.key is not None:
                change = _change(self._topic, record.key, record.value)
            if change is None:
                self._progress.foreign += 1
            else:
                self._state.replay(change, producer)


def _stretches(run: Run, first: int, last: int) -> Iterator[tuple[int, int, bool]]:
    """Rows that follow each other and are, or are not, of no transaction."""
    stride = kernel.STRIDE
    special = CONTROL | TRANSACTIONAL
    attributes = run.table[first * stride + kernel.ATTRIBUTES : last * stride : stride]
    start = 0
    while start < len(attributes):
        is_plain = not attributes[start] & special
        stop = next(
            (
                at
                for at, each in enumerate(islice(attributes, start, None), start)
                if (not each & special) is not is_plain
            ),
            len(attributes),
        )
        yield first + start, first + stop, is_plain
        start = stop


def _change(topic: CoordinatorTopic, raw: bytes, value: bytes | None) -> Change | None:
    try:
        key = decode_key(topic, raw)
        if value is None:
            return Change(key, None)
        message, version = decode_value(topic, key.SPEC.key, value)
    except BadData:
        return None
    return Change(key, message, version)
