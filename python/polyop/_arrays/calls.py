# SPDX-License-Identifier: Apache-2.0
"""Calls of operators with NumPy arrays, through the C interface of polyop's library (adapters/c/polyop.h)."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from functools import cache, lru_cache
from typing import Any

import numpy as np

from polyop._arrays.functions import is_text, numbers_of
from polyop._base.libraries import get_onnxruntime_op_path, read_catalogue

TYPES = ("float32", "float16", "bfloat16", "float64", "int8", "uint8", "int16", "int32", "int64", "bool")
_NUMBERS = {np.dtype(name): number for number, name in enumerate(TYPES) if name != "bfloat16"}
SHORT_TYPES = ("f32", "f16", "bf16", "f64", "i8", "u8", "i16", "i32", "i64", "bool")
INT, FLOAT, INTS, FLOATS, TEXT = range(5)
KIND_NAMES = ("int", "float", "ints", "floats", "string")
KINDS = {name: number for number, name in enumerate(KIND_NAMES)}
_DEVICES = {2: "cuda", 3: "cuda_host", 4: "opencl", 7: "vulkan", 8: "metal", 10: "rocm", 13: "cuda_managed"}

ALLOCATE = ctypes.CFUNCTYPE(
    ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_int64)
)
BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
RUN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, BODY, ctypes.c_void_p)


class Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("type", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
    )


class Attribute(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("kind", ctypes.c_int32),
        ("count", ctypes.c_int64),
        ("values", ctypes.c_void_p),
    )
    kept: Any  # the values' memory


class Outputs(ctypes.Structure):
    _fields_ = (("self", ctypes.c_void_p), ("allocate", ALLOCATE))


class Threads(ctypes.Structure):
    _fields_ = (("self", ctypes.c_void_p), ("run", RUN))


@cache
def library() -> ctypes.CDLL:
    loaded = ctypes.CDLL(get_onnxruntime_op_path())
    loaded.polyop_call.restype = loaded.polyop_shapes.restype = ctypes.c_char_p
    return loaded


@cache
def operators() -> dict[str, dict[str, Any]]:
    """Returns the catalogue's records by the operators' names, without gradients."""
    return {record["name"]: record for record in read_catalogue(library()) if not record.get("gradient_of")}


class _State(threading.local):
    """The arrays of the thread's call. An operator allocates its outputs in the thread that calls it."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.out: Sequence[Any] = ()
        self.inputs: list[np.ndarray] = []
        self.found: dict[int, np.ndarray] = {}
        self.error: BaseException | None = None  # no exception can pass through C


_state = _State()
_pool: tuple[Executor | None, int] = (None, 1)


def set_num_threads(count: int, pool: Executor | None = None) -> None:
    """Sets the number of threads of all later calls, which is 1 at first: the calling thread.

    The calling thread computes as well. `pool` provides the other `count - 1` threads; a call does not wait for a
    thread that the pool has not started. Without `pool`, polyop creates one.
    """
    global _pool
    if count < 1:
        raise ValueError(f"count: expected at least 1, got {count}")
    _pool = (pool or ThreadPoolExecutor(count - 1, "polyop") if count > 1 else None, count)


def _run(_: object, tasks: int, body: Any, argument: int) -> None:
    pool, count = _pool
    count = 1 if pool is None else min(count, tasks)

    def work(first: int) -> None:
        for task in range(first, tasks, count):
            body(argument, task)

    futures = []
    try:
        if pool is not None:
            futures = [pool.submit(work, first) for first in range(1, count)]
        work(0)
        for first, future in enumerate(futures, 1):
            if future.cancel():  # the pool is busy, perhaps with the calling thread itself
                work(first)
    except BaseException as error:
        _state.error = error
    finally:
        wait([future for future in futures if not future.cancel()])


