# SPDX-License-Identifier: Apache-2.0
"""polyop.tvm_ffi: every operator as a function of the tensors of any framework."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
import pytest
import torch

import polyop.numpy as pn
import polyop.tvm_ffi as pt
from tests.support.array_calls import call_of, plain_calls
from tests.support.documented import run_blocks
from tests.support.processes import ROOT, environment

BOXES = np.array([[0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30]], np.float32)
SCORES = np.array([0.8, 0.9, 0.7], np.float32)


@pytest.mark.parametrize("convert", [np.ascontiguousarray, torch.from_numpy], ids=["numpy", "torch"])
def test_equals_numpy(convert: Callable) -> None:
    compared = set()
    for op, node in plain_calls():
        expected = call_of(pn, op, node.inputs, node.attributes)
        inputs = [None if a is None else convert(np.ascontiguousarray(a)) for a in node.inputs]
        results = call_of(pt, op, inputs, node.attributes)
        assert isinstance(results, tuple) == isinstance(expected, tuple)
        results, expected = (r if isinstance(r, tuple) else (r,) for r in (results, expected))
        for result, array in zip(results, expected, strict=True):
            assert isinstance(result, torch.Tensor) == (convert is torch.from_numpy)
            np.testing.assert_array_equal(np.from_dlpack(result), array, err_msg=op)
        compared.add(op)
    assert len(compared) >= 30


def test_takes_jax() -> None:
    assert np.from_dlpack(pt.nms(jnp.asarray(BOXES), jnp.asarray(SCORES))).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("boxes", "scores", "attributes", "message"),
    [
        (torch.rand(4, 3).T, SCORES, {}, "input 0: expected contiguous elements, got strides"),
        (BOXES, SCORES[:2], {}, r"polyop::nms: 'scores': expected dimension 0 to be N = 3 as in 'boxes', got 2"),
        (BOXES, None, {}, "polyop::nms: 'scores': expected a tensor, got None"),
        (
            BOXES,
            SCORES,
            {"iou_threshold": "high"},
            "polyop::nms: attribute 'iou_threshold': expected a number, got 'high'",
        ),
        (BOXES, SCORES, {"offset": 2**40}, r"polyop::nms: attribute 'offset': expected a number in \[0, 1\]"),
        (BOXES, SCORES, {"offset": 2**64}, "polyop::nms: attribute 'offset': expected an integer of 64 bits"),
        (BOXES, SCORES, {"offset": 0.5}, "polyop::nms: attribute 'offset': expected an integer of 64 bits"),
        (BOXES, SCORES, {"iou_threshold": 10**400}, "polyop::nms: attribute 'iou_threshold': expected a number"),
    ],
    ids=["strided", "shape", "None", "attribute", "int32", "int64", "fraction", "float64"],
)
def test_refuses(boxes: object, scores: object, attributes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pt.nms(boxes, scores, **attributes)


def test_documentation(tmp_path) -> None:
    assert run_blocks(ROOT / "docs" / "executorch.md", tmp_path, environment(ROOT / "python")) == {"python", "text"}
