# SPDX-License-Identifier: Apache-2.0
"""polyop.jax: every operator as a function of JAX arrays. test_one_door.py has the calls that it refuses."""

from __future__ import annotations

import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import torch

import polyop.functional  # noqa: F401 (torch.ops.polyop)
import polyop.jax as pj
import polyop.numpy as pn
from polyop._arrays.calls import operators
from polyop._torch.operators import OPERATORS
from tests.support.array_calls import call_of, plain_calls
from tests.support.documented import run_blocks
from tests.support.exported_nodes import Node
from tests.support.gradient_cases import CASES, call, differentiable, operator_of
from tests.support.processes import ROOT, environment, run

BOXES = np.array([[0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30]], np.float32)
SCORES = np.array([0.8, 0.9, 0.7], np.float32)
FEATURES = np.random.default_rng(0).random((2, 8, 20, 20), np.float32)
ROIS = np.array([[0, 1, 2, 9, 9], [1, 0, 0, 19, 15], [0, 4, 4, 8, 8]], np.float32)
ALIGN: dict[str, Any] = {"output_size": (3, 2)}


def split(inputs: list[Any], op: str) -> tuple[dict[int, Any], dict[int, Any]]:
    """Returns the inputs that are traced, and those that stay known because their values determine shapes."""
    known = {i for i, given in enumerate(operators()[op]["inputs"]) if given["value"]}
    traced = {i: array for i, array in enumerate(inputs) if array is not None and i not in known}
    return traced, {i: array for i, array in enumerate(inputs) if i not in traced}


def as_tuple(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


def traced_call(op: str, node: Node) -> tuple[dict[int, Any], Any]:
    """Returns the arguments of a node's call, and the function of them."""
    traced, known = split(node.inputs, op)

    def function(given: dict[int, Any]) -> tuple[Any, ...]:
        whole = {**given, **known}
        return as_tuple(call_of(pj, op, [whole[i] for i in range(len(node.inputs))], node.attributes))

    return traced, function


@pytest.mark.parametrize("calls", [1, 100])  # of an operator
def test_equals_numpy(calls: int) -> None:
    """Compiled, in 32 bits. A count follows results of found size, which are padded."""
    compared: Counter[str] = Counter()
    padded = set()
    for op, node in plain_calls():
        if compared[op] == calls:
            continue
        traced, function = traced_call(op, node)
        expected = as_tuple(call_of(pn, op, node.inputs, node.attributes))
        results = jax.jit(function)(traced)
        if len(results) > len(expected):
            padded.add(op)
            assert any(array.shape and results[-1] == array.shape[0] for array in expected)
        for result, array in zip(results, expected, strict=False):
            narrow = jax.dtypes.canonicalize_dtype(array.dtype)
            assert result.dtype == narrow
            found = np.asarray(result)[tuple(map(slice, array.shape))]
            np.testing.assert_array_equal(found, array.astype(narrow), err_msg=op)
        shapes = [(array.shape, array.dtype) for array in results]
        assert [(s.shape, s.dtype) for s in jax.eval_shape(function, traced)] == shapes
        compared[op] += 1
    assert len(compared) >= 30
    assert len(padded) >= 4


def test_vmap() -> None:
    """jax.vmap equals a loop, for operators that have a batch dimension and for others."""
    folded, repeated = set(), set()
    for op, node in plain_calls():
        batches = pj._batches(op)
        traced, function = traced_call(op, node)
        if op in folded | repeated or (not batches and len(repeated) >= 4):
            continue
        mapped = {i: (0 if i in batches or not batches else None) for i in traced}
        stacked = {i: a if mapped[i] is None else np.stack([a, np.roll(a, 1, 0), a]) for i, a in traced.items()}
        results = jax.jit(jax.vmap(function, in_axes=(mapped,)))(stacked)
        for k in range(3):
            expected = function({i: a if mapped[i] is None else a[k] for i, a in stacked.items()})
            for result, array in zip(results, expected, strict=True):
                np.testing.assert_array_equal(result[k], array, err_msg=op)
        (folded if batches else repeated).add(op)
    assert len(folded) >= 15


def test_vmap_of_the_shared_input() -> None:
    """RoIs have indices of images, so that a batch of images cannot extend the operator's own."""
    stacked = np.stack([FEATURES, FEATURES[::-1]])
    results = jax.vmap(partial(pj.roi_align, **ALIGN), in_axes=(0, None))(stacked, ROIS)
    for k in range(2):
        np.testing.assert_array_equal(results[k], pj.roi_align(stacked[k], ROIS, **ALIGN))


GRADIENTS = [case for case in CASES if "cpu" in (operators()[operator_of(case)]["gradient"] or {}).get("kernels", [])]


@pytest.mark.parametrize("case", GRADIENTS)
def test_gradients(case: str) -> None:
    """Equal to PyTorch's, of all inputs that have gradients."""
    attributes, tensors = CASES[case]
    op = operator_of(case)
    nested = OPERATORS[op].nest
    requested = [i for i in differentiable(case) if tensors[i].numel()]
    leaves = [t.clone().requires_grad_(i in requested) for i, t in enumerate(tensors)]
    outputs = call(case, leaves)
    outputs = [t for t in (outputs if isinstance(outputs, (tuple, list)) else (outputs,)) if t.requires_grad]
    if not requested or not outputs:
        return
    torch.autograd.backward([(t * t).sum() for t in outputs])

    def loss(given: list[Any]) -> Any:
        full = [t.numpy() for t in tensors]
        for i, array in zip(requested, given, strict=True):
            full[i] = array
        results = as_tuple(call_of(pj, op, nested(full), attributes))
        # Rows behind those found are 0.
        return sum((result * result).sum() for result in results if jnp.issubdtype(result.dtype, jnp.floating))

    given = [tensors[i].numpy() for i in requested]
    for i, gradient in zip(requested, jax.jit(jax.grad(loss))(given), strict=True):
        np.testing.assert_allclose(gradient, leaves[i].grad, rtol=2e-4, atol=2e-4)


def test_gradients_that_do_not_exist() -> None:
    with pytest.raises(NotImplementedError, match=r"^polyop::roi_align: no gradient kernel for rois; apply"):
        jax.grad(lambda rois: pj.roi_align(FEATURES, rois, **ALIGN).sum())(jnp.asarray(ROIS))
    # Integers have none, so that a function that selects by them can be differentiated.
    gradient = jax.grad(lambda scores: scores[pj.nms(BOXES, scores)[0][:2]].sum())(jnp.asarray(SCORES))
    assert gradient.tolist() == [0, 1, 1]


def test_found_sizes() -> None:
    keep, count = jax.jit(pj.nms)(BOXES, SCORES)
    assert keep.tolist() == [1, 2, -1]
    assert int(count) == 2
    assert [a.shape for a in pj.nms(BOXES[:0], SCORES[:0])] == [(0,), ()]


def test_types() -> None:
    half = pj.roi_align(FEATURES.astype(ml_dtypes.bfloat16), ROIS.astype(ml_dtypes.bfloat16), **ALIGN)
    assert half.dtype == jnp.bfloat16
    with jax.enable_x64(True):
        assert pj.nms(BOXES, SCORES)[0].dtype == jnp.int64
    assert pj.my_add([1.0, 2.0], [3.0, 4.0]).tolist() == [5, 8]  # 2 a + b


def test_values_that_determine_shapes() -> None:
    assert pj.cubic_resize(FEATURES, [30, 25]).shape == (2, 8, 30, 25)
    assert jax.jit(lambda x: pj.cubic_resize(x, np.array([30, 25])))(FEATURES).shape == (2, 8, 30, 25)
    with pytest.raises(ValueError, match=r"^polyop::cubic_resize: expected known values of sizes, which determine"):
        jax.jit(pj.cubic_resize)(FEATURES, jnp.array([30, 25]))


def test_wrong_values_are_errors_of_the_computation() -> None:
    rois = ROIS.copy()
    rois[0, 0] = 2
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"polyop::roi_align: .*2"):
        jax.block_until_ready(jax.jit(partial(pj.roi_align, **ALIGN))(FEATURES, rois))


