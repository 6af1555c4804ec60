# SPDX-License-Identifier: Apache-2.0
"""Models of one standard node, with and without polyop's accelerator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

import polyop

DTYPES = {"f32": np.float32, "f16": np.float16, "f64": np.float64}
PROTO = {
    np.dtype(t): getattr(TensorProto, n)
    for t, n in ((np.float32, "FLOAT"), (np.float16, "FLOAT16"), (np.float64, "DOUBLE"), (np.int64, "INT64"))
}


@dataclass
class Case:
    """A node of the default domain. None omits an input."""

    op_type: str
    opset: int
    inputs: Sequence[np.ndarray | None]
    attributes: Mapping[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        shapes = [None if a is None else (a.dtype.name, a.shape) for a in self.inputs]
        return f"{self.op_type}-{self.opset} {dict(self.attributes)} {shapes}"

    def model(self, symbolic: bool = False) -> onnx.ModelProto:
        """Returns a model of the node; with `symbolic`, the extents of its inputs are symbols."""
        given = {f"in{i}": a for i, a in enumerate(self.inputs) if a is not None}
        names = [f"in{i}" if a is not None else "" for i, a in enumerate(self.inputs)]
        node = helper.make_node(self.op_type, names, ["out"], name="node", **self.attributes)
        infos = [
            helper.make_tensor_value_info(
                n, PROTO[a.dtype], [f"{n}_{d}" for d in range(a.ndim)] if symbolic else a.shape
            )
            for n, a in given.items()
        ]
        graph = helper.make_graph([node], "g", infos, [onnx.ValueInfoProto(name="out")])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)

    def feeds(self) -> dict[str, np.ndarray]:
        return {f"in{i}": a for i, a in enumerate(self.inputs) if a is not None}

    def run(self, accelerated: bool, threads: int = 1, say_opset: bool = True) -> np.ndarray:
        opset = self.opset if say_opset else 0
        model = self.model().SerializeToString()
        return session(model, accelerated, threads, opset).run(None, self.feeds())[0]


def session(model: bytes | str, accelerated: bool, threads: int = 1, opset: int = 0) -> ort.InferenceSession:
    """Returns a CPU session. With opset 0 the accelerator is not told the opset."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    if accelerated:
        if opset:
            options.add_session_config_entry("polyop.opset", str(opset))
        options.register_custom_ops_library(polyop.get_accelerator_path())
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def newest_opset() -> int:
    """Returns the newest opset that this ONNX Runtime and these tests support."""
    minor = int(ort.__version__.split(".")[1])
    return 20 if minor < 18 else 21 if minor < 21 else 22


