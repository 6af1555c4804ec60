# SPDX-License-Identifier: Apache-2.0
"""Whole models with polyop's nodes, and with ONNX's standard operators only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from benchmark import Case, Contest, Run
from contenders import model_in_openvino, model_run
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parent.parent
STRIDES = (4, 8, 16, 32)
CHANNELS, BINS, KEPT, CLASSES = 256, 7, 300, 81


class Graph:
    """A graph that is built node by node."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []

    def constant(self, value: np.ndarray | list | float, dtype: type = np.int64) -> str:
        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def add(self, op: str, *inputs: str, **attributes: object) -> str:
        """Adds a node with one output; "domain::Type" is a custom one."""
        domain, _, op_type = op.rpartition("::")
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, list(inputs), [name], domain=domain, **attributes))
        return name

    def model(
        self, inputs: dict[str, np.ndarray], outputs: list[str], domains: tuple[str, ...], opset: int = 16
    ) -> onnx.ModelProto:
        infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape) for n, a in inputs.items()]
        results = [onnx.ValueInfoProto(name=name) for name in outputs]
        graph = helper.make_graph(self.nodes, "g", infos, results, self.initializers)
        opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def box_head(g: Graph, features: str, seed: int = 0, boxes: int = CLASSES) -> list[str]:
    """Two fully connected layers, classes and `boxes` boxes; random weights."""
    rng = np.random.default_rng(seed)

    def dense(x: str, depth: int, width: int) -> str:
        weight = g.constant(rng.standard_normal((depth, width)) / depth**0.5, np.float32)
        return g.add("Gemm", x, weight, g.constant(np.zeros(width), np.float32))

    depth = CHANNELS * BINS * BINS
    x = g.add("Reshape", features, g.constant([-1, depth]))
    x = g.add("Relu", dense(x, depth, 1024))
    x = g.add("Relu", dense(x, 1024, 1024))
    return [dense(x, 1024, CLASSES), dense(x, 1024, 4 * boxes)]


def columns(g: Graph, x: str, begin: int, end: int) -> str:
    return g.add("Slice", x, g.constant([begin]), g.constant([end]), g.constant([1]))


def pooled(g: Graph, boxes: str) -> str:
    """Multi-level RoIAlign as a node of polyop."""
    rois = g.add("Concat", g.add("Mul", columns(g, boxes, 0, 1), g.constant(0.0, np.float32)), boxes, axis=1)
    return g.add("mmdeploy::MMCVMultiLevelRoiAlign", rois, *(f"f{i}" for i in range(4)), output_height=BINS,
                 output_width=BINS, sampling_ratio=2, pool_mode=1, aligned=1, featmap_strides=[float(s) for s in STRIDES],
                 roi_scale_factor=-1.0, finest_scale=56)  # fmt: skip


def pooled_by_standard_operators(g: Graph, boxes: str) -> str:
    """One RoiAlign per level, and scatters."""
    area = g.add("ReduceProd", g.add("Sub", columns(g, boxes, 2, 4), columns(g, boxes, 0, 2)), axes=[1], keepdims=0)
    relative = g.add("Div", g.add("Sqrt", area), g.constant(56.0, np.float32))
    shifted = g.add("Add", relative, g.constant(1e-6, np.float32))
    level = g.add("Floor", g.add("Div", g.add("Log", shifted), g.constant(np.log(2.0), np.float32)))
    level = g.add("Clip", level, g.constant(0.0, np.float32), g.constant(3.0, np.float32))
    shape = g.add("Concat", g.add("Shape", level), g.constant([CHANNELS, BINS, BINS]), axis=0)
    features = g.add("ConstantOfShape", shape)
    for i, stride in enumerate(STRIDES):
        mine = g.add("NonZero", g.add("Equal", level, g.constant(float(i), np.float32)))
        rows = g.add("Squeeze", mine, g.constant([0]))
        image = g.add("Mul", rows, g.constant(0))
        aligned = g.add("RoiAlign", f"f{i}", g.add("Gather", boxes, rows), image, output_height=BINS,
                        output_width=BINS, sampling_ratio=2, spatial_scale=1 / stride, mode="avg",
                        coordinate_transformation_mode="half_pixel")  # fmt: skip
        features = g.add("ScatterND", features, g.add("Unsqueeze", rows, g.constant([1])), aligned)
    return features


