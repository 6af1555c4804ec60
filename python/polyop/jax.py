# SPDX-License-Identifier: Apache-2.0
"""The operators as functions of JAX arrays, on the CPU and on GPUs.

    import polyop.jax
    pooled = polyop.jax.roi_align(features, rois, 7, spatial_scale=0.25)

The functions and their parameters are those of every framework: polyop.functional, polyop.numpy. They can be
transformed by jax.jit, jax.vmap and jax.eval_shape, and differentiated in reverse mode where the operator has gradient
kernels.

Where a kernel finds the number of its results, as nms does, outputs have the upper bound, and the number follows them,
an i32 without dimensions. The elements behind those found are -1 in signed integers and 0 in other types. Without
jax_enable_x64, integers have 32 bits, as everywhere in JAX.

Wrong types, shapes and attributes are ValueErrors of the traced call with the message of every runtime. Wrong values in
arrays are errors of the computation, jax.errors.JaxRuntimeError.
"""

from __future__ import annotations

import ctypes
import json
import math
import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from polyop._arrays.calls import SHORT_TYPES, TYPES, array_of, library
from polyop._arrays.composites import Arrays as _Arrays
from polyop._arrays.functions import define_all, is_text, numbers_of
from polyop._base.libraries import library_file, read_catalogue, require_library

Arrays = Sequence[Any]  # of jax.Array, np.ndarray; None for an input that is left out
_SHORT = dict(zip(TYPES, SHORT_TYPES, strict=True))
_LONG = dict(zip(SHORT_TYPES, TYPES, strict=True))


_ALL = {record["name"]: record for record in read_catalogue(library())}
_GRADIENTS = {record["gradient_of"]: record for record in _ALL.values() if record.get("gradient_of")}
_OPERATORS = {name: record for name, record in _ALL.items() if not record.get("gradient_of")}


def _call(op: str, inputs: Sequence[Any], values: Sequence[Any], outputs: int | None = None) -> Any:
    record = _OPERATORS[op]
    try:
        arrays: list[Any] = []
        for given, value in zip(record["inputs"], inputs, strict=True):
            if given["variadic"] and not isinstance(value, (list, tuple)):
                raise ValueError(f"'{given['name']}': expected a list of arrays, got {type(value).__name__}")
            if value is None and not given["optional"]:
                raise ValueError(f"'{given['name']}': expected an array, got None")
            arrays += [_array(item, given) for item in (value if given["variadic"] else (value,))]
        attributes = {
            attribute["name"]: _attribute(attribute, value)
            for attribute, value in zip(record["attributes"], values, strict=True)
            if value is not None
        }
    except ValueError as error:
        raise ValueError(f"polyop::{op}: {error}") from None
    results = _differentiable(record, arrays, attributes)
    if outputs is not None:  # a count that follows them stays
        results = (*results[:outputs], *results[len(record["outputs"]) :])
    return results[0] if len(results) == 1 else results


def _array(value: Any, given: dict[str, Any]) -> Any:
    """Returns an array of JAX or NumPy: values that NumPy knows decide shapes also in a traced function.

    Raises ValueError for integers that JAX would wrap around when it converts them to 32 bits.
    """
    if value is None or isinstance(value, jax.Array):
        return value
    array = array_of(value, given["name"], given["types"])
    if array.dtype == np.int64 and not jax.config.jax_enable_x64:
        outside = array[array != array.astype(np.int32)]
        if outside.size:
            raise ValueError(
                f"'{given['name']}': expected numbers that fit in int32, to which JAX converts int64 unless "
                f"jax_enable_x64 is set, got {outside[0]}"
            )
    return array


def _attribute(attribute: dict[str, Any], value: Any) -> Any:
    """Returns the value in 64 bits, as the library reads it."""
    name, kind = attribute["name"], attribute["type"]
    if is_text(attribute, value):
        return value
    if isinstance(value, jax.core.Tracer):
        raise ValueError(
            f"attribute '{name}': expected a number, got a traced array; name it in jax.jit's static_argnames"
        )
    array = np.array(numbers_of(name, kind, value), np.int64 if kind.startswith("int") else np.float64)
    return array if kind.endswith("s") else array[0]


# ---- types and shapes ------------------------------------------------------------------------------


@lru_cache(4096)
def _reply(request: str) -> dict[str, Any]:
    return json.loads(library().polyop_shapes(request.encode()))


class _Call(NamedTuple):
    """What XLA knows before the call."""

    outputs: list[jax.ShapeDtypeStruct]
    types: list[str]
    """polyop's types of the outputs."""
    wide: list[bool]
    """Whether each array, of i32, becomes i64."""
    letters: str
    """The attribute polyop_inputs of adapters/jax/handler.cc."""
    found: list[int]
    """The attribute polyop_found."""
    dimension: dict[int, int]
    """The outputs that have a dimension of found extent, and this dimension."""

    @property
    def padded(self) -> list[int]:
        """The outputs whose number of rows is found."""
        return [o for o, d in self.dimension.items() if d == 0]


