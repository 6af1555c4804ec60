# SPDX-License-Identifier: Apache-2.0
"""Reads samples from files and from shards of many."""

from __future__ import annotations

import io
import math
import tarfile
import threading
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from polyop.batch import images, video
from polyop.batch.errors import BatchError, SampleError, UnreadableError
from polyop.batch.images import Format, ImageOptions
from polyop.batch.interface import Model, Tensor
from polyop.batch.memory import Memory
from polyop.batch.runner import Arrays
from polyop.batch.sources import ARRAYS, IMAGES, VIDEOS, Task

_FILES = (*IMAGES, *ARRAYS)  # of shards
_NPY, _ZIP = b"\x93NUMPY", b"PK\x03\x04"
_PARSING = threading.Lock()
"""NumPy parses the header of an array as Python. Some releases of Python 3.11 cannot do this in several threads."""


@dataclass(frozen=True)
class Sample:
    """One sample of a task: its position, and a function that decodes it in any thread."""

    index: int
    key: str
    decode: Callable[[], Arrays]
    size: int = 0  # bytes that `decode` holds


class Reader:
    """Reads the values of a model's free inputs, those without a constant, from files."""

    def __init__(
        self, model: Model, stream: str, constants: Sequence[str], options: ImageOptions, memory: int = 0
    ) -> None:
        """stream: the input that a file with one value is for; "" if the model has one free input. memory: the limit
        for the contents of a sample's files in bytes; 0: the default of Memory."""
        self.model = model
        self.free = [name for name in model.inputs if name not in constants]
        self.stream = model.input(stream).name if stream else self.free[0] if len(self.free) == 1 else ""
        self._options, self._memory = options, memory
        self._formats = {n: images.format_of(t, model.metadata, options) for n, t in model.inputs.items()}

    def output_format(self, name: str) -> Format:
        return images.format_of(self.model.outputs[name], self.model.metadata, self._options)

    def samples(self, task: Task) -> Iterator[Sample]:
        """Yields the samples of a file or shard, in order. Reads lazily."""
        if task.kind == ".tar":
            yield from _of_tar(task.source, self._of_members)
        elif task.kind == ".parquet":
            yield from self._of_parquet(task.source)
        elif task.kind in VIDEOS:
            for index, pixels in enumerate(video.frames(task.source)):
                yield Sample(index, video.key(index), partial(self.of_frame, pixels, f"frame {index}"), pixels.nbytes)
        else:
            yield Sample(0, task.source.stem, lambda: self.of_file(task.source.read_bytes(), task.source.name))

    def of_file(self, data: bytes, name: str) -> Arrays:
        """Returns a sample from a file's content. The extension of `name` determines the format. Raises SampleError."""
        return self._complete(self.arrays(data, name), name)

    def arrays(self, data: bytes, name: str) -> Arrays:
        """Like of_file, but some inputs may lack a value."""
        return self._arrays(data, name, self.stream, Memory(self._memory))

    def of_frame(self, pixels: np.ndarray, source: str) -> Arrays:
        """Returns a sample from the pixels [H, W, 3] of a video's frame. Raises SampleError."""
        if not self.stream:
            raise SampleError(f"{source}: expected values for the inputs {', '.join(self.free)}, got one value")
        return self._complete({self.stream: self._image(self.stream, pixels, source)}, source)

    def _arrays(self, data: bytes, name: str, stream: str, memory: Memory) -> Arrays:
        """Returns the arrays of a .npz file that are inputs; for other files the value of the input `stream`."""
        kind = Path(name).suffix.lower()
        if kind == ".npz":
            return {n: self.model.inputs[n].take(a, name) for n, a in read_npz(data, name, self.free, memory).items()}
        if not stream:
            raise SampleError(f"{name}: expected values for the inputs {', '.join(self.free)}, got one value")
        tensor = self.model.inputs[stream]
        if kind in IMAGES:
            return {stream: self._image(stream, images.read(data, name, memory), name)}
        elif kind == ".bin":
            array = _points(data, tensor, name)
        else:
            array = read_npy(data, name)
        return {stream: tensor.take(array, name)}

    def of_cell(self, name: str, value: Any, source: str) -> np.ndarray:
        """Returns an input's value from a table's cell: the bytes of an image or .npy file, pixels [H, W, 3] for an
        image input, or an array. The array may lack leading dimensions of 1."""
        tensor = self.model.inputs[name]
        if isinstance(value, (bytes, bytearray, memoryview)):
            data = bytes(value)
            if data.startswith(_NPY):
                return tensor.take(read_npy(data, source), source)
            return self._image(name, images.read(data, source, Memory(self._memory)), source)
        array = np.asarray(value)
        if array.dtype == object:
            raise SampleError(
                f"input '{name}': expected {tensor}, got lists of different lengths or no numbers from {source}"
            )
        if array.dtype == np.uint8 and array.ndim == 3 and array.shape[2] == 3 and len(tensor.shape) == 4:
            return self._image(name, array, source)
        if tensor.shape and array.ndim == 1 and array.ndim != len(tensor.shape):
            array = _unflattened(array, tensor)
        while array.ndim < len(tensor.shape):
            array = array[None]
        return tensor.take(array, source)

    def _image(self, name: str, pixels: np.ndarray, source: str) -> np.ndarray:
        return images.to_input(pixels, self.model.inputs[name], self._formats[name], self._options, source)

    def _complete(self, arrays: Arrays, source: str) -> Arrays:
        missing = [f"{n}: {self.model.inputs[n]}" for n in self.free if n not in arrays]
        if missing:
            raise SampleError(f"{source}: expected a value for {', '.join(missing)}, got none")
        return arrays

    def _of_members(self, members: Mapping[str, bytes], key: str) -> Arrays:
        """Returns a sample of a WebDataset shard. Its files are KEY.INPUT.npy, KEY.npz, or KEY.jpg, KEY.npy, … for the
        only input. Ignores other files, such as labels."""
        arrays: Arrays = {}
        memory = Memory(self._memory)
        for extension, data in members.items():
            name, _, kind = extension.rpartition(".")
            stream = name or self.stream
            if f".{kind.lower()}" in _FILES and (name in self.free or (not name and (stream or kind == "npz"))):
                arrays |= self._arrays(data, f"{key}.{extension}", stream, memory)
        return self._complete(arrays, key)

    def _of_parquet(self, path: Path) -> Iterator[Sample]:
        from polyop.batch.tables import rows

        for index, (columns, row) in enumerate(rows(path)):
            key = f"{path.name} row {index}"
            yield Sample(index, str(index), partial(self.of_row, columns, row, key))

    def of_row(self, columns: Sequence[str], row: Callable[[str], Any], source: str) -> Arrays:
        """Returns a sample from a row of a table. Columns have the inputs' names, or one column is the only input."""
        named = self.taken(columns)
        return self._complete(
            {n: self.of_cell(n, row(column), f"{source}, '{column}'") for column, n in named.items()}, source
        )

    def taken(self, columns: Sequence[str]) -> dict[str, str]:
        """Returns the inputs that the columns of a table contain, by column. Raises SampleError if there are none."""
        named = {name: name for name in self.free if name in columns}
        return named or ({_likely(columns): self.stream} if self.stream else {})