def random_cases(seed: int) -> Iterator[Case]:
    """Yields cases with every mode, type and opset of the operators."""
    rng = np.random.default_rng(seed)
    opsets = [v for v in (10, 11, 16, 18, 20, 21, 22) if v <= newest_opset()]

    def f(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    for opset, dtype, mode, ratio in product(opsets, DTYPES, ("avg", "max"), (0, 2)):
        rois = np.sort(rng.uniform(-2, 14, (6, 2, 2)), 1).reshape(6, 4)
        attributes = {
            "mode": mode,
            "sampling_ratio": ratio,
            "output_height": 3,
            "output_width": 2,
            "spatial_scale": 0.5,
        }
        inputs = [f(2, 3, 8, 9).astype(DTYPES[dtype]), rois.astype(DTYPES[dtype]), rng.integers(0, 2, 6)]
        yield Case("RoiAlign", opset, inputs, attributes)
        if opset < 16:
            continue
        for transformation in ("half_pixel", "output_half_pixel"):
            yield Case("RoiAlign", opset, inputs, {**attributes, "coordinate_transformation_mode": transformation})
    modes = {16: ("bilinear", "nearest", "bicubic"), 20: ("linear", "nearest", "cubic")}
    for opset, dtype, padding, align in product(opsets, DTYPES, ("zeros", "border", "reflection"), (0, 1)):
        if opset < 16:
            continue
        attributes = {"padding_mode": padding, "align_corners": align}
        for mode in modes[16 if opset < 20 else 20]:
            grid = rng.uniform(-1.3, 1.3, (2, 5, 6, 2))
            inputs = [f(2, 3, 7, 8).astype(DTYPES[dtype]), grid.astype(DTYPES[dtype])]
            yield Case("GridSample", opset, inputs, {**attributes, "mode": mode})
            if opset < 20 or mode == "cubic":
                continue
            grid = rng.uniform(-1.3, 1.3, (2, 3, 5, 6, 3))
            inputs = [f(2, 3, 4, 7, 8).astype(DTYPES[dtype]), grid.astype(DTYPES[dtype])]
            yield Case("GridSample", opset, inputs, {**attributes, "mode": mode})
        inputs = [f(2, 3, 7, 8).astype(DTYPES[dtype]), rng.uniform(-1, 1, (2, 5, 6, 2)).astype(DTYPES[dtype])]
        yield Case("GridSample", opset, inputs)
    for opset, centre, given in product(opsets, (None, 0, 1), range(6)):
        boxes = rng.integers(0, 12, (2, 60, 4)).astype(np.float32)  # corners in any order, with ties
        scores = rng.integers(0, 50, (2, 3, 60)).astype(np.float32) / 50
        max_boxes = np.array([7], np.int64) if given % 2 else np.array(7, np.int64)
        thresholds = [np.array([v], np.float32) for v in (0.7, 0.3)]
        rest = [[], [max_boxes], [max_boxes, thresholds[0]], [max_boxes, *thresholds], [max_boxes, None, thresholds[1]],
                [None, thresholds[0]]][given]  # fmt: skip
        attributes = {} if centre is None else {"center_point_box": centre}
        yield Case("NonMaxSuppression", opset, [boxes, scores, *rest], attributes)
    for opset, dtype, shape in product(
        opsets, ("f32", "f16"), ((2, 4, 9), (2, 4, 5, 6), (1, 2, 3, 4, 5), (4, 32, 5, 5))
    ):
        inputs = [(f(*shape) * 3 + 1).astype(DTYPES[dtype]), *(f(shape[1]).astype(DTYPES[dtype]) for _ in range(2))]
        yield Case("InstanceNormalization", opset, inputs, {"epsilon": 1e-3} if opset % 4 else {})
    for opset, dtype, op_type in product(opsets, DTYPES, ("Tan", "Sinh", "Cosh", "Atanh")):
        x = rng.uniform(-0.95, 0.95, (3, 4, 37)) * (1 if op_type == "Atanh" else 6)
        yield Case(op_type, opset, [x.astype(DTYPES[dtype])])
    for opset, dtype, given, group, strides in product((20, 22), DTYPES, range(4), (1, 2), ([1, 1], [2, 1])):
        if opset > newest_opset():
            continue
        rows, columns = (8 + 1 + 2 - 2 - 1) // strides[0] + 1, (7 + 3 - 2 - 1) // strides[1] + 1
        offset, mask = rng.uniform(-3, 3, (2, 24, rows, columns)), rng.random((2, 12, rows, columns))
        optional = [f(6) if given % 2 else None, mask if given > 1 else None]
        inputs = [f(2, 4, 8, 7), f(6, 4 // group, 3, 2), offset, *optional]
        attributes = {"group": group, "offset_group": 2, "strides": strides, "pads": [1, 0, 2, 3], "dilations": [1, 2]}
        typed = [a if a is None else a.astype(DTYPES[dtype]) for a in inputs]
        yield Case("DeformConv", opset, typed, {**attributes, **({"kernel_shape": [3, 2]} if given else {})})


def odd_cases() -> Iterator[Case]:
    """Yields empty tensors, and shapes and values that do not fit: the built-in kernels accept some of them."""

    def f(*shape: int) -> np.ndarray:
        return np.zeros(shape, np.float32)

    def i(*values: int) -> np.ndarray:
        return np.array(values, np.int64)

    image = f(1, 2, 4, 4)
    for x, rois, indices in (
        (image, f(0, 4), i()), (f(0, 2, 4, 4), f(0, 4), i()), (f(1, 0, 4, 4), f(1, 4), i(0)), (f(1, 2, 0, 4), f(1, 4), i(0)),
        (f(1, 2, 4), f(1, 4), i(0)), (image, f(1, 5), i(0)), (image, f(2, 4), i(0)),
        (image.astype(np.float64), f(0, 4).astype(np.float64), i()),
    ):  # fmt: skip
        for mode in ("avg", "max", "median"):
            yield Case("RoiAlign", 16, [x, rois, indices], {"mode": mode})
    for x, grid in (
        (image, f(1, 0, 3, 2)), (f(0, 2, 4, 4), f(0, 2, 3, 2)), (f(1, 0, 4, 4), f(1, 2, 3, 2)), (image, f(2, 2, 3, 2)),
        (image, f(1, 2, 3, 3)), (image, f(1, 2, 2, 3, 3)), (f(1, 2, 4), f(1, 3, 1)), (f(1, 2, 1, 1), f(1, 2, 3, 2) + 5),
    ):  # fmt: skip
        for mode, padding in (
            ("bilinear", "zeros"),
            ("nearest", "reflection"),
            ("bicubic", "border"),
            ("nearest", "wrap"),
        ):
            yield Case("GridSample", 16, [x, grid], {"mode": mode, "padding_mode": padding})
    for op_type in ("Tan", "Sinh", "Cosh", "Atanh"):
        yield Case(op_type, 16, [np.array([np.nan, np.inf, -np.inf, -0.0, 0, 1, -1, 1e30, 100, -100], np.float32)])
        for shape in ((), (0,), (3, 0), (1,) * 8):
            yield Case(op_type, 16, [f(*shape)])
    boxes, scores = f(1, 5, 4), f(1, 2, 5)
    for inputs in (
        [f(1, 0, 4), f(1, 2, 0), i(3)], [f(0, 5, 4), f(0, 2, 5), i(3)], [boxes, f(1, 0, 5), i(3)], [boxes, f(1, 2, 4), i(3)],
        [boxes, scores, i(3), f(1) + 2], [boxes, scores, i(3), f(1) + np.float32("nan")], [boxes, scores, i(-3)],
        [f(5, 4), f(2, 5), i(3)], [boxes, scores],
    ):  # fmt: skip
        yield Case("NonMaxSuppression", 11, inputs)
    for x, offset, attributes in (
        (f(0, 2, 4, 4), f(0, 8, 3, 3), {}),
        (f(1, 2, 4, 4), f(1, 8, 4, 3), {}),
        (f(1, 2, 4, 4), f(1, 8, 3, 3), {"offset_group": 2}),
        (f(1, 2, 4, 4), f(1, 8, 3, 3), {"group": 3}),
        (f(1, 2, 4, 4), f(1, 8, 3, 3), {"kernel_shape": [3, 3]}),
    ):
        yield Case("DeformConv", 19, [x, f(2, 2, 2, 2), offset], attributes)
    for shape, scale, bias in (
        ((1, 2), 2, 2), ((0, 2, 3), 2, 2), ((1, 2, 0), 2, 2), ((1, 2, 3), 3, 2), ((1, 0, 3), 0, 0), ((1, 2, 3, 1, 1, 1, 1, 2), 2, 2),
    ):  # fmt: skip
        yield Case("InstanceNormalization", 6, [f(*shape), f(scale) + 1, f(bias) + 1])
