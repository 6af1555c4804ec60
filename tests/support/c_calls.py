"""Calls of operators through the C interface, adapters/c/polyop.h, by ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import numpy as np

import polyop

TYPES = ["float32", "float16", "bfloat16", "float64", "int8", "uint8", "int16", "int32", "int64", "bool"]
INT, FLOAT, INTS, FLOATS, TEXT = range(5)

_ALLOCATE = ctypes.CFUNCTYPE(
    ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_int64)
)
_BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
_RUN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, _BODY, ctypes.c_void_p)


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


class Outputs(ctypes.Structure):
    _fields_ = (("self", ctypes.c_void_p), ("allocate", _ALLOCATE))


class Threads(ctypes.Structure):
    _fields_ = (("self", ctypes.c_void_p), ("run", _RUN))


def tensor_of(array: np.ndarray | None) -> Tensor:
    """Returns a view of the array, which must outlive it; None is an input that is left out."""
    if array is None:
        return Tensor(rank=-1)
    shape = (ctypes.c_int64 * array.ndim)(*array.shape)
    return Tensor(array.ctypes.data, TYPES.index(str(array.dtype)), array.ndim, shape)


def attribute_of(name: str, value: object, kept: list[object]) -> Attribute:
    """Returns the attribute. `kept` owns its values."""
    if isinstance(value, str):
        kept.append(value.encode())
        return Attribute(name.encode(), TEXT, 0, ctypes.cast(ctypes.c_char_p(kept[-1]), ctypes.c_void_p))
    values = np.atleast_1d(np.array(value))
    real = values.dtype.kind == "f"
    kept.append(values.astype(np.float64 if real else np.int64))
    listed = isinstance(value, Sequence)
    kind = (FLOATS if listed else FLOAT) if real else (INTS if listed else INT)
    return Attribute(name.encode(), kind, values.size, kept[-1].ctypes.data)


def call_raw(operator: str, tensors: Sequence[Tensor], attributes: Sequence[Attribute], **given: object) -> str | None:
    """Calls polyop_call and returns its error. `given` are `allocate` and `run`, Python functions."""
    function = ctypes.CDLL(polyop.get_onnxruntime_op_path()).polyop_call
    function.restype = ctypes.c_char_p
    outputs = Outputs(None, _ALLOCATE(given.get("allocate", lambda *_: None)))
    threads = Threads(None, _RUN(given["run"])) if "run" in given else None
    error = function(
        operator.encode(),
        *(len(tensors), (Tensor * len(tensors))(*tensors)),
        *(len(attributes), (Attribute * len(attributes))(*attributes)),
        *(ctypes.byref(outputs), threads and ctypes.byref(threads)),
    )
    return None if error is None else error.decode()


def call(
    operator: str, *arrays: np.ndarray | None, run: Callable[..., None] | None = None, **attributes: object
) -> list[np.ndarray]:
    """Calls an operator. Raises ValueError with polyop's message."""
    found: dict[int, np.ndarray] = {}

    def allocate(_: object, output: int, dtype: int, rank: int, shape: Sequence[int]) -> int:
        found[output] = np.empty([shape[d] for d in range(rank)], TYPES[dtype])
        return found[output].ctypes.data

    kept: list[object] = [array if array is None else np.ascontiguousarray(array) for array in arrays]
    tensors = [tensor_of(array) for array in list(kept)]
    passed = [attribute_of(name, value, kept) for name, value in attributes.items()]
    error = call_raw(operator, tensors, passed, allocate=allocate, **({"run": run} if run else {}))
    if error is not None:
        raise ValueError(error)
    return [found[output] for output in sorted(found)]
