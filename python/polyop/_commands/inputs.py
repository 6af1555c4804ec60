# SPDX-License-Identifier: Apache-2.0
"""Inputs of a model from the options -i and --set."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnx_ir as ir

from polyop._commands.arguments import image_options
from polyop._commands.errors import CommandError, ExitCode, usage
from polyop.batch import images
from polyop.batch.errors import BatchError, SampleError
from polyop.batch.interface import Model, Tensor
from polyop.batch.memory import Memory
from polyop.batch.reading import read_npy, read_npz
from polyop.batch.sources import IMAGES
from polyop.optimizing.files import read
from polyop.optimizing.inputs import model_inputs


def read_inputs(options: argparse.Namespace, shapes: Mapping[str, Sequence[int]]) -> dict[str, np.ndarray]:
    """Returns the values of the inputs that have one. `random` gives none. Raises CommandError or FileError."""
    model = read(Path(options.model))
    tensors = {value.name: _tensor(value) for value in model_inputs(model.graph) if value.name is not None}
    reader = _Reader(tensors, dict(model.metadata_props), options, shapes)
    for text in options.input:
        reader.add_file(text)
    try:
        reader.values |= reader.model.set_values(options.set)
    except BatchError as error:
        raise usage(str(error), error.hint) from None
    return reader.values


def read_samples(options: argparse.Namespace, folder: Path) -> Iterator[dict[str, np.ndarray]]:
    """Yields the inputs of one run for each image, .npy and .npz file of a folder, with the values of --set.

    Raises CommandError or FileError.
    """
    model = read(Path(options.model))
    tensors = {value.name: _tensor(value) for value in model_inputs(model.graph) if value.name is not None}
    files = sorted(p for p in folder.iterdir() if p.suffix.lower() in {*IMAGES, ".npy", ".npz"})
    if not files:
        raise usage(f"'{folder}': expected {' '.join(IMAGES)} .npy or .npz files, got none")
    for file in files:
        reader = _Reader(tensors, dict(model.metadata_props), options, {})
        reader.add_file(str(file))
        try:
            reader.values |= reader.model.set_values(options.set)
        except BatchError as error:
            raise usage(str(error), error.hint) from None
        if missing := sorted(tensors.keys() - reader.values):
            raise usage(f"'{file}': expected values of all inputs, got none of '{missing[0]}'")
        yield reader.values


def _tensor(value: ir.Value) -> Tensor:
    if value.dtype is None:
        raise CommandError(ExitCode.BAD_FILE, f"input '{value.name}' has no type")
    shape = () if value.shape is None else tuple(d if isinstance(d, int) else d.value for d in value.shape)
    return Tensor(value.name or "", np.dtype(value.dtype.numpy()), shape)


class _Reader:
    def __init__(
        self,
        tensors: Mapping[str, Tensor],
        metadata: Mapping[str, str],
        options: argparse.Namespace,
        shapes: Mapping[str, Sequence[int]],
    ) -> None:
        self.model = Model(None, tensors, {}, metadata)
        self.values: dict[str, np.ndarray] = {}
        self._shapes = shapes
        self._memory = Memory(options.memory)
        self._images = images.ImageOptions(**image_options(options))

    def add_file(self, text: str) -> None:
        """Adds the values of "NAME=FILE" or "FILE"."""
        name, equals, file = text.partition("=")
        if not equals:
            name, file = "", text
        path = Path(file)
        kind = path.suffix.lower()
        if kind == ".npz":
            self._add_archive(name, path)
            return
        if not name and len(self.model.inputs) != 1:
            raise usage(f"-i {file}: the model has several inputs", f"write -i NAME={file}")
        tensor = self._input(name or next(iter(self.model.inputs)))
        if file == "random":
            return
        if file == "zeros":
            self._put(tensor, np.zeros(self._shape(tensor), tensor.dtype), "zeros")
        elif kind == ".npy":
            with _readable():
                self._put(tensor, read_npy(path.read_bytes(), file), file)
        elif kind in IMAGES:
            self.values[tensor.name] = self._image(tensor, path)
        else:
            raise usage(
                f"'{file}' is of an unknown kind", f"inputs are {' '.join(IMAGES)} .npy .npz files, `random` or `zeros`"
            )

    def _input(self, name: str) -> Tensor:
        try:
            return self.model.input(name)
        except BatchError as error:
            raise usage(str(error), error.hint) from None

    def _put(self, tensor: Tensor, array: np.ndarray, source: str) -> None:
        try:
            self.values[tensor.name] = tensor.take(array, source)
        except SampleError as error:
            raise usage(str(error)) from None

    def _add_archive(self, name: str, path: Path) -> None:
        names = [n for n in self.model.inputs if not name or n == name]
        with _readable():
            arrays = read_npz(path.read_bytes(), str(path), names, self._memory)
        if not arrays:
            raise usage(f"'{path}' has no array with the name of an input")
        for key, array in arrays.items():
            self._put(self.model.inputs[key], array, str(path))

    def _image(self, tensor: Tensor, path: Path) -> np.ndarray:
        with _readable():
            pixels = images.read(path.read_bytes(), str(path), self._memory)
        format = images.format_of(tensor, self.model.metadata, self._images)
        try:
            return images.to_input(pixels, tensor, format, self._images, str(path))
        except SampleError as error:
            raise usage(str(error), error.hint) from None

    def _shape(self, tensor: Tensor) -> Sequence[int]:
        if tensor.name in self._shapes:
            return self._shapes[tensor.name]
        if not all(isinstance(extent, int) for extent in tensor.shape):
            raise usage(
                f"input '{tensor.name}' is {tensor}, whose shape is not fixed",
                f"give it: --shape {tensor.name}=1x3x224x224",
            )
        return [int(extent) for extent in tensor.shape if extent is not None]


@contextmanager
def _readable() -> Iterator[None]:
    """Raises CommandError where a file cannot be read."""
    try:
        yield
    except SampleError as error:
        raise CommandError(ExitCode.BAD_FILE, str(error), error.hint) from None
