# SPDX-License-Identifier: Apache-2.0
"""A model's session, inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import polyop
from polyop.batch.errors import BatchError, SampleError, describe_error
from polyop.errors import PolyopError

if TYPE_CHECKING:
    import onnxruntime as ort

_TYPES = {
    "float": "float32",
    "double": "float64",
    "float16": "float16",
    "bool": "bool",
    **{name: name for name in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")},
}


@dataclass(frozen=True)
class Tensor:
    """An input or output. A dynamic dimension is its name, or None."""

    name: str
    dtype: np.dtype
    shape: tuple[int | str | None, ...]

    def __str__(self) -> str:
        extents = ", ".join("?" if extent is None else str(extent) for extent in self.shape)
        return f"{self.dtype.name}[{extents}]"

    def is_fixed(self, dimension: int) -> bool:
        return isinstance(self.shape[dimension], int)

    def fits(self, shape: Sequence[int]) -> bool:
        """Returns True if an array of this shape is valid. A tensor without a shape accepts any."""
        return not self.shape or (
            len(shape) == len(self.shape)
            and all(not isinstance(want, int) or want == got for want, got in zip(self.shape, shape, strict=True))
        )

    def take(self, array: np.ndarray, source: str) -> np.ndarray:
        """Returns the array in this tensor's type. Raises SampleError if its shape does not fit. `source` names it."""
        if not self.fits(array.shape):
            raise SampleError(f"input '{self.name}': expected {self}, got {list(array.shape)} from {source}")
        if array.dtype.kind not in "fiub":
            raise SampleError(f"input '{self.name}': expected {self}, got elements of type {array.dtype} from {source}")
        return np.ascontiguousarray(cast(array, self.dtype))