def _infer(record: dict[str, Any], arrays: Arrays, attributes: dict[str, Any]) -> _Call:
    inputs: list[Any] = []
    letters = ""
    wide = []
    for number, array in enumerate(arrays):
        given = record["inputs"][min(number, len(record["inputs"]) - 1)]  # those of a variadic input share its name
        if array is None:
            inputs.append(None)
            wide.append(False)
            letters += "0"
            continue
        name = str(jax.dtypes.canonicalize_dtype(array.dtype))
        dtype = _SHORT.get(name, name)
        wide.append(dtype == "i32" and "i64" in given["types"] and "i32" not in given["types"])
        letters += "h" if given["value"] else "1"
        inputs.append({"name": given["name"], "type": "i64" if wide[-1] else dtype, "shape": list(array.shape)})
        if given["value"] and not isinstance(array, jax.core.Tracer):
            inputs[-1]["values"] = np.ravel(array).tolist()
    plain = {name: value if isinstance(value, str) else _plain(value.tolist()) for name, value in attributes.items()}
    request = {"operator": record["name"], "cuda": False, "attributes": plain, "inputs": inputs}
    reply = _reply(json.dumps(request, sort_keys=True))
    if "error" in reply:
        raise ValueError(reply["error"])

    call = _Call([], [], wide, letters, [], {})
    for o, output in enumerate(reply["outputs"]):
        shape = []
        for d, tree in enumerate(output["shape"]):
            is_found = isinstance(tree, list) and tree[0] == "found"
            if is_found and not call.found:
                call.found.extend([o, d])
            if is_found:
                call.dimension[o] = d
            shape.append(_extent(tree[2] if is_found else tree, record))
        call.outputs.append(jax.ShapeDtypeStruct(shape, jax.dtypes.canonicalize_dtype(_LONG[output["type"]])))
        call.types.append(output["type"])
    if call.found:
        call.outputs.append(jax.ShapeDtypeStruct((), jnp.int32))
        call.types.append("i64")
    return call


