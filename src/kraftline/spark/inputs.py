"""From the paths that a person gives to Kafka's files: what each is, whose, how large, how old.

Paths are local, globs, or URLs of any storage that fsspec knows. Only names, sizes and
`meta.properties` are looked at here; what is in the files, tasks read. fsspec takes long to import,
and is, once it has something to open.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from enum import StrEnum
from typing import Any, BinaryIO, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from kraftline.errors import BadData, KraftlineError, NotKafka
from kraftline.storage import meta_properties, quorum_state
from kraftline.storage.batch_search import HEADER, implausible
from kraftline.storage.files import unreadable
from kraftline.storage.names import (
    BOOTSTRAP,
    METADATA_TOPIC,
    FileKind,
    PartitionState,
    SnapshotState,
    Working,
    parse_partition,
    parse_segment_file,
    parse_snapshot,
)

# A directory of hosts, of nodes, of log directories: further down nobody keeps them.
_DEPTH: Final = 3


class InputKind(StrEnum):
    SEGMENT = "segment"
    SNAPSHOT = "snapshot"


class InputFile(Struct, frozen=True, kw_only=True):
    """A segment or a metadata snapshot.

    `path` is local, or a URL; `modified` is in microseconds since 1970, 0 where the storage does
    not say. `offset` is a segment's base offset or a snapshot's end offset, `epoch` a snapshot's.
    `topic` is None where the directory's name is none of Kafka's; `cluster_id` and `node` are,
    where there is no meta.properties. `newest`: the last segment of its directory, which may
    still be written.
    """

    path: str
    kind: InputKind
    size: int
    modified: int
    directory: str
    offset: int
    epoch: int = -1
    topic: str | None = None
    partition: int = 0
    newest: bool = False
    has_index: bool = False
    cluster_id: str | None = None
    node: int | None = None

    @property
    def is_metadata(self) -> bool:
        return self.topic in (None, METADATA_TOPIC)


def find_inputs(paths: Iterable[str]) -> list[InputFile]:
    """Every segment and whole snapshot behind the paths, each once, in the order of their paths.

    A path may be a segment, a snapshot, a partition's directory, a log directory, or one that
    holds several of these. NotKafka where there is nothing of Kafka's in one of them.
    """
    found: dict[str, InputFile] = {}
    for path in paths:
        for place in _expand(path):
            files = _look(place, _DEPTH)
            if not files:
                raise NotKafka(
                    f"{place.url}: nothing of Kafka's in it; give a directory named in log.dirs, a "
                    "partition's directory, a segment or a snapshot"
                )
            found.update({file.path: file for file in files})
    if not found:
        raise NotKafka("no path was given; name a directory of Kafka's")
    return [found[path] for path in sorted(found)]


def places_of(paths: Iterable[str]) -> frozenset[str]:
    """What the paths name, as files have it in front of theirs."""
    return frozenset(place.url.rstrip("/") for path in paths for place in _expand(path))


def of_clusters(files: Sequence[InputFile], cluster_id: str | None) -> list[InputFile]:
    """The same files, each with a cluster: that of its meta.properties, else the one that is
    given. NotKafka where there is neither."""
    for file in files:
        if file.cluster_id is None and cluster_id is None:
            raise NotKafka(
                f"{file.directory}: there is no {meta_properties.NAME} that says which cluster it "
                "is of; name it with --cluster-id (the option clusterId of a source)"
            )
    return [
        file if file.cluster_id is not None else replace(file, cluster_id=cluster_id)
        for file in files
    ]


def is_local(path: str) -> bool:
    return "://" not in path


@contextmanager
def opened(path: str) -> Iterator[BinaryIO]:
    """An input for reading, wherever it is; NotKafka, in plain words, where that fails."""
    import fsspec

    try:
        with fsspec.open(path, "rb") as file:
            yield file
    except OSError as error:
        raise unreadable(path, error) from error


@contextmanager
def _in_words(path: str) -> Iterator[None]:
    """What goes wrong when a storage is asked for files: its driver raises what it likes."""
    try:
        yield
    except ImportError as error:
        raise KraftlineError(f"{path}: {error}") from error
    except OSError as error:
        raise unreadable(path, error) from error
    except Exception as error:
        if is_local(path):
            raise
        raise NotKafka(f"{path}: {error}") from error


class _Entry(NamedTuple):
    name: str
    path: str
    is_directory: bool
    size: int
    modified: int


class _Place:
    """A path in a file system, and what a person would call it."""

    def __init__(self, system: Any, path: str, chain: str) -> None:
        self.system, self.path, self._chain = system, path, chain

    @property
    def url(self) -> str:
        if "file" in _protocols(self.system):
            return self.path
        return f"{self.system.unstrip_protocol(self.path)}{self._chain}"

    @property
    def name(self) -> str:
        return posixpath.basename(self.path.rstrip("/"))

    def parent(self) -> _Place:
        return self.at(posixpath.dirname(self.path.rstrip("/")))

    def at(self, path: str) -> _Place:
        return _Place(self.system, path, self._chain)

    def entry(self) -> _Entry:
        with _in_words(self.url):
            return _entry(self.system.info(self.path))

    def entries(self) -> dict[str, _Entry]:
        with _in_words(self.url):
            listed = map(_entry, self.system.ls(self.path, detail=True))
            return {entry.name: entry for entry in listed}

    def read(self, size: int | None = None) -> bytes:
        with _in_words(self.url):
            found: bytes = self.system.cat_file(self.path, start=0, end=size)
            return found


def _protocols(system: Any) -> tuple[str, ...]:
    said = system.protocol
    return (said,) if isinstance(said, str) else tuple(said)


def _entry(info: dict[str, Any]) -> _Entry:
    path = info["name"]
    is_directory = info["type"] == "directory"
    name = posixpath.basename(path.rstrip("/"))
    return _Entry(name, path, is_directory, info.get("size") or 0, _modified(info))


def _modified(info: dict[str, Any]) -> int:
    for key in ("mtime", "LastModified", "last_modified", "updated"):
        match info.get(key):
            case int() | float() as seconds:
                return round(seconds * 1_000_000)
            case datetime() as when:
                return round(when.timestamp() * 1_000_000)
            case str() as text:
                return round(datetime.fromisoformat(text).timestamp() * 1_000_000)
    return 0


def _expand(path: str) -> list[_Place]:
    import fsspec

    if not path:
        raise NotKafka("a path is empty; name a directory of Kafka's")
    with _in_words(path):
        system, root = fsspec.core.url_to_fs(path)
    _, colons, chain = path.partition("::")
    place = _Place(system, root, colons + chain)
    if not any(letter in root for letter in "*?["):
        return [place]
    with _in_words(path):
        found = sorted(system.glob(root))
    if not found:
        raise NotKafka(f"{path}: nothing is there by such a name")
    return [place.at(each) for each in found]


class _Owner(NamedTuple):
    cluster_id: str | None
    node: int | None


_NOBODY: Final = _Owner(None, None)


def _look(place: _Place, depth: int, owner: _Owner | None = None) -> list[InputFile]:
    entry = place.entry()
    if not entry.is_directory:
        return [_single(place, entry)]
    entries = place.entries()
    if any(_file_kind(name) for name in entries):
        return _partition(place, entries, owner or _owner(place.parent()))
    if meta_properties.NAME in entries or BOOTSTRAP in entries:
        return _log_directory(place, entries)
    if depth == 0:
        return []
    below = [place.at(entry.path) for _, entry in sorted(entries.items()) if _is_alive(entry)]
    return [file for each in below for file in _look(each, depth - 1, _NOBODY)]


def _is_alive(entry: _Entry) -> bool:
    """A directory, and not one of a partition that is on its way out or not in use yet."""
    name = parse_partition(entry.name)
    return entry.is_directory and (name is None or name.state is PartitionState.NORMAL)


def _single(place: _Place, entry: _Entry) -> InputFile:
    directory = place.parent()
    owner = _owner(directory.parent())
    kind = _file_kind(entry.name)
    if kind is not None:
        found = _partition(directory, {entry.name: entry}, owner)
        if found:
            return found[0]
    head = place.read(HEADER.size)
    if len(head) == HEADER.size:
        offset, length, _, magic = HEADER.unpack(head)
        if implausible(offset, length, magic) is None:
            is_snapshot = entry.name.endswith(".checkpoint")
            return _described(
                place,
                entry,
                directory,
                owner,
                InputKind.SNAPSHOT if is_snapshot else InputKind.SEGMENT,
                0 if is_snapshot else offset,
                epoch=0 if is_snapshot else -1,
                newest=not is_snapshot,
            )
    raise NotKafka(
        f"{place.url}: not a segment (20 digits and .log) nor a metadata snapshot (20 digits, a "
        "dash, 10 digits and .checkpoint)"
    )


def _log_directory(place: _Place, entries: dict[str, _Entry]) -> list[InputFile]:
    owner = _owner(place, entries)
    found: list[InputFile] = []
    for name, entry in sorted(entries.items()):
        if parse_partition(name) is not None and _is_alive(entry):
            directory = place.at(entry.path)
            found += _partition(directory, directory.entries(), owner)
    if BOOTSTRAP in entries and not any(file.is_metadata for file in found):
        # Formatted and never started: a cluster would begin with these records.
        entry = entries[BOOTSTRAP]
        file = place.at(entry.path)
        found.append(_described(file, entry, place, owner, InputKind.SNAPSHOT, 0, epoch=0))
    return found


def _owner(place: _Place, entries: dict[str, _Entry] | None = None) -> _Owner:
    """What meta.properties says, if it is in the directory."""
    if entries is None:
        try:
            entries = place.entries()
        except NotKafka:
            return _NOBODY
    entry = entries.get(meta_properties.NAME)
    if entry is None:
        return _NOBODY
    file = place.at(entry.path)
    try:
        meta = meta_properties.read_meta_properties(file.read())
    except BadData as error:
        raise error.at(file=file.url) from None
    return _Owner(meta.cluster_id, meta.node_id)


def _file_kind(name: str) -> InputKind | None:
    segment = parse_segment_file(name)
    if segment is not None:
        whole = segment.kind is FileKind.LOG and segment.working is Working.NONE
        return InputKind.SEGMENT if whole else None
    snapshot = parse_snapshot(name)
    if snapshot is not None and snapshot.state is SnapshotState.WHOLE:
        return InputKind.SNAPSHOT
    return None


def _partition(place: _Place, entries: dict[str, _Entry], owner: _Owner) -> list[InputFile]:
    found: list[InputFile] = []
    known = parse_partition(place.name) is not None
    for name, entry in entries.items():
        file = place.at(entry.path)
        segment, snapshot = parse_segment_file(name), parse_snapshot(name)
        match _file_kind(name):
            case InputKind.SEGMENT if segment is not None:
                index = name.removesuffix(FileKind.LOG.value) + FileKind.OFFSET_INDEX.value
                described = _described(file, entry, place, owner, InputKind.SEGMENT, segment.offset)
                found.append(replace(described, has_index=index in entries))
            case InputKind.SNAPSHOT if snapshot is not None:
                id = snapshot.id
                found.append(
                    _described(
                        file, entry, place, owner, InputKind.SNAPSHOT, id.end_offset, epoch=id.epoch
                    )
                )
    if not known and quorum_state.NAME in entries:
        found = [replace(file, topic=METADATA_TOPIC) for file in found]
    last = max((f.offset for f in found if f.kind is InputKind.SEGMENT), default=-1)
    return [
        replace(file, newest=True)
        if file.kind is InputKind.SEGMENT and file.offset == last
        else file
        for file in found
    ]


def _described(
    file: _Place,
    entry: _Entry,
    directory: _Place,
    owner: _Owner,
    kind: InputKind,
    offset: int,
    *,
    epoch: int = -1,
    newest: bool = False,
) -> InputFile:
    name = parse_partition(directory.name)
    topic = None if name is None else name.topic
    if kind is InputKind.SNAPSHOT:
        topic = METADATA_TOPIC
    return InputFile(
        path=file.url,
        kind=kind,
        size=entry.size,
        modified=entry.modified,
        directory=directory.url,
        offset=offset,
        epoch=epoch,
        topic=topic,
        partition=0 if name is None or kind is InputKind.SNAPSHOT else name.partition,
        newest=newest,
        cluster_id=owner.cluster_id,
        node=owner.node,
    )