def cast(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Converts to a type. For integers, rounds, clips to the type's range and replaces NaN by 0."""
    if array.dtype == dtype:
        return array
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        if array.dtype.kind == "f":
            inside = (array > limits.min) & (array < limits.max)
            ends = np.where(array > 0, limits.max, np.where(np.isnan(array), 0, limits.min)).astype(dtype)
            return np.where(inside, np.where(inside, array, 0).astype(dtype), ends)
        array = np.clip(array, limits.min, limits.max) if array.dtype.kind in "iu" else array
    with np.errstate(over="ignore"):
        return array.astype(dtype)


@dataclass(frozen=True)
class SessionOptions:
    """Options for opening a model, with the names of `polyop run`'s options."""

    threads: int = 0  # per run; 0: all cores
    libraries: tuple[str, ...] = ()  # further custom operators
    accelerate: bool = False
    gpu: bool = False
    provider: str = ""


@dataclass(frozen=True)
class Model:
    """A session with polyop's operators, and its inputs and outputs by name."""

    session: ort.InferenceSession | None  # None: only the interface is known
    inputs: Mapping[str, Tensor]
    outputs: Mapping[str, Tensor]
    metadata: Mapping[str, str] = field(default_factory=dict)

    def run(self, feeds: Mapping[str, np.ndarray], outputs: Sequence[str]) -> dict[str, np.ndarray]:
        assert self.session is not None
        return dict(zip(outputs, self.session.run(list(outputs), dict(feeds)), strict=True))

    def input(self, name: str) -> Tensor:
        return _named(self.inputs, name, "input")

    def set_values(self, sets: Sequence[str]) -> dict[str, np.ndarray]:
        """Returns inputs from `--set` options such as "NAME=1,1,2.5,2.5". Raises BatchError."""
        values = {}
        for text in sets:
            name, equals, numbers = text.partition("=")
            if not equals:
                raise BatchError(f"--set {text}: expected NAME=NUMBERS")
            values[name] = _from_numbers(self.input(name), numbers)
        return values

    def chosen(self, outputs: Sequence[str]) -> tuple[str, ...]:
        """Returns the names of these outputs; all if none is named. Raises BatchError for an unknown one."""
        return tuple(_named(self.outputs, name, "output").name for name in outputs) or tuple(self.outputs)


def open_model(path: str | Path, options: SessionOptions | None = None) -> Model:
    """Opens a model. Raises BatchError if ONNX Runtime rejects it, or cannot use the requested GPU."""
    import onnxruntime as ort

    options = options or SessionOptions()
    if not Path(path).is_file():
        raise BatchError(f"'{path}': expected a file, found none")
    if options.provider:
        from polyop.verifying.sides import How, InOnnxRuntime

        how = How("provider", options.provider, options.threads, options.libraries, options.accelerate)
        return _opened(path, lambda: InOnnxRuntime(Path(path), how).session)
    settings = ort.SessionOptions()
    settings.intra_op_num_threads = options.threads
    settings.log_severity_level = 4  # errors are exceptions; others would break the progress bar
    providers: list[Any] = ["CPUExecutionProvider"]
    if options.gpu:
        if "CUDAExecutionProvider" not in ort.get_available_providers():
            raise BatchError(
                "this ONNX Runtime has no CUDAExecutionProvider for the GPU", "pip install onnxruntime-gpu"
            )
        providers.insert(0, "CUDAExecutionProvider")

    def create() -> ort.InferenceSession:
        for library in options.libraries:
            settings.register_custom_ops_library(library)
        return polyop.session(path, accelerate=options.accelerate, options=settings, providers=providers)

    return _opened(path, create)


def _opened(path: str | Path, create: Callable[[], ort.InferenceSession]) -> Model:
    try:
        session = create()
    except PolyopError:  # of a provider
        raise
    except Exception as error:  # ONNX Runtime's error types are not public
        raise BatchError(
            f"'{path}' does not load: {describe_error(error)}", f"`polyop inspect {path}` shows what it needs"
        ) from error
    return Model(
        session,
        {i.name: _tensor(i) for i in session.get_inputs()},
        {o.name: _tensor(o) for o in session.get_outputs()},
        session.get_modelmeta().custom_metadata_map,
    )


def _tensor(info: ort.NodeArg) -> Tensor:
    kind = info.type.removeprefix("tensor(").removesuffix(")")
    if kind not in _TYPES:
        raise BatchError(f"'{info.name}': expected a type of NumPy, got {info.type}")
    return Tensor(info.name, np.dtype(_TYPES[kind]), tuple(info.shape or ()))


def _named(tensors: Mapping[str, Tensor], name: str, what: str) -> Tensor:
    if name not in tensors:
        known = ", ".join(f"{tensor.name}: {tensor}" for tensor in tensors.values())
        raise BatchError(f"the model has no {what} '{name}'", f"its {what}s are {known}")
    return tensors[name]


def _from_numbers(tensor: Tensor, text: str) -> np.ndarray:
    """Returns an input from "1,1,2.5,2.5". Computes one dynamic dimension from the count."""
    try:
        numbers = np.array([_number(word, tensor.dtype) for word in text.split(",")], tensor.dtype)
    except (ValueError, OverflowError) as error:
        raise BatchError(f"--set {tensor.name}: {error}") from None
    if numbers.dtype.kind == "f" and not np.isfinite(numbers).all() and "inf" not in text and "nan" not in text:
        raise BatchError(f"--set {tensor.name}: expected numbers in the range of {tensor.dtype}, got {text}")
    shape = [extent if isinstance(extent, int) else -1 for extent in tensor.shape]
    try:
        return numbers.reshape(shape)
    except ValueError:
        raise BatchError(f"--set {tensor.name}: expected {tensor}, got {numbers.size} numbers") from None


def _number(word: str, dtype: np.dtype) -> float | int:
    if "_" in word:
        raise ValueError(f"expected a number, got '{word}'")
    if dtype.kind == "f":
        return float(word)
    value = int(word)
    limits = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    if not limits[0] <= value <= limits[1]:
        raise ValueError(f"expected {dtype}, got '{word}'")
    return value