def _plain(value: Any) -> Any:
    """Returns a value for JSON, which has no infinities."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value if isinstance(value, int) or math.isfinite(value) else str(value)


def _extent(tree: Any, record: dict[str, Any]) -> int:
    """Returns an extent, which is a number unless unknown values of inputs determine it."""
    if isinstance(tree, int):
        return tree
    names = ", ".join(given["name"] for given in record["inputs"] if given["value"])
    raise ValueError(
        f"polyop::{record['name']}: expected known values of {names}, which determine an output's shape, got a traced "
        "array; pass a NumPy array or a list"
    )


# ---- calls and transformations ---------------------------------------------------------------------


def _halves(array: Any) -> jax.Array:
    """Returns i32[...] as i64[...], which is u32[..., 2]."""
    low = jnp.asarray(array, jnp.int32)
    return jax.lax.bitcast_convert_type(jnp.stack([low, low >> 31], -1), jnp.uint32)


def _execute(
    record: dict[str, Any], call: _Call, letters: str, given: Sequence[Any], attributes: dict[str, Any]
) -> tuple[jax.Array, ...]:
    """Calls the handler."""
    split = [kind == "i64" and s.dtype != jnp.int64 for s, kind in zip(call.outputs, call.types, strict=True)]
    buffers = [
        jax.ShapeDtypeStruct((*s.shape, 2), jnp.uint32) if halves else s
        for s, halves in zip(call.outputs, split, strict=True)
    ]
    names = {
        "polyop_operator": record["name"],
        "polyop_inputs": letters,
        "polyop_found": np.array(call.found, np.int64),
    }
    raw = jax.ffi.ffi_call("polyop", buffers)(*given, **names, **attributes)
    results = [
        jax.lax.bitcast_convert_type(result[..., 0], jnp.int32) if halves else result
        for result, halves in zip(raw, split, strict=True)
    ]
    return tuple(
        _padded(result, call.dimension[o], results[-1]) if o in call.dimension else result
        for o, result in enumerate(results)
    )


def _padded(result: jax.Array, dimension: int, count: jax.Array) -> jax.Array:
    """Returns an array of found extent `count` in its upper bound. Its elements come first, without gaps."""
    shape = result.shape
    if dimension > 0 and result.size > 0:
        at: Any = 0
        for d, extent in enumerate(shape):
            at = at * (count if d == dimension else extent) + jax.lax.broadcasted_iota(jnp.int32, shape, d)
        result = result.ravel().at[at].get(mode="clip")
    fill = -1 if jnp.issubdtype(result.dtype, jnp.signedinteger) else 0
    return jnp.where(
        jax.lax.broadcasted_iota(jnp.int32, shape, dimension) < count, result, jnp.array(fill, result.dtype)
    )


def _run(
    record: dict[str, Any], arrays: Arrays, attributes: dict[str, Any], count: Any = None, padded: Sequence[int] = ()
) -> tuple[jax.Array, ...]:
    """Calls the kernel. jax.vmap extends the operator's own batch dimension, or else calls the kernel repeatedly.

    `count` is the number of rows of the inputs in `padded`.
    """
    inferred = _infer(record, arrays, attributes)
    letters = "".join("c" if i in padded else letter for i, letter in enumerate(inferred.letters))
    present = [i for i, array in enumerate(arrays) if array is not None]
    with_batch = frozenset() if padded else _batches(record["name"])

    @jax.custom_batching.custom_vmap
    def call(*given: jax.Array) -> tuple[jax.Array, ...]:
        wide = [inferred.wide[i] for i in present] + [True] * len(given[len(present) :])
        given = tuple(_halves(array) if w else array for array, w in zip(given, wide, strict=True))
        return _execute(record, inferred, letters, given, attributes)

    @call.def_vmap
    def _(size: int, batched: Sequence[bool], *given: jax.Array) -> tuple[tuple[jax.Array, ...], tuple[bool, ...]]:
        batches = [i in with_batch for i in present]
        if any(batches) and all(batch or not mapped for batch, mapped in zip(batches, batched, strict=True)):
            folded: list[Any] = list(arrays)
            for i, array, batch, mapped in zip(present, given, batches, batched, strict=True):
                whole = array if mapped or not batch else jnp.broadcast_to(array, (size, *array.shape))
                if batch or isinstance(arrays[i], jax.Array):  # other values are known
                    folded[i] = whole.reshape(-1, *whole.shape[2:]) if batch else array
            results = _run(record, folded, attributes)
            return tuple(r.reshape(size, -1, *r.shape[1:]) for r in results), (True,) * len(results)

        def one(mapped: Sequence[jax.Array]) -> tuple[jax.Array, ...]:
            rest = iter(mapped)
            return call(*(next(rest) if m else array for m, array in zip(batched, given, strict=True)))

        results = jax.lax.map(one, [array for m, array in zip(batched, given, strict=True) if m])
        return results, (True,) * len(results)

    return call(*(jnp.asarray(arrays[i]) for i in present), *([count] if padded else []))


@cache
def _batches(op: str) -> frozenset[int]:
    """Returns the inputs whose first dimension is a batch of images, of point clouds or of RoIs, which is that of all
    outputs and no other dimension of a tensor."""
    record = _ALL[op]
    if len(record["signatures"]) > 1 or any(given["variadic"] for given in record["inputs"]):
        return frozenset()
    inputs, outputs = (_dimensions(side) for side in record["signatures"][0].split(" -> "))
    symbol = outputs[0][0] if outputs[0] else ""
    first = [i for i, shape in enumerate(inputs) if shape[:1] == [symbol]]
    independent = symbol in ("B", "R") or (symbol == "N" and all(len(inputs[i]) > 2 for i in first))
    others = " ".join(text for shape in inputs + outputs for text in shape[1:])
    if not independent or re.search(rf"\b{symbol}\b", others) or any(shape[:1] != [symbol] for shape in outputs):
        return frozenset()
    for i, shape in enumerate(inputs):  # indices into whole tensors would need other values for each of them
        given = record["inputs"][i]
        indices = i not in first and not given["value"] and all(dtype[0] == "i" for dtype in given["types"])
        if indices and not re.search(rf"\b({'|'.join(re.findall(r'[A-Za-z]+', ' '.join(shape))) or '-'})\b", others):
            return frozenset()
    return frozenset(first)


def _dimensions(signature: str) -> list[list[str]]:
    """Returns the dimensions of each tensor: "x: T[N, 2*k[0]], y: T[]" has [["N", "2*k[0]"], []]."""
    tensors = []
    for tensor in re.split(r", (?=\w+\??:)", signature):
        text = tensor[tensor.index("[") + 1 : tensor.rindex("]")]
        tensors.append([part.strip() for part in re.split(r",(?![^\[(]*[\])])", text) if part.strip()])
    return tensors


def _differentiable(record: dict[str, Any], arrays: Arrays, attributes: dict[str, Any]) -> tuple[jax.Array, ...]:
    """Calls the kernel, with a rule for jax.vjp. Integer results have no gradients."""
    if not any(jnp.issubdtype(output.dtype, jnp.floating) for output in _infer(record, arrays, attributes).outputs):
        constants = [jax.lax.stop_gradient(a) if isinstance(a, jax.Array) else a for a in arrays]
        return _run(record, constants, attributes)
    present = [i for i, array in enumerate(arrays) if isinstance(array, jax.Array)]

    def whole(given: Sequence[Any]) -> list[Any]:
        filled = list(arrays)
        for i, array in zip(present, given, strict=True):
            filled[i] = array
        return filled

    @jax.custom_vjp
    def function(*given: Any) -> tuple[jax.Array, ...]:
        return _run(record, whole(given), attributes)

    def forward(*primals: Any) -> tuple[tuple[jax.Array, ...], Any]:
        given = [primal.value for primal in primals]
        needed = tuple(() if primal.perturbed else None for primal in primals)  # a structure, which is not traced
        outputs = _run(record, whole(given), attributes)
        return outputs, (given, outputs, needed)

    def backward(saved: Any, grads: Any) -> tuple[Any, ...]:
        given, outputs, needed = saved
        requested = [i for i, need in zip(present, needed, strict=True) if need is not None]
        found = _gradients(record, whole(given), outputs, grads, requested, attributes)
        return tuple(found.get(i) for i in present)

    function.defvjp(forward, backward, symbolic_zeros=True)
    return function(*(arrays[i] for i in present))


def _gradients(
    record: dict[str, Any],
    arrays: Arrays,
    outputs: Arrays,
    grads: Arrays,
    requested: Sequence[int],
    attributes: dict[str, Any],
) -> dict[int, jax.Array]:
    """Returns the gradients of the requested inputs, by their indices."""
    zero = jax.custom_derivatives.SymbolicZero
    if all(isinstance(grad, zero) for grad in grads):
        return {}
    name = record["name"]
    names = [given["name"] for given in record["inputs"]]
    gradient = _GRADIENTS.get(name)
    computed = (
        [] if gradient is None else [names.index(out["name"].removeprefix("grad_")) for out in gradient["outputs"]]
    )
    floats = [i for i in requested if jnp.issubdtype(arrays[i].dtype, jnp.floating)]
    number = [min(i, len(names) - 1) for i in range(len(arrays))]  # the arrays of a variadic input share its name
    if missing := [names[number[i]] for i in floats if number[i] not in computed]:
        raise NotImplementedError(
            f"polyop::{name}: no gradient kernel for {', '.join(missing)}; apply jax.lax.stop_gradient to them"
        )
    if gradient is None or not floats:
        return {}
    variadic = len(names) - 1 if record["inputs"][-1]["variadic"] else len(names)
    values: dict[str, Any] = dict(zip(names[:variadic], arrays, strict=False))
    values.update(dict.fromkeys(names[variadic:], arrays[variadic:]))
    padded = set()
    for o, (output, result, grad) in enumerate(zip(record["outputs"], outputs, grads, strict=False)):
        if o in _infer(record, arrays, attributes).padded:
            padded |= {output["name"], f"grad_{output['name']}"}
        values[output["name"]] = result
        values[f"grad_{output['name']}"] = jnp.zeros(grad.shape, result.dtype) if isinstance(grad, zero) else grad
    mask = np.int64(sum(1 << o for o, i in enumerate(computed) if i in {number[f] for f in floats}))
    known = {attribute["name"] for attribute in gradient["attributes"]}
    passed = {key: value for key, value in attributes.items() if key in known}
    if "output_mask" in known:
        passed["output_mask"] = mask
    given = [given["name"] for given in gradient["inputs"]]
    rows = [i for i, name in enumerate(given) if name in padded]
    single = [[values[name]] if name not in names[variadic:] else values[name] for name in given]
    results = _run(gradient, [array for group in single for array in group], passed, outputs[-1], rows)
    found = {}
    for i in floats:
        result = results[computed.index(number[i])]
        if number[i] == variadic:  # one gradient after the other
            start = sum(array.size for array in arrays[variadic:i])
            result = result[start : start + arrays[i].size]
        found[i] = result.reshape(arrays[i].shape)
    return found


_handler = ctypes.CDLL(require_library(library_file("polyop", "jax"), "JAX"))  # finds the library that is loaded
jax.ffi.register_ffi_target("polyop", jax.ffi.pycapsule(_handler.polyop_jax), platform="cpu")
jax.ffi.register_ffi_target("polyop", jax.ffi.pycapsule(_handler.polyop_jax_cuda), platform="CUDA")


class _JaxArrays(_Arrays):
    def of(self, value: Any, name: str, op: str) -> Any:
        given = {**_OPERATORS[op]["inputs"][0], "name": name}
        try:
            return jnp.asarray(_array(value, given))
        except ValueError as error:
            raise ValueError(f"polyop::{op}: {error}") from None

    def concatenate(self, arrays: Sequence[Any], axis: int) -> Any:
        return jnp.concatenate(arrays, axis)

    def integers(self, values: list[int], like: Any) -> Any:
        return jnp.array(values)


_functions = define_all(_OPERATORS, _call, _JaxArrays(), __name__)
__all__ = list(_functions)
globals().update(_functions)
