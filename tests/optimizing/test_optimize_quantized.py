# SPDX-License-Identifier: Apache-2.0
"""polyop optimize: nodes between DequantizeLinear and QuantizeLinear become nodes of 8 bits."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper, numpy_helper

import polyop
from polyop.optimizing import optimize
from tests.support.exported import nodes

PATTERN = "quantized nodes"
DOMAINS = {"polyop": 1, "mmcv": 1, "custom": 1}
rng = np.random.default_rng(0)


def numbers(*shape: int, low: float = -1, high: float = 1) -> np.ndarray:
    return rng.uniform(low, high, shape).astype(np.float32)


@dataclass
class Case:
    """node: in ONNX's text syntax, from `real` to `result`. inputs: of the model; x is quantized. left: of other nodes
    in the optimized file."""

    node: str
    becomes: str
    inputs: dict[str, np.ndarray]
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    opset: int = 18
    steps: tuple[float, float] = (0.021, 0.017)
    portable: bool = True


BOXES = np.array([[1, 2, 9, 8], [0, 0, 11, 11], [-3, 4, 30, 7], [5, 5, 2, 2]], np.float32)
IMAGE = {"x": numbers(2, 20, 12, 13, low=-2, high=2)}
OFFSETS = {"offset": numbers(2, 36, 12, 13, low=-2, high=2), "mask": numbers(2, 18, 12, 13, low=0, high=1)}
CODES = rng.integers(-127, 128, (6, 20, 3, 3)).astype(np.int8)
FILTERS = {"codes": CODES, "steps": numbers(6, low=0.001, high=0.01), "zeros": np.zeros(6, np.int8)}
CONVOLUTION = """
    filters = DequantizeLinear <axis = 0> (codes, steps, zeros)
    bias = DequantizeLinear <axis = 0> (bias_codes, bias_steps)
    result = DeformConv <kernel_shape = [3, 3], pads = [1, 1, 1, 1], offset_group = 2> (real, filters, offset, bias, mask)