def _allocate(_: object, output: int, dtype: int, rank: int, shape: Any) -> int | None:
    try:
        given = _state.out[output] if _state.out else None
        expected = np.dtype(TYPES[dtype]), tuple(shape[:rank])
        array = np.empty(expected[1], expected[0]) if given is None else given
        if given is not None:
            _check_out(output, given, *expected)
        _state.found[output] = array
        return array.ctypes.data
    except BaseException as error:
        _state.error = error
        return None


def _check_out(output: int, array: Any, dtype: np.dtype, shape: tuple[int, ...]) -> None:
    where = f"out[{output}]"
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{where}: expected a NumPy array, got {type(array).__name__}")
    if array.dtype != dtype or array.shape != shape:
        raise ValueError(f"{where}: expected {dtype}{list(shape)}, got {array.dtype}{list(array.shape)}")
    if not (array.flags.c_contiguous and array.flags.writeable and array.flags.aligned):
        raise ValueError(f"{where}: expected an array that is contiguous, writeable and aligned to its elements")
    others = [*_state.inputs, *_state.found.values()]
    if any(np.may_share_memory(array, other) for other in others):
        raise ValueError(f"{where}: expected memory that no input and no other output uses")


_OUTPUTS = Outputs(None, ALLOCATE(_allocate))
_THREADS = Threads(None, RUN(_run))


def array_of(value: Any, name: str, types: Sequence[str] = SHORT_TYPES) -> np.ndarray:
    """Returns a contiguous array of the value: the value's own memory, if it is contiguous, aligned to its elements and
    in native byte order.

    `value` is an array, an object with `__dlpack__` or the buffer protocol, or numbers and lists of them, which get the
    first of the `types` that can represent them. `name` is the input's name for messages.
    """
    if isinstance(value, np.ndarray):
        array = value
    elif hasattr(value, "__dlpack__"):
        device, number = map(int, value.__dlpack_device__())
        if device != 1:
            raise ValueError(f"'{name}': expected memory of the CPU, got {_DEVICES.get(device, device)}:{number}")
        try:
            array = np.from_dlpack(value)
        except (BufferError, RuntimeError, TypeError) as error:
            raise ValueError(
                f"'{name}': expected a tensor that NumPy can read, got one that it rejects: {error}"
            ) from error
    else:
        try:
            array = np.asarray(value)
        except ValueError as error:
            raise ValueError(f"'{name}': expected numbers of one shape: {error}") from error
        if not hasattr(value, "dtype") and not isinstance(value, memoryview) and array.dtype.kind in "bif":
            array = _of_first_type(array, name, types)
    if not (array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative):
        array = np.array(array, array.dtype.newbyteorder("="), order="C", copy=True)
    return array


def _of_first_type(numbers: np.ndarray, name: str, types: Sequence[str]) -> np.ndarray:
    """Returns numbers in the first of the types that can represent them, or as they are if they are of another kind.

    Raises ValueError if there are types of their kind, but the numbers are out of their ranges.
    """
    fitting = [np.dtype(TYPES[SHORT_TYPES.index(t)]) for t in types if t != "bf16"]
    if numbers.dtype in fitting:
        return numbers
    kinds = {"f": "f", "i": "iuf", "b": "b"}[numbers.dtype.kind]
    outside = None
    for dtype in (t for t in fitting if t.kind in kinds):
        with np.errstate(over="ignore"):
            cast = numbers.astype(dtype)
        fits = np.isfinite(cast) | ~np.isfinite(numbers) if dtype.kind == "f" else cast == numbers
        if fits.all():
            return cast
        outside = outside or f"'{name}': expected numbers that fit in {dtype}, got {numbers[~fits].flat[0]}"
    if outside is not None:
        raise ValueError(outside)
    return numbers


