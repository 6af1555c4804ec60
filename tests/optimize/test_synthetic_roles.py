"""optimize creates inputs that suit the operators that read them, in the ranges of the program's."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from polyop.optimizing import roles
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
