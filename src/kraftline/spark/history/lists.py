"""Lists as numbers: rows repeat the same few lists, and numbers are compared at no cost.

The same list has the same code in every column of a chunk. What is to be known of a list is worked
out once for each code.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, pairwise
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Ints: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]
Ints2: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.int64]]
Bools2: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.bool_]]

NULL: Final = -1
_NEAR: Final = 1 << 24
_WIDEST: Final = 1 << 62
PAD: Final = int(np.iinfo(np.int64).min)  # in no list


class Lists:
    """Lists of numbers by their codes."""

    def __init__(self, values: list[tuple[int, ...]]) -> None:
        self.values = values
        self._codes = {value: code for code, value in enumerate(values)}
        self._sizes = np.zeros(0, np.int64)
        self._matrix: Ints2 | None = None

    def code(self, value: tuple[int, ...]) -> int:
        """The code of a list, a new one where it has none yet."""
        found = self._codes.get(value)
        if found is None:
            found = self._codes[value] = len(self.values)
            self.values.append(value)
        return found

    def sizes(self) -> Ints:
        if len(self._sizes) < max(len(self.values), 1):
            self._sizes = np.array([len(each) for each in self.values] or [0], np.int64)
        return self._sizes

    def firsts(self, otherwise: int) -> Ints:
        """The first of each list, which for replicas is the preferred leader."""
        first = self.matrix()[:, 0]
        return np.where(first == PAD, otherwise, first)

    def matrix(self) -> Ints2:
        """The lists as rows, filled up with PAD."""
        if self._matrix is None or len(self._matrix) < len(self.values):
            sizes = self.sizes()
            width = max(int(sizes.max()), 1)
            found = np.full((len(sizes), width), PAD, np.int64)
            found[np.arange(width) < sizes[:, None]] = np.fromiter(
                chain.from_iterable(self.values), np.int64
            )
            self._matrix = found
        return self._matrix

    def texts(self) -> pa.Array:
        """`1, 2, 3` for each list."""
        return pa.array([", ".join(map(str, each)) for each in self.values], pa.string())

    def arrow(self) -> pa.Array:
        return pa.array(self.values, pa.list_(pa.int32()))


def coded(columns: Mapping[str, pa.ListArray]) -> tuple[dict[str, Ints], Lists]:
    """The codes of lists of 32-bit numbers, NULL for null, and what they stand for."""
    # A list of numbers is a piece of memory like any other: as bytes, it can be looked up.
    pieces = [_as_bytes(column) for column in columns.values()]
    encoded = pa.concat_arrays(pieces).dictionary_encode()
    codes = encoded.indices.fill_null(NULL).to_numpy().astype(np.int64)
    values = _tuples(encoded.dictionary, np.int32)
    found, at = {}, 0
    for name, column in columns.items():
        found[name] = codes[at : at + len(column)]
        at += len(column)
    return found, Lists(values)


def _as_bytes(column: pa.ListArray) -> pa.Array:
    offsets = column.offsets.to_numpy().astype(np.int32) * 4
    numbers = column.values.to_numpy()
    null = column.is_null()
    data = pa.BinaryArray.from_buffers(
        pa.binary(), len(column), [None, pa.py_buffer(offsets), pa.py_buffer(numbers)]
    )
    return pc.if_else(null, pa.scalar(None, pa.binary()), data) if column.null_count else data


def _tuples(pieces: pa.BinaryArray, kind: type[np.signedinteger]) -> list[tuple[int, ...]]:
    """Pieces of memory as lists of numbers."""
    _, offsets, data = pieces.buffers()
    size = np.dtype(kind).itemsize
    ends = (np.frombuffer(offsets, np.int32)[: len(pieces) + 1] // size).tolist()
    flat = np.frombuffer(data, kind).tolist() if data is not None and data.size else []
    return [tuple(flat[start:end]) for start, end in pairwise(ends)]


def texts_as_numbers(column: pa.ListArray) -> tuple[pa.ListArray, list[str]]:
    """A list of texts as one of numbers, and the text of each number."""
    encoded = column.values.dictionary_encode()
    numbers = pa.ListArray.from_arrays(column.offsets, encoded.indices, mask=column.is_null())
    return numbers, encoded.dictionary.to_pylist()


def interned(*columns: Ints) -> Ints:
    """One number for each combination of numbers: 0, 1, 2, … in the order of their coming."""
    code, width = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        other, more = _packed(column)
        if width > _WIDEST // more:
            code, width = _packed(_dense(code))
        code, width = code * more + other, width * more
    return _dense(code)


def _packed(column: Ints) -> tuple[Ints, int]:
    """Numbers from 0 on, made dense where they are far apart; and how many there may be."""
    least, most = (int(column.min()), int(column.max())) if len(column) else (0, 0)
    if most - least < _NEAR:
        return column - least, most - least + 1
    found = _dense(column)
    return found, int(found.max()) + 1


def _dense(column: Ints) -> Ints:
    encoded = pa.array(column).dictionary_encode()
    found: Ints = encoded.indices.to_numpy().astype(np.int64)
    return found


def firsts_of(codes: Ints) -> Ints:
    """For each code 0, 1, 2, … in the order of their coming: where it comes first."""
    if not len(codes):
        return codes
    top = np.maximum.accumulate(codes)
    new = np.empty(len(codes), bool)
    new[0] = True
    new[1:] = top[1:] > top[:-1]
    return np.flatnonzero(new)


def rows_as_lists(lists: Lists, matrix: Ints2, chosen: Bools2) -> Ints:
    """The codes of what is chosen of each row. Mostly that is little, and much the same."""
    counts = chosen.sum(axis=1)
    found = np.full(len(matrix), lists.code(()))
    some = np.flatnonzero(counts)
    if not len(some):
        return found
    # What is chosen goes first, the rest is filled up: then rows are pieces of memory.
    order = np.argsort(~chosen[some], axis=1, kind="stable")
    packed = np.take_along_axis(np.where(chosen[some], matrix[some], PAD), order, axis=1)
    width = int(counts.max())
    pieces = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(8 * width),
        len(some),
        [None, pa.py_buffer(np.ascontiguousarray(packed[:, :width]))],
    ).dictionary_encode()
    rows = np.frombuffer(b"".join(pieces.dictionary.to_pylist()), np.int64).reshape(-1, width)
    codes = [lists.code(tuple([n for n in row if n != PAD])) for row in rows.tolist()]
    found[some] = np.array(codes, np.int64)[pieces.indices.to_numpy()]
    return found
