"""From a partition of a coordinator's topic to its state: every record replayed, in a thread.

Records that this node does not know (of later versions, of coordinators that it has not, or put
there by somebody else) stay in the log; they are passed over, and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from kraftline.broker.coordinators.state import Change, Producer, State
from kraftline.errors import BadData, Truncated
from kraftline.records.batch import Batch
from kraftline.records.control import ControlType, read_control
from kraftline.records.framing import batches
from kraftline.records.record import Record
from kraftline.schema.coordinator.frame import CoordinatorTopic, decode_key, decode_value
from kraftline.storage.log import PartitionLog


class Loading(msgspec.Struct):
    """How far it is: `offset` is the next to be read, of those below `end_offset`."""

    offset: int
    end_offset: int
    records: int = 0
    foreign: int = 0


class LoadingStopped(Exception):
    """Nobody wants the state any more."""


_CHUNK: Final = 4 << 20


def load(
    log: PartitionLog,
    topic: CoordinatorTopic,
    state: State,
    progress: Loading,
    is_wanted: Callable[[], bool],
) -> None:
    """Replay what the log has below `progress.end_offset`."""
    for batch in _batches(log, progress, is_wanted):
        if batch.is_control:
            _end_transaction(batch, state)
            continue
        producer = None
        if batch.is_transactional:
            producer = Producer(batch.producer_id, batch.producer_epoch)
        for record in batch.records():
            progress.records += 1
            change = _change(topic, record)
            if change is None:
                progress.foreign += 1
            else:
                state.replay(change, producer)


def _batches(
    log: PartitionLog, progress: Loading, is_wanted: Callable[[], bool]
) -> Iterator[Batch]:
    while progress.offset < progress.end_offset:
        if not is_wanted():
            raise LoadingStopped
        before = progress.offset
        data = log.read(before, _CHUNK, up_to=progress.end_offset).read()
        if not data:
            return  # compaction has emptied the rest
        try:
            for batch in batches(data):
                if batch.last_offset >= progress.offset:
                    yield batch
                    progress.offset = batch.next_offset
        except Truncated:
            if progress.offset == before:
                raise
            # The chunk ends inside a batch; the next begins with it.


def _change(topic: CoordinatorTopic, record: Record) -> Change | None:
    if record.key is None:
        return None
    try:
        key = decode_key(topic, record.key)
        if record.value is None:
            return Change(key, None)
        value, version = decode_value(topic, key.SPEC.key, record.value)
    except BadData:
        return None
    return Change(key, value, version)


def _end_transaction(batch: Batch, state: State) -> None:
    for record in batch.records():
        kind = read_control(record).type
        if kind in (ControlType.COMMIT, ControlType.ABORT):
            producer = Producer(batch.producer_id, batch.producer_epoch)
            state.end_transaction(producer, is_committed=kind == ControlType.COMMIT)
