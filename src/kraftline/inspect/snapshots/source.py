"""What a snapshot is written from: the image at a moment, and what control records say of the
quorum there."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import msgspec

from kraftline.errors import KraftlineError
from kraftline.inspect.history import History, Trouble, open_history
from kraftline.inspect.history.files import Copy, find_copies
from kraftline.inspect.history.legs import Leg
from kraftline.inspect.history.moments import Moment
from kraftline.inspect.history.trouble import name_of
from kraftline.inspect.snapshots.refusal import Refused
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.words.values import plural
from kraftline.schema.control.voters_record import VotersRecord
from kraftline.storage import quorum_state
from kraftline.storage.names import BOOTSTRAP, SnapshotId, parse_snapshot
from kraftline.storage.quorum_state import read_quorum_state


class State(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster at an offset. `log_time` is of the last batch, in ms.

    `election` is the newest epoch that a node has voted in, -1 if unknown. `notes` are for the
    person who asked; `files` are what it was read from.
    """

    image: MetadataImage
    id: SnapshotId
    log_time: int
    kraft_version: int = 0
    voters: VotersRecord | None = None
    election: int = -1
    notes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


def read_state(
    paths: Sequence[str],
    moment: Moment | None = None,
    progress: Callable[[int], None] | None = None,
) -> State:
    """The state at a moment, None being the newest; Refused where no snapshot can stand there.
    `progress` hears of the bytes of the log twice: when it is opened, and when it is replayed."""
    copies = find_copies(paths)
    history = open_history(paths, progress)
    history.progress = progress
    leg, offset = history.find(moment)
    if not leg.complete:
        raise Refused(
            f"the log begins at offset {leg.first_offset}, and no snapshot tells what was before: "
            "a snapshot from here on would leave out whatever was set up earlier",
            hint="Give the whole metadata directory, with a snapshot in it.",
        )
    known = len(history.trouble)
    image = _replay(history, leg, offset)
    if image.offset < 0:
        raise _without_offset(copies)
    if image.provenance.last_epoch < 0:
        raise Refused(
            f"the batch with offset {image.offset} has no leader epoch, and a snapshot is named "
            "after one: no controller wrote this log"
        )
    notes = _troubles(history.trouble, known)
    if not image.provenance.batch_aligned:
        notes.append(
            f"offset {offset} is inside a batch: Kafka takes snapshots at the ends of batches only"
        )
    committed = history.committed_below
    if committed is None or offset >= committed:
        notes.append(
            f"records from offset {committed or 0} on are in no snapshot yet: the files do not "
            "tell whether the last of them were committed"
        )
    quorum = history.quorum(leg, offset)
    return State(
        image=image,
        id=SnapshotId(image.offset + 1, image.provenance.last_epoch),
        log_time=_time(leg, offset),
        kraft_version=quorum.kraft_version,
        voters=quorum.record,
        election=max(map(_election, copies)),
        notes=tuple(notes),
        files=tuple(
            path
            for copy in copies
            for path in (*copy.segments, *(snapshot.path for snapshot in copy.snapshots))
        ),
    )


def _without_offset(copies: Sequence[Copy]) -> Refused:
    names = [os.path.basename(each.path) for copy in copies for each in copy.snapshots]
    if all(name == BOOTSTRAP or parse_snapshot(name) is not None for name in names):
        return Refused("there is no record in it yet: the node was formatted, and never started")
    return Refused(
        f"{names[0]}: a snapshot's name says at which offset and epoch it ends, and this does not",
        hint="Give it Kafka's name for it, such as 00000000000000041200-0000000007.checkpoint.",
    )


def _replay(history: History, leg: Leg, offset: int) -> MetadataImage:
    (image,), opened = history.reach(leg, [offset])
    if opened is not None:
        raise Refused(
            f"offset {offset} is inside {name_of(opened)}: a snapshot there would cut it in two",
            hint=f"Write it as of offset {opened.begin - 1}, or behind the transaction's end.",
        )
    return image


def _troubles(trouble: Sequence[Trouble], known: int) -> list[str]:
    """What was wrong on the way. What was found while opening may lie elsewhere, but says why
    something may be missing."""
    said = [str(each) for each in trouble[:known] if not each.harmless]
    refused = [each for each in trouble[known:] if not each.harmless]
    if refused:
        said.append(f"passed over: {plural(len(refused), 'record')}; the first: {refused[0]}")
    return said


def _election(copy: Copy) -> int:
    try:
        return read_quorum_state(os.path.join(copy.path, quorum_state.NAME)).leader_epoch
    except KraftlineError:
        return -1  # a snapshot by itself has none beside it


def _time(leg: Leg, offset: int) -> int:
    # The batch's own time, as Kafka has it, be the one before it newer.
    if leg.batches and offset >= leg.batches[0].base_offset:
        return leg.batches[min(leg.batch_at(offset), len(leg.batches) - 1)].time
    return leg.first_time
