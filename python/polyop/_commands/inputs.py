# SPDX-License-Identifier: Apache-2.0
"""Inputs of a model from the options -i and --set."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from polyop._commands.arguments import image_options
from polyop._commands.errors import CommandError, ExitCode, usage
from polyop._commands.models import extents, inputs_of
from polyop.batch.errors import BatchError, SampleError, UnreadableError
from polyop.batch.images import ImageOptions
from polyop.batch.interface import Model, Tensor
from polyop.batch.reading import Reader
from polyop.batch.sources import IMAGES

if TYPE_CHECKING:
    from onnx import ModelProto, ValueInfoProto

_KINDS = (*IMAGES, ".npy", ".npz")


def read_inputs(
    options: argparse.Namespace, model: ModelProto, shapes: Mapping[str, Sequence[int]]
) -> dict[str, np.ndarray]:
    """Returns the values of the inputs that have one. `random` gives none. Raises CommandError."""
    return _values(options, _interface(model), options.input, shapes)


def read_samples(options: argparse.Namespace, model: ModelProto, folder: Path) -> Iterator[dict[str, np.ndarray]]:
    """Yields the inputs of one run for each image, .npy and .npz file of a folder, with the values of --set. Raises
    CommandError."""
    interface = _interface(model)
    files = sorted(p for p in folder.iterdir() if p.suffix.lower() in _KINDS)
    if not files:
        raise usage(f"'{folder}': expected {' '.join(IMAGES)} .npy or .npz files, got none")
    for file in files:
        values = _values(options, interface, [str(file)], {})
        if missing := sorted(interface.inputs.keys() - values):
            raise usage(f"'{file}': expected values of all inputs, got none of '{missing[0]}'")
        yield values


def _interface(model: ModelProto) -> Model:
    """Returns the model's inputs, without a session."""
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    return Model(None, {value.name: _tensor(value) for value in inputs_of(model)}, {}, metadata)


def _tensor(value: ValueInfoProto) -> Tensor:
    kind = value.type.tensor_type.elem_type
    if not kind:
        raise CommandError(ExitCode.BAD_FILE, f"input '{value.name}' has no type")
    return Tensor(value.name, np.dtype(ir.DataType(kind).numpy()), extents(value))


def _values(
    options: argparse.Namespace, model: Model, files: Sequence[str], shapes: Mapping[str, Sequence[int]]
) -> dict[str, np.ndarray]:
    values: dict[str, np.ndarray] = {}
    try:
        for text in files:
            values |= _of_file(options, model, text, shapes)
        return values | model.set_values(options.set)
    except UnreadableError as error:
        raise CommandError(ExitCode.BAD_FILE, str(error), error.hint) from None
    except (SampleError, BatchError) as error:
        raise usage(str(error), error.hint) from None


def _of_file(
    options: argparse.Namespace, model: Model, text: str, shapes: Mapping[str, Sequence[int]]
) -> dict[str, np.ndarray]:
    """Returns the values of "NAME=FILE" or "FILE"."""
    name, equals, file = text.partition("=")
    if not equals:
        name, file = "", text
    kind = Path(file).suffix.lower()
    if kind != ".npz":
        if not name and len(model.inputs) != 1:
            raise usage(f"-i {file}: the model has several inputs", f"write -i NAME={file}")
        name = model.input(name or next(iter(model.inputs))).name
    if file == "random":
        return {}
    if file == "zeros":
        tensor = model.input(name)
        return {name: tensor.take(np.zeros(_shape(tensor, shapes), tensor.dtype), file)}
    if kind not in _KINDS:
        raise usage(f"'{file}' is of an unknown kind", f"inputs are {' '.join(_KINDS)} files, `random` or `zeros`")
    others = [other for other in model.inputs if name and other != name]
    reader = Reader(model, name, others, ImageOptions(**image_options(options)), options.memory)
    if not (arrays := reader.arrays(Path(file).read_bytes(), file)):
        raise usage(f"'{file}' has no array with the name of an input")
    return arrays


def _shape(tensor: Tensor, shapes: Mapping[str, Sequence[int]]) -> Sequence[int]:
    if tensor.name in shapes:
        return shapes[tensor.name]
    if not all(isinstance(extent, int) for extent in tensor.shape):
        raise usage(
            f"input '{tensor.name}' is {tensor}, whose shape is not fixed",
            f"give it: --shape {tensor.name}=1x3x224x224",
        )
    return [int(extent) for extent in tensor.shape if extent is not None]