def detector_head(inputs: dict[str, np.ndarray]) -> onnx.ModelProto:
    """NMS and multi-level RoIAlign as nodes of polyop."""
    g = Graph()
    keep = g.add("mmcv::NonMaxSuppression", "boxes", "scores", iou_threshold=0.7, offset=0)
    best = g.add("Slice", keep, g.constant([0]), g.constant([KEPT]))
    return g.model(inputs, box_head(g, pooled(g, g.add("Gather", "boxes", best))), ("mmcv", "mmdeploy"))


def standard_detector_head(inputs: dict[str, np.ndarray]) -> onnx.ModelProto:
    """The detector head with standard operators."""
    g = Graph()
    batched = g.add("Unsqueeze", "boxes", g.constant([0]))
    scores = g.add("Unsqueeze", "scores", g.constant([0, 1]))
    rows = g.add("NonMaxSuppression", batched, scores, g.constant([KEPT]), g.constant([0.7], np.float32))
    best = g.add("Gather", rows, g.constant(2), axis=1)
    return g.model(inputs, box_head(g, pooled_by_standard_operators(g, g.add("Gather", "boxes", best))), ())


def cascade(inputs: dict[str, np.ndarray], pool: Callable[[Graph, str], str], *domains: str) -> onnx.ModelProto:
    """Three box heads, each of which pools the boxes of the previous one: boxes and the heads' mean scores."""
    g = Graph()
    boxes, scores, half = "boxes", [], g.constant(0.5, np.float32)
    for stage, step in enumerate((0.1, 0.05, 0.033)):
        logits, move = box_head(g, pool(g, boxes), seed=stage, boxes=1)
        scores.append(g.add("Softmax", logits, axis=1))
        low, high = columns(g, boxes, 0, 2), columns(g, boxes, 2, 4)
        size, middle = g.add("Sub", high, low), g.add("Mul", g.add("Add", low, high), half)
        by = g.add("Mul", g.add("Mul", columns(g, move, 0, 2), g.constant(step, np.float32)), size)
        growth = g.add("Exp", g.add("Mul", columns(g, move, 2, 4), g.constant(2 * step, np.float32)))
        to, away = g.add("Add", middle, by), g.add("Mul", g.add("Mul", size, growth), half)
        boxes = g.add("Concat", g.add("Sub", to, away), g.add("Add", to, away), axis=1)
    mean = g.add("Div", g.add("Sum", *scores), g.constant(3.0, np.float32))
    return g.model(inputs, [boxes, mean], domains)


@dataclass(frozen=True)
class Pair:
    """A model with polyop's nodes, the same model with standard operators, and inputs of both."""

    title: str
    make: Callable[[], tuple[onnx.ModelProto, onnx.ModelProto, dict[str, np.ndarray]]]
    tolerance: float
    in_openvino: bool = True  # whether it can read the standard operators

    def case(self) -> Case:
        def make(threads: int) -> Contest:
            ours, theirs, inputs = self.make()
            rivals: dict[str, Run] = {"ONNX Runtime, standard operators": model_run(theirs, inputs, threads)}
            if self.in_openvino:
                rivals["OpenVINO, standard operators"] = model_in_openvino(theirs, inputs, threads)
            return Contest(model_run(ours, inputs, threads), rivals, tolerance=self.tolerance)

        return Case("whole model", self.title, make)


def super_resolution() -> tuple[onnx.ModelProto, onnx.ModelProto, dict[str, np.ndarray]]:
    image = np.random.default_rng(2).random((1, 3, 120, 180), np.float32)
    inputs = {"input": image, "factor": np.array([1, 1, 3, 3], np.float32)}
    ours, theirs = (onnx.load(ROOT / "models" / "srcnn" / name) for name in ("srcnn3.onnx", "srcnn2.onnx"))
    return ours, theirs, inputs