def tensor_of(array: np.ndarray | None, name: str = "") -> Tensor:
    """Returns a view of the contiguous array, which must outlive it; None is an input that is left out."""
    if array is None:
        return Tensor(rank=-1)
    number = _NUMBERS.get(array.dtype)
    if number is None and array.dtype.name == "bfloat16":  # of the package ml_dtypes
        number = TYPES.index("bfloat16")
    if number is None:
        raise ValueError(f"'{name}': unsupported element type: expected one of {', '.join(TYPES)}, got {array.dtype}")
    shape = (ctypes.c_int64 * array.ndim)(*array.shape)
    return Tensor(array.__array_interface__["data"][0], number, array.ndim, shape)


def attribute_of(name: str, kind: int, value: Any) -> Attribute:
    """Returns the attribute, which owns its values. Raises ValueError if the value is not of the kind."""
    if kind == TEXT and isinstance(value, str):
        kept: Any = ctypes.create_string_buffer(value.encode())
    else:
        numbers = numbers_of(name, KIND_NAMES[kind], value)
        kept = ((ctypes.c_double if kind in (FLOAT, FLOATS) else ctypes.c_int64) * len(numbers))(*numbers)
    attribute = Attribute(name.encode(), kind, len(kept), ctypes.addressof(kept))
    attribute.kept = kept
    return attribute


def _attributes(op: str, *values: Any) -> tuple[int, Any]:
    given = [
        attribute_of(attribute["name"], TEXT if is_text(attribute, value) else KINDS[attribute["type"]], value)
        for attribute, value in zip(operators()[op]["attributes"], values, strict=True)
        if attribute["required"] or value is not None
    ]
    array: Any = (Attribute * len(given))(*given)
    array.kept = given  # the array copies the structures, which own their values
    return len(given), array


_cached_attributes = lru_cache(maxsize=1024, typed=True)(_attributes)


def call(op: str, inputs: Sequence[Any], attributes: Sequence[Any], outputs: int | None = None, out: Any = None) -> Any:
    """Calls an operator with all of its inputs and attributes, in the definition's order, and returns its output, or a
    tuple of outputs: the first `outputs`, or all. An attribute that is None has its default.

    `out` is an array, or a sequence of arrays and None, that receives the outputs. Raises ValueError with polyop's
    message.
    """
    record = operators()[op]
    try:
        arrays: list[np.ndarray | None] = []
        tensors = []
        for given, value in zip(record["inputs"], inputs, strict=True):
            if given["variadic"] and not isinstance(value, (list, tuple)):
                raise ValueError(f"'{given['name']}': expected a list of arrays, got {type(value).__name__}")
            if value is None and not given["optional"]:
                raise ValueError(f"'{given['name']}': expected an array, got None")
            for item in value if given["variadic"] else (value,):
                array = None if item is None else array_of(item, given["name"], given["types"])
                arrays.append(array)
                tensors.append(tensor_of(array, given["name"]))
        try:
            passed = _cached_attributes(op, *attributes)
        except TypeError:  # a list is not hashable
            passed = _attributes(op, *attributes)
        _state.out = () if out is None else (out,) if isinstance(out, np.ndarray) else tuple(out)
        count = len(record["outputs"])
        expected = count if outputs is None else outputs
        if out is not None:
            if len(_state.out) != expected:
                raise ValueError(f"out: expected {expected} arrays, got {len(_state.out)}")
            _state.out = (*_state.out, *[None] * (count - expected))
        _state.inputs = [array for array in arrays if array is not None]
        error = library().polyop_call(
            op.encode(),
            *(len(tensors), (Tensor * len(tensors))(*tensors), *passed, ctypes.byref(_OUTPUTS)),
            None if _pool[0] is None else ctypes.byref(_THREADS),
        )
        if _state.error is not None:
            if isinstance(_state.error, ValueError):
                raise ValueError(str(_state.error))
            raise _state.error
    except ValueError as refused:
        raise ValueError(f"polyop::{op}: {refused}") from None
    else:
        if error is not None:
            raise ValueError(error.decode())
        results = tuple(_state.found[output] for output in sorted(_state.found))[:outputs]
        return results[0] if len(results) == 1 else results
    finally:
        _state.clear()
