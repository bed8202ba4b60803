"""The frame around a metadata record's value: frame version, type, version, then the message.

The three are unsigned varints, and the message goes to the last byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kraftline.errors import Corrupt, NotRepresentable, Unsupported
from kraftline.schema.codec import check_version, reader, writer
from kraftline.schema.jsonform import Json, from_json, json_reader
from kraftline.schema.metadata.registry import TYPE_IDS, TYPE_NAMES, record_class
from kraftline.schema.metadata.table import RECORDS
from kraftline.schema.types import Message
from kraftline.schema.wire import Reader, Writer

FRAME_VERSION = 1

# By type << 16 | version, as Reader.metadata_frame gives it.
_readers: dict[int, Callable[[Reader], Message]] = {}
_json_readers: dict[int, tuple[str, Callable[[Reader], Json]]] = {}


class RecordReader:
    """Reads many records out of one buffer, a batch's records for example."""

    __slots__ = ("_in",)

    def __init__(self, data: bytes) -> None:
        self._in = Reader(data)

    def read(self, starts: Iterable[int], ends: Iterable[int]) -> list[Message]:
        """The records whose values lie from each of `starts` up to each of `ends`."""
        return self._in.metadata_records(starts, ends, _readers, _reader_of)

    def read_json(self, start: int, end: int) -> Json:
        """The same as Kafka's tools print it: type, version, data."""
        source = self._in
        frame = source.metadata_frame(start, end)
        known = _json_readers.get(frame)
        if known is None:
            read = json_reader(*_class_and_version(source, frame))
            known = _json_readers[frame] = TYPE_NAMES[frame >> 16], read
        name, read = known
        data = read(source)
        if source.pos != end:
            source.finish()
        return {"type": name, "version": frame & 0xFFFF, "data": data}


def decode_record(value: bytes) -> tuple[Message, int]:
    """The record that a value holds, and its version."""
    source = Reader(value)
    frame = source.metadata_frame(0, len(value))
    read = _readers.get(frame)
    if read is None:
        read = _reader_of(source, frame)
    message = read(source)
    source.finish()
    return message, frame & 0xFFFF


def record_json(value: bytes) -> Json:
    """The record that a value holds as `{"type", "version", "data"}`."""
    return RecordReader(value).read_json(0, len(value))


def record_from_json(obj: Json) -> tuple[Message, int]:
    """The record, and its version, that `{"type", "version", "data"}` says."""
    if not isinstance(obj, dict) or obj.keys() != {"type", "version", "data"}:
        raise Corrupt("a record is an object with type, version and data")
    name, version = obj["type"], obj["version"]
    if name not in TYPE_IDS:
        raise Unsupported(f"metadata record type {name} is not known")
    if type(version) is not int:
        raise Corrupt(f"{name}: a version is a number, not {version!r}")
    return from_json(record_class(TYPE_IDS[name]), obj["data"], version), version


def encode_record(message: Message, version: int) -> bytes:
    """The value for a record of this version."""
    key = message.SPEC.key
    if key not in RECORDS or record_class(key) is not type(message):
        raise NotRepresentable(f"{type(message).__name__} is not a metadata record")
    out = Writer()
    out.uvarint(FRAME_VERSION)
    out.uvarint(key)
    out.uvarint(version)
    writer(type(message), version)(out, message)
    return out.getvalue()


def _reader_of(source: Reader, frame: int) -> Callable[[Reader], Message]:
    read = _readers[frame] = reader(*_class_and_version(source, frame))
    return read


def _class_and_version(source: Reader, frame: int) -> tuple[type[Message], int]:
    if frame < 0:
        raise Unsupported(
            f"a metadata record in a frame other than version {FRAME_VERSION}",
            position=source.pos,
            hint="the KRaft preview of Kafka 2.8 wrote version 0; is this a metadata log at all?",
        )
    try:
        cls, version = record_class(frame >> 16), frame & 0xFFFF
        check_version(cls, version)
    except Unsupported as error:
        raise error.at(position=source.pos) from None
    return cls, version