def _likely(columns: Sequence[str]) -> str:
    """Returns the column of the only input: one with a name that is common in image data sets, or the only column."""
    for name in ("image", "img", "jpg", "jpeg", "png", "bytes", "data"):
        if name in columns:
            return name
    if len(columns) == 1:
        return columns[0]
    raise SampleError(f"expected a column with an input's name, got {', '.join(columns)}")


def _of_tar(path: Path, decode: Callable[[Mapping[str, bytes], str], Arrays]) -> Iterator[Sample]:
    """Yields the samples of a tar file. Adjacent files whose names agree up to the first dot form a sample."""
    index, members = 0, dict[str, bytes]()
    key: str | None = None
    try:
        with tarfile.open(path, "r|") as archive:
            for member in archive:
                if not member.isfile():
                    continue
                if member.issparse():  # a small file with content of any size
                    raise SampleError(f"'{path}': '{member.name}': expected a file's content, got a sparse file")
                folder, slash, file = member.name.rpartition("/")
                stem, _, extension = file.partition(".")
                if key is not None and key != folder + slash + stem:
                    yield _of_members(index, key, members, decode)
                    index, members = index + 1, {}
                key = folder + slash + stem
                stream = archive.extractfile(member)
                members[extension] = stream.read() if stream else b""
    except tarfile.TarError as error:
        raise SampleError(f"'{path}' is not a readable tar file: {error}") from None
    if key is not None:
        yield _of_members(index, key, members, decode)


