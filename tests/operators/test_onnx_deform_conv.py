# SPDX-License-Identifier: Apache-2.0
"""ONNX's DeformConv, as polyop's node and as the standard node in ONNX Runtime with polyop's accelerator.

The expected results are those of ONNX's own node tests and of its reference evaluator.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper
from onnx.backend.test.case.node import _NodeTestCases, deformconv  # noqa: F401
from onnx.reference import ReferenceEvaluator

from tests.support.single_node import run
from tests.support.standard_nodes import Case

NODE = "polyop::DeformConv"
INPUTS = ("X", "W", "offset", "B", "mask")
TOLERANCE = {np.float32: 2e-5, np.float16: 4e-3}

Arrays = Mapping[str, np.ndarray | None]


CASES = {case.name: case for case in _NodeTestCases if case.model.graph.node[0].op_type == "DeformConv"}
"""ONNX's node tests, which it creates when their module is imported."""


def test_all_node_tests_are_found() -> None:
    assert set(CASES) >= {
        "test_basic_deform_conv_with_padding",
        "test_basic_deform_conv_without_padding",
        "test_deform_conv_with_mask_bias",
        "test_deform_conv_with_multiple_offset_groups",
    }


@pytest.mark.parametrize("name", CASES)
def test_node_tests_of_onnx(name: str) -> None:
    case = CASES[name]
    (node,) = case.model.graph.node
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    ((arrays, (expected,)),) = case.data_sets
    inputs = dict(zip(INPUTS, arrays, strict=False))
    for got in both(inputs, attributes):
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=case.rtol, atol=case.atol)


def both(inputs: Arrays, attributes: Mapping[str, object]) -> list[np.ndarray]:
    """Returns the results of polyop's node, on one and two threads, and of the standard node with the accelerator."""
    results = [run(NODE, inputs, threads=threads, **attributes)[0] for threads in (1, 2)]
    return [*results, Case("DeformConv", 19, list(inputs.values()), attributes).run(accelerated=True)]


def reference(inputs: Arrays, attributes: Mapping[str, object]) -> np.ndarray:
    """Returns the result of ONNX's reference evaluator in double precision.

    The evaluator divides by the extents less 1. An image with an extent of 1 therefore gets a margin of zeros, which
    smaller pads compensate.
    """
    arrays = {name: array.astype(np.float64) for name, array in inputs.items() if array is not None}
    pads = attributes["pads"]
    if 1 in arrays["X"].shape[2:]:
        arrays["X"] = np.pad(arrays["X"], ((0, 0), (0, 0), (1, 1), (1, 1)))
        pads = [pad - 1 for pad in pads]
    names = [name if name in arrays else "" for name in INPUTS]
    node = helper.make_node("DeformConv", names, ["Y"], **{**attributes, "pads": pads})
    infos = [helper.make_tensor_value_info(name, onnx.TensorProto.DOUBLE, a.shape) for name, a in arrays.items()]
    outputs = [helper.make_tensor_value_info("Y", onnx.TensorProto.DOUBLE, None)]
    model = helper.make_model(
        helper.make_graph([node], "g", infos, outputs), opset_imports=[helper.make_opsetid("", 19)], ir_version=8
    )
    return ReferenceEvaluator(model).run(None, arrays)[0]


@st.composite
def calls(draw: st.DrawFn) -> tuple[dict[str, np.ndarray | None], dict[str, object]]:
    """Draws inputs in float32, and attributes: every combination of groups, pads that differ by side, odd sizes."""
    whole = lambda low, high: draw(st.integers(low, high))  # noqa: E731
    pair = lambda low, high: [whole(low, high), whole(low, high)]  # noqa: E731
    group, offset_group = draw(st.sampled_from([(1, 1), (2, 1), (1, 2), (2, 2), (3, 1), (1, 3), (3, 2), (2, 3)]))
    kernel, dilations, strides = pair(1, 3), pair(1, 2), pair(1, 3)
    pads = pair(0, 2) + pair(0, 2)
    n, channels, filters = whole(0, 2), int(np.lcm(group, offset_group)) * whole(1, 2), group * whole(1, 2)
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    sizes = [max(span - pads[axis] - pads[axis + 2], 1) + whole(0, 4) for axis, span in enumerate(spans)]
    out = [(sizes[a] + pads[a] + pads[a + 2] - spans[a]) // strides[a] + 1 for a in (0, 1)]
    taps = kernel[0] * kernel[1]
    rng = np.random.default_rng(whole(0, 2**32 - 1))
    offset = rng.uniform(-3, 3, (n, 2 * offset_group * taps, *out))
    exact = rng.random(offset.shape) < 0.2  # samples in the centre of a pixel, and those that leave the image exactly
    offset[exact] = offset[exact].round()
    arrays: dict[str, np.ndarray | None] = {
        "X": rng.uniform(-1, 1, (n, channels, *sizes)),
        "W": rng.uniform(-1, 1, (filters, channels // group, *kernel)),
        "offset": offset,
        "B": rng.uniform(-1, 1, filters) if draw(st.booleans()) else None,
        "mask": rng.uniform(0, 1, (n, offset_group * taps, *out)) if draw(st.booleans()) else None,
    }
    attributes = {
        "group": group,
        "offset_group": offset_group,
        "pads": pads,
        "dilations": dilations,
        "strides": strides,
        **({"kernel_shape": kernel} if draw(st.booleans()) else {}),
    }
    return arrays, attributes


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@settings(deadline=None, max_examples=25, derandomize=True)
@given(call=calls())
def test_equals_the_reference_evaluator(dtype: type, call: tuple[Arrays, dict[str, object]]) -> None:
    arrays, attributes = call
    inputs = {name: None if a is None else a.astype(dtype) for name, a in arrays.items()}
    expected = reference(inputs, attributes)
    # Sums of up to 54 products of numbers below 1; a half rounds once, at the end.
    scale = max(1.0, float(np.abs(expected).max(initial=0)))
    for got in both(inputs, attributes):
        assert got.dtype == dtype
        assert got.shape == expected.shape
        np.testing.assert_allclose(got.astype(np.float64), expected, rtol=0, atol=TOLERANCE[dtype] * scale)


@pytest.mark.parametrize("sizes", [(1, 1), (1, 7), (9, 1), (5, 3)])
def test_empty_batches(sizes: tuple[int, int]) -> None:
    inputs = {
        "X": np.zeros((0, 4, *sizes), np.float32),
        "W": np.ones((6, 2, 1, 1), np.float32),
        "offset": np.zeros((0, 4, *sizes), np.float32),
        "B": np.ones(6, np.float32),
        "mask": np.zeros((0, 2, *sizes), np.float32),
    }
    for got in both(inputs, {"group": 2, "offset_group": 2}):
        assert got.shape == (0, 6, *sizes)


def test_values_that_are_no_numbers_stay_where_they_are_read() -> None:
    """A NaN in the image reaches only the results whose samples touch it. An offset that is NaN reads nothing."""
    x = np.ones((1, 1, 5, 5), np.float32)
    x[0, 0, 0, 0] = np.nan
    offset = np.zeros((1, 2, 5, 5), np.float32)
    offset[0, :, 4, 4] = np.nan
    inputs = {"X": x, "W": np.full((1, 1, 1, 1), 2, np.float32), "offset": offset}
    expected = np.full((1, 1, 5, 5), 2, np.float32)
    expected[0, 0, 0, 0] = np.nan
    expected[0, 0, 4, 4] = 0
    for got in both(inputs, {}):
        np.testing.assert_array_equal(got, expected)
