# SPDX-License-Identifier: Apache-2.0
"""optimize creates inputs that suit the operators that read them, in the ranges of the program's."""

from __future__ import annotations

import re

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from polyop._onnx import roles
from polyop.optimizing import optimize
from polyop.optimizing.inputs import candidates

MODEL = """<ir_version: 8, opset_import: ["": 17, "mmcv": 1]>
    g (float[1, 2, 8, 8] x, float[R, 5] rois, float[1, K, 4] boxes, int64[K] index) => (y, z) {
        shape = Constant<value = int64[2] {-1, 4}>()
        rows = Reshape(boxes, shape)
        y = mmcv.MMCVRoiAlign<output_height = 2, output_width = 2>(x, rois)
        z = RoiAlign<output_height = 2, output_width = 2>(x, rows, index)
    }"""
COLUMNS = {
    "boxes": 4,
    "rotated_boxes": 5,
    "boxes3d": 7,
    "quadrilaterals": 8,
    "rois": 5,
    "rotated_rois": 6,
    "bezier_rois": 17,
}


def test_inputs_suit_the_operators() -> None:
    graph = ir.from_proto(onnx.parser.parse_model(MODEL)).graph
    assert [roles.role_of(value) for value in graph.inputs] == ["", "rois", "boxes", "batch_index"]
    *_, last = candidates(graph, {}, {"rois": (6, 5), "boxes": (1, 3, 4)}, 0)  # integers below 1
    assert (last["rois"][:, 0] == 0).all()
    assert (last["rois"][:, 3:] > last["rois"][:, 1:3]).all()
    assert (last["boxes"][..., 2:] > last["boxes"][..., :2]).all()
    assert not last["index"].any()
    assert last["rois"].dtype == np.float32


def test_optimize_says_what_it_ran_the_model_with() -> None:
    """Synthetic inputs, the sizes that it chose for dynamic dimensions, and how to give others."""
    model = onnx.parser.parse_model(MODEL)
    lines = optimize(model).lines()
    assert (
        "synthetic inputs: x (random), rois (random rois), boxes (random boxes), index (random batch_index); "
        "-i NAME=FILE or --set gives others"
    ) in lines
    (sizes,) = (line for line in lines if line.startswith("dynamic sizes: "))
    assert re.fullmatch(r"dynamic sizes: R = \d+, \d+, \d+; K = \d+, \d+, \d+; --shape gives the first", sizes)
    shapes = {"rois": (5, 5), "boxes": (1, 7, 4), "index": (7,)}
    stated = optimize(model, shapes=shapes).lines()
    assert any(line.startswith("dynamic sizes: R = 5, ") and "; K = 7, " in line for line in stated)
    rng = np.random.default_rng(0)
    given = {"x": rng.random((1, 2, 8, 8), np.float32), "rois": np.float32([[0, 0, 0, 4, 4]])}
    given |= {"boxes": np.float32([[[0, 0, 4, 4], [1, 1, 5, 5]]]), "index": np.array([0, 0])}
    lines = optimize(model, inputs=given).lines()
    assert not any(line.startswith("synthetic inputs") for line in lines)
    assert any(re.fullmatch(r"dynamic sizes: R = 1, \d+, \d+; K = 2, \d+, \d+", line) for line in lines)


@pytest.mark.parametrize(("role", "columns"), COLUMNS.items())
def test_rows_of_a_role(role: str, columns: int) -> None:
    drawn = roles.draw(role, (2, 3, columns), 4, np.random.default_rng(0))
    assert drawn is not None
    assert drawn.shape == (2, 3, columns)
    assert len(np.unique(drawn[..., -1])) > 1
    assert roles.draw(role, (2, columns + 1), 4, np.random.default_rng(0)) is None


def test_unknown_roles_are_left_to_the_caller() -> None:
    assert roles.draw("", (3,), 4, np.random.default_rng(0)) is None
    assert roles.draw("probability", (3,), 4, np.random.default_rng(0)) is None  # as any real number
