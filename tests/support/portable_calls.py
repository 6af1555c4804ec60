# SPDX-License-Identifier: Apache-2.0
"""Calls of operators that have functions, models of such nodes, and runs with and without polyop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

from polyop import formulas
from polyop._onnx.catalogue import find_node
from tests.support.exported_nodes import NODES, Node, boxes, f, rois, rotated_rois
from tests.support.single_node import DTYPES, model

F32, I64 = np.float32, np.int64
OPSET = 18
EMPTY = np.empty


def larger(images_and_boxes: np.ndarray) -> np.ndarray:
    return images_and_boxes * np.array([1, 3, 3, 3, 3], F32)


pool = {"output_height": 2, "output_width": 2, "spatial_scale": 0.5, "aligned": 0}
# Calls in addition to exported_nodes.NODES: empty inputs, samples outside, NaN, other attributes.
EDGES = [
    Node("mmcv::MMCVRoiAlign", [f(2, 3, 6, 7), EMPTY((0, 5), F32)], [(F32, (0, 3, 2, 2))], {**pool, "mode": "max"}),
    Node("mmcv::MMCVRoiAlign", [f(2, 3, 6, 7), larger(rois(7))], [(F32, (7, 3, 2, 2))], {**pool, "mode": "max", "sampling_ratio": 0}),
    Node("mmcv::MMCVRoiAlign", [f(1, 3, 6, 7), larger(rois(7, 1))], [(F32, (7, 3, 2, 2))], {**pool, "mode": "avg", "sampling_ratio": 0}),
    Node("mmcv::MMCVRoIAlignRotated", [f(2, 3, 6, 7), rotated_rois(9)], [(F32, (9, 3, 2, 2))], {**pool, "sampling_ratio": 0}),
    Node("mmcv::MMCVDeformConv2d", [f(2, 4, 7, 8), f(2, 24, 3, 4) * 9 - 4, f(2, 2, 3, 2)], [(F32, (2, 2, 3, 4))],
         {"stride": [2], "padding": [0, 1], "dilation": [1, 3], "groups": 2, "deform_groups": 2}),
    Node("mmcv::MMCVDeformConv2d", [f(1, 6, 5, 5), np.full((1, 18, 3, 3), np.nan, F32), f(6, 1, 3, 3)], [(F32, (1, 6, 3, 3))],
         {"groups": 6}),
    Node("mmcv::cummax", [np.array([[1, np.nan, 3], [-np.inf, -np.inf, 2], [4, 4, 4]], F32)], [(F32, (3, 3)), (I64, (3, 3))], {"dim": 1}),
    Node("mmcv::cummin", [np.array([2, 1, 1, 5], F32)], [(F32, (4,)), (I64, (4,))], {"dim": 0}),
    *(Node("polyop::CumProd", [x], [(F32, x.shape)], {"axis": 1, "exclusive": 1, "reverse": 1})
      for x in (EMPTY((2, 0, 3), F32), EMPTY((0, 4), F32))),
    Node("polyop::CumProd", [np.array([1, 0, np.inf, 2, np.nan], F32)], [(F32, (5,))]),
    Node("polyop::CumSum", [np.arange(-5, 5, dtype=I64)], [(I64, (10,))], {"exclusive": 1}),
    Node("polyop::CumSum", [EMPTY((3, 0), F32)], [(F32, (3, 0))]),
    Node("polyop::CumProd", [np.array(3, F32)], [(F32, ())], {"exclusive": 1}),
    Node("mmcv::MMCVCornerPool", [f(1, 1, 1, 9)], [(F32, (1, 1, 1, 9))], {"mode": 2}),
    Node("mmcv::NonMaxSuppression", [boxes(40), np.round(f(40), 1)], [(I64, None)], {"iou_threshold": 0.2, "offset": 1}),
    Node("mmcv::NonMaxSuppression", [boxes(2, 20), f(2, 3, 20)], [(np.int32, (120, 3))],
         {"max_output_boxes_per_class": 0, "iou_threshold": 0.3, "score_threshold": 0.4, "center_point_box": 1}),
    Node("mmdeploy::TRTBatchedNMS", [boxes(2, 30, 3) / 20, np.round(f(2, 30, 3), 1)], [(F32, (2, 50, 5)), (np.int32, (2, 50)), (np.int32, (2, 50))],
         {"background_label_id": 1, "num_classes": 3, "topk": 12, "keep_topk": 50, "score_threshold": 0.3, "iou_threshold": 0.1,
          "clip_boxes": 1, "return_index": 1}),
    *(Node("polyop::EfficientNMSX_TRT", [detected, np.round(f(2, 20, 3), 1), *anchors],
           [(np.int32, (2, 1)), (F32, (2, 15, 4)), (F32, (2, 15)), (np.int32, (2, 15)), (np.int32, (2, 15))],
           {"score_threshold": 0.3, "iou_threshold": 0.4, "background_class": 1, "max_output_boxes": 15,
            "score_activation": coding, "box_coding": coding, "class_agnostic": agnostic})
      for detected, anchors, coding, agnostic in ((boxes(2, 20), [], 0, 1), (boxes(2, 20, 3), [], 0, 1), (boxes(2, 20, 3), [boxes(1, 20)], 1, 0),
                                                  (boxes(2, 20), [boxes(2, 20)], 0, 0))),
    Node("mmdeploy::MMCVMultiLevelRoiAlign", [np.concatenate([np.zeros((6, 1), F32), boxes(6) * 20], 1), f(1, 2, 30, 30), f(1, 2, 15, 15), f(1, 2, 8, 8)],
         [(F32, (6, 2, 3, 3))], {"output_height": 3, "output_width": 3, "sampling_ratio": 0, "pool_mode": 0, "aligned": 0,
                                 "featmap_strides": [4.0, 8.0, 16.0], "roi_scale_factor": 0.0, "finest_scale": 30}),
    Node("custom::knnquery", [np.array(9, I64), np.round(f(20, 3) * 3), np.array([3, 20], I64)], [(np.int32, (20, 9)), (F32, (20, 9))]),
    Node("mmdeploy::GatherTopk", [f(9, 2, 3), np.array([8, 0], I64)], [(F32, (2, 2, 3))]),
    *(Node("polyop::CubicResize", [f(1, 2, 5, 6), np.array(sizes, I64)], [(F32, (1, 2, *sizes))],
           {"coordinate_transformation_mode": mode, "cubic_coeff_a": -0.5, "exclude_outside": 1})
      for mode, sizes in (("align_corners", (9, 3)), ("asymmetric", (12, 7)), ("pytorch_half_pixel", (1, 13)))),
    Node("mmdeploy::TRTBicubicInterpolate", [f(1, 2, 5, 6)], [(F32, (1, 2, 7, 9))], {"scale_factor": [1.5], "align_corners": 1}),
    Node("custom::torch_cluster_grid", [np.array([[0.1, 7], [np.nan, 1], [3, 3]], F32), np.array([0.5, 2], F32)], [(I64, (3,))]),
    Node("mmcv::MMCVRotatedFeatureAlign", [f(1, 2, 4, 5), f(1, 4, 5, 5) * 9 - 3], [(F32, (1, 2, 4, 5))], {"points": 5}),
    Node("mmdeploy::MMCVMultiScaleDeformableAttention",
         [f(1, 6, 2, 3), np.array([[2, 3]], I64), np.array([0], I64), f(1, 4, 2, 1, 2, 2) * 3 - 1, f(1, 4, 2, 1, 2)], [(F32, (1, 4, 6))]),
    Node("mmdeploy::TRTDCNv3", [f(2, 5, 6, 6), f(2, 3, 6, 24) * 9 - 4, f(2, 3, 6, 12)], [(F32, (2, 3, 6, 6))],
         {"kernel_h": 3, "kernel_w": 2, "stride_h": 2, "pad_h": 1, "pad_w": 2, "dilation_w": 4, "group": 2, "group_channels": 3,
          "offset_scale": 1.5}),
    Node("mmdeploy::TRTDCNv3", [f(1, 3, 3, 2), np.full((1, 3, 3, 36), np.nan, F32), f(1, 3, 3, 18)], [(F32, (1, 3, 3, 2))],
         {"group": 2, "group_channels": 1}),
    Node("mmcv::MMCVDeformRoIPool", [f(2, 3, 6, 7), larger(rois(7)), f(7, 2, 2, 2) * 4 - 2], [(F32, (7, 3, 2, 2))],
         {"pooled_height": 2, "pooled_width": 2, "spatial_scale": 0.5, "sampling_ratio": 0.0, "gamma": 0.5}),
    Node("mmcv::PrRoIPool", [f(2, 3, 6, 7), np.concatenate([larger(rois(7)), [[0, 3, 3, 1, 4], [1, 0, np.nan, 2, 2]]]).astype(F32)],
         [(F32, (9, 3, 2, 2))], {"pooled_height": 2, "pooled_width": 2, "spatial_scale": 0.5}),
    Node("mmcv::MMCVBorderAlign", [f(1, 8, 6, 7), np.array([[[-3, 1, 9, 5], [0, np.inf, 2, 3]]], F32)], [(F32, (1, 2, 2, 4))], {"pool_size": 4}),
    Node("mmcv::MMCVPSAMask", [f(1, 27, 2, 6)], [(F32, (1, 12, 2, 6))], {"psa_type": 1, "mask_size": [9, 3]}),
]  # fmt: skip
CALLS = NODES + EDGES


def operator_of(node: Node) -> dict:
    return find_node(*node.name.split("::"), node.attributes)[0]


def has_body(node: Node) -> bool:
    """Returns whether the node can have a function. ONNX has no functions for nodes without a domain."""
    if node.name == "polyop::SpecialBinary" and node.attributes.get("function") != "elementary":
        return False
    return not node.name.startswith("::") and formulas.find(operator_of(node)["name"]) is not None


# Each call occurs once, because domains share operators.
WITH_BODIES = list({
    (n.name.split("::")[1], repr(n.attributes), tuple(None if a is None else (a.shape, a.dtype) for a in n.inputs)): n
    for n in CALLS
    if has_body(n)
}.values())  # fmt: skip
WITH_FORMULAS = [node for node in WITH_BODIES if hasattr(formulas.find(operator_of(node)["name"]), "formula")]


def name_of(node: Node) -> str:
    return node.name


def opset_of(node: Node) -> int:
    """Returns the opset of the model.

    ONNX samples volumes, and names its modes linear and cubic, since opset 20. DeformConv exists since opset 19.
    """
    newer = ("polyop::GridSample", "polyop::QuantizedGridSample", "polyop::QuantizedDeformConv")
    return 20 if node.inputs[0].ndim == 5 or node.name in newer else OPSET


def typed(
    proto: onnx.ModelProto, outputs: Sequence[tuple[type, tuple[int, ...] | None]], opset: int = OPSET
) -> onnx.ModelProto:
    """Sets the opset and the outputs' types.

    Extents are left open; an output whose shape depends on data has rank 1.
    """
    for info, (dtype, shape) in zip(proto.graph.output, outputs, strict=True):
        info.CopyFrom(
            helper.make_tensor_value_info(
                info.name, DTYPES[np.dtype(dtype)], [None] * (1 if shape is None else len(shape))
            )
        )
    next(o for o in proto.opset_import if o.domain == "").version = opset
    return proto


def dynamic_model(node: Node, half: bool = False) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Returns a model of this node whose extents are all symbolic, and its inputs."""
    kinds = operator_of(node)["inputs"]
    kinds = kinds + [kinds[-1]] * (len(node.inputs) - len(kinds))  # for a variadic input
    halves = [half and "f16" in kind["types"] for kind in kinds]
    inputs = {f"in{i}": _half(a) if halves[i] else a for i, a in enumerate(node.inputs)}
    feeds = {name: array for name, array in inputs.items() if array is not None}
    shapes = {name: [f"{name}_{d}" for d in range(a.ndim)] for name, a in feeds.items()}
    proto = model(node.name, inputs, [f"out{o}" for o in range(len(node.outputs))], node.attributes, shapes)
    half_types = {kind["type"] for kind in kinds if "f16" in kind["types"]}
    specs = operator_of(node)["outputs"]
    outputs = [
        (np.float16 if half and t == F32 and specs[min(o, len(specs) - 1)]["type"] in half_types else t, s)
        for o, (t, s) in enumerate(node.outputs)
    ]
    return typed(proto, outputs, opset_of(node)), feeds


