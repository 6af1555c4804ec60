# SPDX-License-Identifier: Apache-2.0
"""Reads rows of samples from Parquet files, and writes rows of results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from polyop.batch.errors import BatchError, SampleError

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError as error:
    raise BatchError("Parquet needs pyarrow", "pip install 'polyop[batch]'") from error

_ROWS = 64  # per read and write
_BYTES = 64 << 20  # per write
SHAPE = ".shape"  # suffix of the column with the shapes of a column of flat lists


def rows(path: Path) -> Iterator[tuple[Sequence[str], Callable[[str], Any]]]:
    """Yields for each row the names of columns, and a function that returns a value by name: bytes, a number or an
    array."""
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=_ROWS):
                columns = {name: _plain(batch.column(i)) for i, name in enumerate(batch.schema.names)}
                names = [name for name in columns if not name.endswith(SHAPE)]
                for i in range(batch.num_rows):
                    yield names, partial(_value, columns, i)
    except (pa.ArrowException, OSError) as error:
        raise SampleError(f"'{path}' is not a readable Parquet file: {error}") from None


def _plain(column: pa.Array) -> pa.Array:
    """Returns the storage of a tensor extension type, or the bytes of a struct with bytes, as in image data sets."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_struct(column.type) and "bytes" in [field.name for field in column.type]:
        column = column.field("bytes")
    return column


def _value(columns: Mapping[str, pa.Array], i: int, name: str) -> Any:
    scalar = columns[name][i]
    if not scalar.is_valid:
        raise SampleError(f"row {i}: '{name}': expected a value, got null")
    if not isinstance(scalar, pa.ListScalar):
        return scalar.as_py()
    depth, values = 0, scalar.values
    while pa.types.is_list(values.type) or pa.types.is_fixed_size_list(values.type):
        depth, values = depth + 1, values.flatten()
    array = np.asarray(scalar.as_py()) if depth else values.to_numpy(zero_copy_only=False)
    shape = columns.get(name + SHAPE)
    return array.reshape(shape[i].as_py()) if shape is not None else array


class Writer:
    """Writes results as rows: the index of the input row, and for each output a flat list and its shape."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: pq.ParquetWriter | None = None
        self._pending: list[tuple[int, Mapping[str, np.ndarray]]] = []
        self._bytes = 0

    def add(self, index: int, key: str, result: Mapping[str, np.ndarray]) -> None:
        self._pending.append((index, result))
        self._bytes += sum(array.nbytes for array in result.values())
        if len(self._pending) >= _ROWS or self._bytes >= _BYTES:
            self._flush()

    def close(self) -> None:
        self._flush()
        if self._writer is None:  # there are no rows, or all failed
            pq.write_table(pa.table({"row": pa.array([], pa.int64())}), self._path)
        else:
            self._writer.close()

    def abandon(self) -> None:
        if self._writer is not None:
            self._writer.close()

    def _flush(self) -> None:
        if not self._pending:
            return
        columns: dict[str, pa.Array] = {"row": pa.array([row for row, _ in self._pending], pa.int64())}
        for name in self._pending[0][1]:
            arrays = [results[name] for _, results in self._pending]
            columns[name] = _lists([a.ravel() for a in arrays], pa.from_numpy_dtype(arrays[0].dtype))
            columns[name + SHAPE] = _lists([np.array(a.shape, np.int64) for a in arrays], pa.int64())
        table = pa.table(columns)
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._path, table.schema)
        self._writer.write_table(table)
        self._pending, self._bytes = [], 0


def _lists(arrays: Sequence[np.ndarray], kind: pa.DataType) -> pa.Array:
    offsets = np.cumsum([0, *(len(a) for a in arrays)])
    values = pa.array(np.concatenate(arrays), kind)
    if offsets[-1] < 1 << 31:
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)
    return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), values)
