"""The frame around a metadata record's value: frame version, type, version, then the message.

The three are unsigned varints, and the message goes to the last byte.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from kraftline.errors import NotRepresentable, Unsupported
from kraftline.schema.codec import reader, writer
from kraftline.schema.metadata.registry import record_class
from kraftline.schema.metadata.table import RECORDS
from kraftline.schema.types import Message
from kraftline.schema.wire import Reader, Writer

FRAME_VERSION = 1

_readers: dict[int, Callable[[Reader], Message]] = {}


class RecordReader:
    """Reads many records out of one buffer, a batch's records for example."""

    __slots__ = ("_in",)

    def __init__(self, data: bytes) -> None:
        self._in = Reader(data)

    def read(self, start: int, end: int) -> tuple[Message, int]:
        """The record whose value lies at `start` up to `end`, and its version."""
        source = self._in
        source.reset(start, end)
        frame = source.metadata_frame()
        read = _readers.get(frame)
        if read is None:
            read = _reader(source, frame)
        message = read(source)
        if source.pos != end:
            source.finish()
        return message, frame & 0xFFFF


def decode_record(value: bytes) -> tuple[Message, int]:
    """The record that a value holds, and its version."""
    return RecordReader(value).read(0, len(value))


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


def _reader(source: Reader, frame: int) -> Callable[[Reader], Message]:
    if frame < 0:
        refuse_frame(source)
    try:
        read = reader(record_class(frame >> 16), frame & 0xFFFF)
    except Unsupported as error:
        raise error.at(position=source.pos) from None
    _readers[frame] = read
    return read


def refuse_frame(source: Reader) -> NoReturn:
    """Says what is wrong with a frame version other than 1, which `source` has just read."""
    raise Unsupported(
        f"a metadata record in a frame other than version {FRAME_VERSION}",
        position=source.pos,
        hint="the KRaft preview of Kafka 2.8 wrote version 0; is this a metadata log at all?",
    )
