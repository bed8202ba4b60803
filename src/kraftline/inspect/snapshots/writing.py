"""From a state to a file: records in Kafka's order and batches of Kafka's size."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from itertools import islice

import msgspec

from kraftline.inspect.snapshots.refusal import Refused
from kraftline.inspect.snapshots.source import State
from kraftline.metadata.write_options import Versioned
from kraftline.schema.metadata.frame import encode_record
from kraftline.schema.metadata.registry import TYPE_NAMES
from kraftline.storage.names import SnapshotId, format_snapshot
from kraftline.storage.snapshot_file import SnapshotWriter

# As many records as Kafka hands over at a time.
_GROUP = 1024


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot that is there now. `records` has how many there are of each type."""

    path: str
    id: SnapshotId
    metadata_version: str
    log_time: int
    kraft_version: int
    voters: tuple[int, ...]
    size: int
    records: dict[str, int]

    @property
    def kafka_name(self) -> str:
        """The only name under which Kafka takes it."""
        return format_snapshot(self.id)


def target_of(out: str, state: State, *, force: bool = False, edited: bool = False) -> str:
    """Where the file goes: `out`, or in it if it is a directory. Refused where something is in
    the way, or where a node would take up an edited state without anybody deciding so."""
    path = os.path.join(out, format_snapshot(state.id)) if os.path.isdir(out) else out
    parent = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(parent):
        raise Refused(f"{parent}: there is no such directory")
    if edited and not force and any(_in(file, parent) for file in state.files):
        raise Refused(
            f"{parent}: the node would start from the edited snapshot, whatever its log says",
            hint="Write it elsewhere, and put it there once the node is stopped; see --help.",
        )
    if os.path.lexists(path):
        if any(os.path.exists(file) and os.path.samefile(file, path) for file in state.files):
            raise Refused(f"{path}: it is one of the files that are read; nothing is done in place")
        if not force:
            raise Refused(f"{path}: it is there already", hint="--force replaces it.")
        if os.path.isdir(path) or not os.path.isfile(path):
            raise Refused(f"{path}: it is not a file")
    return path


def _in(file: str, folder: str) -> bool:
    return os.path.realpath(os.path.dirname(file)) == os.path.realpath(folder)


def write_state(state: State, path: str, *, accept_loss: bool = False) -> Written:
    """Write a snapshot; UnwritableMetadata if something would be lost that is not accepted."""
    image = state.image
    options = image.write_options(_unheard if accept_loss else None)
    counts: Counter[str] = Counter()
    name = os.path.basename(path)
    own = name == format_snapshot(state.id)
    if not own and os.path.lexists(f"{path}.tmp"):
        raise Refused(f"{path}.tmp: it is in the way")
    values = _values(image.write(options), counts)
    with SnapshotWriter(
        os.path.dirname(path) or ".",
        state.id,
        last_contained_log_timestamp=state.log_time,
        kraft_version=state.kraft_version,
        voters=state.voters if state.kraft_version else None,
        name=None if own else name,
    ) as writer:
        while group := list(islice(values, _GROUP)):
            writer.append(group)
        size = writer.freeze()
    voters = () if state.voters is None else state.voters.voters
    return Written(
        path=path,
        id=state.id,
        metadata_version=options.version.name,
        log_time=state.log_time,
        kraft_version=state.kraft_version,
        voters=tuple(each.voter_id for each in voters) if state.kraft_version else (),
        size=size,
        records=dict(counts),
    )


def _values(records: Iterator[Versioned], counts: Counter[str]) -> Iterator[bytes]:
    for message, version in records:
        counts[TYPE_NAMES[message.SPEC.key]] += 1
        yield encode_record(message, version)


def _unheard(loss: str) -> None:
    """It was told of before."""