def _half(array: np.ndarray | None) -> np.ndarray | None:
    return array if array is None or array.dtype != F32 else array.astype(np.float16)


def run_alone(proto: onnx.ModelProto, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Runs a model without polyop's library."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    return ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, feeds)


def assert_same(got: Sequence[np.ndarray], want: Sequence[np.ndarray], atol: float = 2e-5) -> None:
    for g, w in zip(got, want, strict=True):
        assert (g.dtype, g.shape) == (w.dtype, w.shape)
        np.testing.assert_allclose(g.astype(np.float64), w.astype(np.float64), rtol=atol, atol=atol)


def several(
    name: str,
    inputs: Mapping[str, np.ndarray],
    attributes: Sequence[Mapping[str, object]],
    rank: int,
    opset: int = OPSET,
) -> onnx.ModelProto:
    """Returns a model with one node of this name per entry of `attributes`, all with the same inputs."""
    domain, op_type = name.split("::")
    infos = [helper.make_tensor_value_info(n, DTYPES[a.dtype], [None] * a.ndim) for n, a in inputs.items()]
    nodes = [
        helper.make_node(op_type, list(inputs), [f"y{i}"], f"node{i}", domain=domain, **a)
        for i, a in enumerate(attributes)
    ]
    outputs = [helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, [None] * rank) for i in range(len(nodes))]
    graph = helper.make_graph(nodes, "g", infos, outputs)
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid(domain, 1)], ir_version=8
    )


# Code for in_runtime: runs the files of FOLDER and compares the results with the arrays next to them.
# Nodes whose functions need operators that older ONNX Runtimes lack: the cosine of doubles, and DeformConv.
NEWER = ["RoIAwarePool3d", "QuantizedDeformConv"]
OLDER = (
    f"NEWER = {NEWER}"
    + """
import glob
from pathlib import Path
done = 0
for file in sorted(glob.glob(FOLDER + "/*.onnx")):
    if any(name.encode() in Path(file).read_bytes() for name in NEWER):
        continue
    arrays = dict(np.load(Path(file).with_suffix(".npz")))
    options = ort.SessionOptions()
    options.log_severity_level = 4
    s = ort.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    for o, got in enumerate(s.run(None, {i.name: arrays[i.name] for i in s.get_inputs()})):
        want = arrays[f"want{o}"]
        assert (got.dtype, got.shape) == (want.dtype, want.shape), file
        np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=2e-5, atol=2e-5, err_msg=file)
    done += 1
print(done)
"""
)
