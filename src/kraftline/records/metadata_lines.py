"""Metadata batches as JSON lines, one per record, without passing through objects.

The kernel writes plain batches; what it stops before (control and compressed batches, records out
of the ordinary) the caller writes in the same form through the object codec.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

from kraftline import kernels
from kraftline.records.metadata_program import metadata_program

_kernel = kernels.load("kraftline.records._typed")

# What stands between the numbers of a line, in their order; then the two truth values.
_PIECES = (
    b',"offset":',
    b',"timestamp":',
    b',"timestampType":"CreateTime","leaderEpoch":',
    b',"codec":"none","producerId":',
    b',"producerEpoch":',
    b',"sequence":-1,"isTransactional":false,"isControl":false,"key":null,"value":"',
    b'","headers":[],"payload":',
    b"true,",
    b"false,",
)
_TEXT = b"".join(_PIECES)
_TEXT_AT = array("q", [sum(map(len, _PIECES[:i])) for i in range(len(_PIECES))])
_ROOM = 4 * 1024 * 1024
_DEPTH = 16


class Lines(NamedTuple):
    """Finished lines, good until the next call, and the position in the buffer reached by them."""

    text: memoryview
    end: int


class MetadataLines:
    """Writes the records of one file; `prefix` is the line up to the batch's position."""

    def __init__(self, prefix: bytes) -> None:
        self._prefix = prefix
        self._out = memoryview(bytearray(_ROOM))
        self._stack = array("q", bytes(8 * 4 * _DEPTH))

    def write(self, buffer: bytes | memoryview, start: int, end: int, file_position: int) -> Lines:
        """Lines for the batches from `start` on, as far as they are plain and there is room.

        The checksums were checked before. When nothing could be written, the batch at `start`
        is not plain, or too large for this way.
        """
        program = metadata_program()
        reached, size = _kernel.metadata_lines(
            buffer,
            start,
            end,
            file_position,
            self._prefix,
            program.code,
            program.entries,
            program.types,
            program.versions,
            program.names,
            program.name_at,
            program.defaults,
            _TEXT,
            _TEXT_AT,
            self._out,
            self._stack,
        )
        return Lines(self._out[:size], reached)