"""
CASES = {
    "GridSample": Case(
        "result = GridSample <padding_mode = \"border\"> (real, grid)", "polyop::QuantizedGridSample",
        {**IMAGE, "grid": numbers(2, 9, 30, 2, low=-1.2, high=1.2)},
    ),
    "GridSample, cubic": Case(
        "result = GridSample <mode = \"cubic\", align_corners = 1> (real, grid)", "polyop::QuantizedGridSample",
        {**IMAGE, "grid": numbers(2, 9, 30, 2, low=-1.2, high=1.2)}, opset=20,
    ),
    "grid_sampler": Case(
        "result = mmcv.grid_sampler <interpolation_mode = 1, padding_mode = 2, align_corners = 0> (real, grid)",
        "polyop::QuantizedGridSample", {**IMAGE, "grid": numbers(2, 9, 30, 2, low=-1.2, high=1.2)},
    ),
    "RoiAlign": Case(
        "result = RoiAlign <output_height = 7, output_width = 5, spatial_scale = 0.9, sampling_ratio = 2> "
        "(real, rois, images)", "polyop::QuantizedRoiAlign",
        {**IMAGE, "rois": BOXES, "images": np.array([0, 1, 1, 0])},
    ),
    "MMCVRoiAlign": Case(
        "result = mmcv.MMCVRoiAlign <output_height = 7, output_width = 5, spatial_scale = 0.9, sampling_ratio = 2, "
        "mode = \"max\", aligned = 0> (real, rois)", "polyop::QuantizedRoiAlign",
        {**IMAGE, "rois": np.concatenate([[[0], [1], [1], [0]], BOXES], 1).astype(np.float32)}, portable=False,
    ),
    "Resize": Case(
        "result = Resize <mode = \"cubic\", cubic_coeff_a = -0.5> (real, , , sizes)", "polyop::QuantizedCubicResize",
        IMAGE, {"sizes": np.array([2, 20, 17, 40])},
    ),
    "Resize, by scales": Case(
        "result = Resize <mode = \"cubic\"> (real, , scales)", "polyop::QuantizedCubicResize",
        IMAGE, {"scales": np.array([1, 1, 2, 3], np.float32)},
    ),
    "DeformConv": Case(
        CONVOLUTION, "polyop::QuantizedDeformConv", {**IMAGE, **OFFSETS},
        {**FILTERS, "bias_codes": np.arange(-3, 3, dtype=np.int32) * 900, "bias_steps": FILTERS["steps"] * np.float32(0.02)},
        opset=19, steps=(0.021, 0.11),
    ),
    "MMCVModulatedDeformConv2d": Case(
        "filters = DequantizeLinear <axis = 0> (codes, steps, zeros)\n"
        "result = mmcv.MMCVModulatedDeformConv2d <stride = [1, 1], padding = [1, 1], dilation = [1, 1], groups = 1, "
        "deform_groups = 2> (real, offset, mask, filters)", "polyop::QuantizedDeformConv", {**IMAGE, **OFFSETS},
        FILTERS, opset=19, steps=(0.021, 0.11),
    ),
    "attention": Case(
        "values = Reshape (real, four)\n"
        "result = mmcv.MMCVMultiScaleDeformableAttention (values, shapes, starts, locations, weights)",
        "polyop::QuantizedMultiScaleDeformableAttention",
        {
            "x": numbers(2, 26, 24), "locations": numbers(2, 9, 3, 2, 4, 2, low=-0.1, high=1.1),
            "weights": numbers(2, 9, 3, 2, 4, low=0, high=0.25),
        },
        {"four": np.array([2, 26, 3, 8]), "shapes": np.array([[4, 5], [2, 3]]), "starts": np.array([0, 20])},
        portable=False,
    ),
}  # fmt: skip


def write(case: Case, path: Path, dtype: type = np.int8, zeros: tuple[int, int] = (-9, 4)) -> Path:
    header = ", ".join([f'"" : {case.opset}', *(f'"{name}" : {version}' for name, version in DOMAINS.items())])
    model = onnx.parser.parse_model(f"""
        <ir_version: 8, opset_import: [{header}]>
        model () => (y) {{
            before = QuantizeLinear (x, input_scale, input_zero)
            real = DequantizeLinear (before, input_scale, input_zero)
            {case.node}
            after = QuantizeLinear (result, output_scale, output_zero)
            y = DequantizeLinear (after, output_scale, output_zero)
        }}
    """)
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None))
    for name, array in case.inputs.items():
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        model.graph.input.append(helper.make_tensor_value_info(name, kind, array.shape))
    quantization = {
        "input_scale": np.float32(case.steps[0]),
        "input_zero": np.array(zeros[0], dtype),
        "output_scale": np.float32(case.steps[1]),
        "output_zero": np.array(zeros[1], dtype),
    }
    for name, array in {**case.constants, **quantization}.items():
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
    onnx.save(model, path)
    return path


def run(path: Path, feeds: dict[str, np.ndarray], with_polyop: bool = True) -> np.ndarray:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    if with_polyop:
        options.register_custom_ops_library(polyop.get_onnxruntime_op_path())
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(None, feeds)[0]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("dtype", "zeros"), [(np.int8, (-9, 4)), (np.uint8, (117, 130))])
def test_quantized_nodes(name: str, dtype: type, zeros: tuple[int, int], tmp_path: Path) -> None:
    case = CASES[name]
    before, after = write(case, tmp_path / "before.onnx", dtype, zeros), tmp_path / "after.onnx"
    report = optimize(before, after, inputs=case.inputs, all=True)
    assert report.replaced[PATTERN] == 1, str(report)
    left = nodes(after)
    assert left[case.becomes] == 1
    assert left["DequantizeLinear"] == 1  # of the output
    assert left["QuantizeLinear"] == 1  # of the input
    expected = run(before, case.inputs)
    for with_polyop in (True, False) if case.portable else (True,):
        steps = np.abs(run(after, case.inputs, with_polyop) - expected) / case.steps[1]
        assert steps.max() < 1.01
        assert np.count_nonzero(steps > 0.5) <= 1 + steps.size // 200
    assert report.needs_polyop is not case.portable
    assert expected.std() > 5 * case.steps[1]  # the results use many of the steps


def test_what_stays(tmp_path: Path) -> None:
    """Scales that are not constants, a result in float, scales by channel, and weights that are not of 8 bits."""
    grid = CASES["GridSample"]
    model = onnx.load(write(grid, tmp_path / "before.onnx"))
    scale = next(i for i in model.graph.initializer if i.name == "input_scale")
    model.graph.initializer.remove(scale)
    model.graph.input.append(helper.make_tensor_value_info("input_scale", onnx.TensorProto.FLOAT, []))
    report = optimize(model, inputs={**grid.inputs, "input_scale": np.array(0.02, np.float32)}, all=True)
    assert PATTERN not in report.replaced

    model = onnx.load(tmp_path / "before.onnx")
    while model.graph.node[-1].op_type != "GridSample":
        model.graph.node.pop()
    model.graph.node[-1].output[0] = "y"
    assert PATTERN not in optimize(model, inputs=grid.inputs, all=True).replaced

    conv = CASES["DeformConv"]
    model = onnx.load(write(conv, tmp_path / "conv.onnx"))
    codes = next(i for i in model.graph.initializer if i.name == "codes")
    real = numpy_helper.to_array(codes).astype(np.float32) / 100
    codes.CopyFrom(numpy_helper.from_array(real, "filters"))
    model.graph.node.remove(next(n for n in model.graph.node if "filters" in n.output))
    assert PATTERN not in optimize(model, inputs=conv.inputs, all=True).replaced


def test_other_readers_of_the_real_image_keep_it(tmp_path: Path) -> None:
    case = CASES["Resize, by scales"]
    model = onnx.load(write(case, tmp_path / "before.onnx"))
    model.graph.node.append(helper.make_node("ReduceMax", ["real"], ["largest"], keepdims=0))
    model.graph.node.append(helper.make_node("Add", ["y", "largest"], ["both"]))
    model.graph.output[0].name = "both"
    onnx.save(model, tmp_path / "both.onnx")
    report = optimize(tmp_path / "both.onnx", tmp_path / "after.onnx", inputs=case.inputs, all=True)
    assert report.replaced[PATTERN] == 1
    assert nodes(tmp_path / "after.onnx")["DequantizeLinear"] == 2
    expected, got = (run(tmp_path / name, case.inputs) for name in ("both.onnx", "after.onnx"))
    assert np.abs(got - expected).max() < 1.01 * case.steps[1]