def _of_members(
    index: int, key: str, members: Mapping[str, bytes], decode: Callable[[Mapping[str, bytes], str], Arrays]
) -> Sample:
    return Sample(index, key, partial(decode, members, key), sum(map(len, members.values())))


def _array(data: bytes) -> np.ndarray:
    with _PARSING:
        file = io.BytesIO(data)
        version = np.lib.format.read_magic(file)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read_header(file)
        needed = math.prod(shape) * dtype.itemsize
        if needed > len(data) - file.tell():  # `read_array` would allocate first
            raise ValueError(f"expected {needed} bytes of elements, got {len(data) - file.tell()}")
        file.seek(0)
        return np.lib.format.read_array(file, allow_pickle=False)


def read_npy(data: bytes, name: str) -> np.ndarray:
    """Returns the array of a .npy file. Raises UnreadableError."""
    try:
        return _array(data)
    except (ValueError, EOFError, OSError) as error:
        raise UnreadableError(f"'{name}' is not a readable .npy file: {error}") from None


def read_npz(data: bytes, name: str, names: Collection[str], memory: Memory) -> dict[str, np.ndarray]:
    """Returns the arrays of these names that a .npz file has. Raises UnreadableError."""
    import zipfile

    if not data.startswith(_ZIP):
        raise UnreadableError(f"'{name}' is not a readable .npz file: expected a zip archive")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {m.filename.removesuffix(".npy"): m for m in archive.infolist()}
            taken = {n: member for n, member in members.items() if n in names}
            memory.take(name, sum(member.file_size for member in taken.values()), len(data))
            return {n: _array(archive.read(member)) for n, member in taken.items()}
    except UnreadableError:
        raise
    except (ValueError, EOFError, OSError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise UnreadableError(f"'{name}' is not a readable .npz file: {error}") from None


def _points(data: bytes, tensor: Tensor, name: str) -> np.ndarray:
    """Returns points from a file of float32 without a header, as in LiDAR data sets. The input's last dimension is the
    number of values per point."""
    width = tensor.shape[-1] if tensor.shape else None
    if not isinstance(width, int) or width < 1:
        raise SampleError(f"'{name}': expected a fixed last dimension of input '{tensor.name}', got {tensor}")
    if len(data) % (4 * width):
        raise SampleError(f"'{name}': expected points of {width} float32, got {len(data)} bytes")
    array = np.frombuffer(data, "<f4").reshape(-1, width)
    return array.reshape((1,) * (len(tensor.shape) - 2) + array.shape) if len(tensor.shape) > 1 else array.ravel()


def _unflattened(array: np.ndarray, tensor: Tensor) -> np.ndarray:
    """Reshapes a flat array to the tensor's shape if all dimensions but one are fixed. Other dynamic leading dimensions
    become 1."""
    shape = [extent if isinstance(extent, int) else -1 for extent in tensor.shape]
    for i in range(len(shape)):
        if shape.count(-1) > 1 and shape[i] == -1:
            shape[i] = 1
    try:
        return array.reshape(shape)
    except ValueError:
        return array


def read_constant(model: Model, name: str, path: Path, options: ImageOptions, memory: int = 0) -> np.ndarray:
    """Reads a value for all samples from a file. Raises BatchError."""
    model.input(name)
    others = [other for other in model.inputs if other != name]
    try:
        return Reader(model, name, others, options, memory).of_file(path.read_bytes(), path.name)[name]
    except (OSError, SampleError) as error:
        raise BatchError(f"-i {name}={path}: {error}", getattr(error, "hint", "")) from None
