"""Lists as numbers: rows repeat the same few lists, and numbers are compared at no cost.

The same list has the same code in every column of a chunk. What is to be known of a list is worked
out once for each code.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Ints: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]
Ints2: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.int64]]

NULL: Final = -1
PAD: Final = int(np.iinfo(np.int64).min)  # in no list


class Lists:
    """Lists of numbers by their codes."""

    def __init__(self, values: list[tuple[int, ...]]) -> None:
        self.values = values
        self._codes = {value: code for code, value in enumerate(values)}
        self._matrix: Ints2 | None = None

    def code(self, value: tuple[int, ...]) -> int:
        """The code of a list, a new one where it has none yet."""
        found = self._codes.get(value)
        if found is None:
            found = self._codes[value] = len(self.values)
            self.values.append(value)
        return found

    def sizes(self) -> Ints:
        return np.array([len(each) for each in self.values] or [0], np.int64)

    def firsts(self, otherwise: int) -> Ints:
        """The first of each list, which for replicas is the preferred leader."""
        return np.array([each[0] if each else otherwise for each in self.values] or [0], np.int64)

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
    values = [
        tuple(np.frombuffer(each, np.int32).tolist()) for each in encoded.dictionary.to_pylist()
    ]
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


def texts_as_numbers(column: pa.ListArray) -> tuple[pa.ListArray, list[str]]:
    """A list of texts as one of numbers, and the text of each number."""
    encoded = column.values.dictionary_encode()
    numbers = pa.ListArray.from_arrays(column.offsets, encoded.indices, mask=column.is_null())
    return numbers, encoded.dictionary.to_pylist()


def interned(*columns: Ints) -> Ints:
    """One number for each combination of numbers: 0, 1, 2, … in the order of their coming."""
    code = _dense(columns[0])
    for column in columns[1:]:
        other = _dense(column)
        width = int(other.max(initial=0)) + 1
        code = _dense(code * width + other)
    return code


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