def pyramid(boxes: int) -> dict[str, np.ndarray]:
    """Returns the features of an image of 800 x 1216, and boxes in it."""
    rng = np.random.default_rng(1)
    inputs = {
        f"f{i}": rng.standard_normal((1, CHANNELS, 800 // s, 1216 // s)).astype(np.float32)
        for i, s in enumerate(STRIDES)
    }
    size = rng.uniform(16, 500, (boxes, 2))
    corner = rng.uniform(0, 1, (boxes, 2)) * np.maximum([1216, 800] - size, 1)
    inputs["boxes"] = np.concatenate([corner, corner + size], 1).astype(np.float32)
    return inputs


def detector() -> tuple[onnx.ModelProto, onnx.ModelProto, dict[str, np.ndarray]]:
    inputs = pyramid(2000)
    inputs["scores"] = (np.random.default_rng(5).permutation(2000) / 2000).astype(np.float32)
    return detector_head(inputs), standard_detector_head(inputs), inputs


def cascade_heads() -> tuple[onnx.ModelProto, onnx.ModelProto, dict[str, np.ndarray]]:
    inputs = pyramid(KEPT)
    return cascade(inputs, pooled, "mmdeploy"), cascade(inputs, pooled_by_standard_operators), inputs


def deformable_stage(inputs: dict[str, np.ndarray], blocks: int, standard: bool) -> onnx.ModelProto:
    """Bottlenecks of ResNet-50's fourth stage with a modulated deformable 3x3 convolution; random weights."""
    g, rng = Graph(), np.random.default_rng(3)
    wide, narrow = inputs["x"].shape[1], inputs["x"].shape[1] // 4

    def weight(filters: int, channels: int, size: int, gain: float = 1.0) -> str:
        values = rng.standard_normal((filters, channels, size, size)) * gain / (channels * size * size) ** 0.5
        return g.constant(values, np.float32)

    def conv3x3(x: str, filters: str) -> str:
        around = g.add("Conv", x, weight(27, narrow, 3), pads=[1, 1, 1, 1])
        offset = g.add("Slice", around, g.constant([0]), g.constant([18]), g.constant([1]))
        mask = g.add("Sigmoid", g.add("Slice", around, g.constant([18]), g.constant([27]), g.constant([1])))
        if standard:
            return g.add(
                "DeformConv", x, filters, offset, "", mask, kernel_shape=[3, 3], pads=[1, 1, 1, 1], offset_group=1
            )
        return g.add("mmcv::MMCVModulatedDeformConv2d", x, offset, mask, filters, stride=[1, 1], padding=[1, 1],
                     dilation=[1, 1], groups=1, deform_groups=1)  # fmt: skip

    x = "x"
    for _ in range(blocks):
        y = g.add("Relu", g.add("Conv", x, weight(narrow, wide, 1, 1.4)))
        y = g.add("Relu", conv3x3(y, weight(narrow, narrow, 3, 1.4)))
        x = g.add("Relu", g.add("Add", x, g.add("Conv", y, weight(wide, narrow, 1, 0.5))))
    return g.model(inputs, [x], () if standard else ("mmcv",), opset=19)


def deformable_backbone() -> tuple[onnx.ModelProto, onnx.ModelProto, dict[str, np.ndarray]]:
    inputs = {"x": np.random.default_rng(4).standard_normal((1, 1024, 50, 76)).astype(np.float32)}
    ours, theirs = (deformable_stage(inputs, 6, standard) for standard in (False, True))
    return ours, theirs, inputs


PAIRS = [
    Pair("SRCNN x3 of 3x120x180", super_resolution, tolerance=1e-3),
    Pair("detector head: FPN, 2,000 boxes, NMS, RoIAlign of 300, box head", detector, tolerance=1e-3),
    Pair("Cascade's three box heads: FPN, RoIAlign of 300", cascade_heads, tolerance=2e-2),
    # OpenVINO reads no DeformConv.
    Pair("six DCNv2 bottlenecks, 1024x50x76", deformable_backbone, tolerance=1e-2, in_openvino=False),
]
MODELS = [pair.case() for pair in PAIRS]