@pytest.mark.parametrize("value", ["x", [1.0], None.__class__])
def test_attributes(value: object) -> None:
    with pytest.raises(ValueError, match=r"^polyop::nms: attribute 'iou_threshold': expected a number, got"):
        pj.nms(BOXES, SCORES, iou_threshold=value)


def test_integers_that_do_not_fit() -> None:
    """JAX itself wraps them around."""
    for value in ([2**32 + 5], np.array([2**32 + 5])):
        with pytest.raises(ValueError, match="'repeats': expected numbers that fit in int32, to which JAX converts"):
            pj.repeat_indices(value, 5)
    with pytest.raises(ValueError, match="attribute 'offset': expected an integer"):
        pj.nms(BOXES, SCORES, offset=2**63)


def test_traced_attributes() -> None:
    with pytest.raises(
        ValueError, match="attribute 'iou_threshold': expected a number, got a traced array; name it in"
    ):
        jax.jit(lambda t: pj.nms(BOXES, SCORES, iou_threshold=t))(0.5)


SHARDED = """
import jax, numpy as np, polyop.jax as pj
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
devices = jax.devices()
assert len(devices) == 2
x, rois = np.random.rand(2, 4, 9, 9).astype(np.float32), np.float32([[0, 1, 1, 8, 8], [1, 2, 0, 5, 7]])
f = lambda x, rois: pj.roi_align(x, rois, 2)
split = jax.device_put(x, NamedSharding(Mesh(devices, "i"), P("i")))
print(np.array_equal(jax.jit(f)(split, rois), f(x, rois)))
a = np.random.rand(1 << 20).astype(np.float32)
print(np.array_equal(jax.jit(pj.my_add)(a, a), 2 * a + a))
"""


def test_sharding_and_threads() -> None:
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    assert run(sys.executable, "-c", SHARDED, env=flags).split() == ["True", "True"]


def test_documentation_page(tmp_path: Path) -> None:
    assert run_blocks(ROOT / "docs" / "jax.md", tmp_path, environment(sys.executable)) == {"python", "text"}
