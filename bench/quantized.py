# SPDX-License-Identifier: Apache-2.0
"""Nodes between DequantizeLinear and QuantizeLinear, before and after polyop optimize: time and accuracy.

    .venv/bin/python bench/quantized.py [--threads N] [--seconds S]

"f32" is polyop's node alone, "Q/DQ" the same node between DequantizeLinear and QuantizeLinear, "8 bits" polyop's node
that replaces the three. Times are medians, measured interleaved. Errors are root mean squares of the differences from
the f32 node's results, in steps of the output's 8 bits: half a step is the largest error of rounding alone (0.29 if
errors are distributed evenly), the rest is the input's (and the weights') rounding.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from timing import interleaved

import polyop

RNG = np.random.default_rng(0)


def numbers(*shape: int, low: float, high: float) -> np.ndarray:
    return RNG.uniform(low, high, shape).astype(np.float32)


def image(*shape: int) -> np.ndarray:
    """Returns activations: half of them 0, the others like the positive half of a normal distribution."""
    return np.maximum(RNG.standard_normal(shape), 0).astype(np.float32)


@dataclass
class Case:
    """real: from "x" to "y". eight: the name of the 8-bit node and its inputs after the image."""

    name: str
    real: Callable[[], list[onnx.NodeProto]]
    eight: tuple[str, list[str]]
    inputs: dict[str, np.ndarray]
    attributes: dict
    weight: np.ndarray | None = None


def boxes(count: int, height: float, width: float) -> np.ndarray:
    corner = RNG.uniform(0, 1, (count, 2)) * [width * 0.7, height * 0.7]
    size = RNG.uniform(0.05, 0.4, (count, 2)) * [width, height]
    return np.concatenate([corner, corner + size], 1).astype(np.float32)


def node(op: str, inputs: list[str], **attributes: object) -> Callable[[], list[onnx.NodeProto]]:
    domain, _, kind = op.rpartition("::")
    return lambda: [helper.make_node(kind, inputs, ["y"], domain=domain, **attributes)]


def cases() -> list[Case]:
    pooled = {"output_height": 7, "output_width": 7, "sampling_ratio": 2, "spatial_scale": 0.25}
    sampled = {"mode": "linear", "padding_mode": "zeros", "align_corners": 0}
    convolved = {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}
    rois = {"rois": boxes(512, 800, 1216), "images": np.zeros(512, np.int64)}
    grid = {"grid": numbers(1, 128, 128, 2, low=-1, high=1)}
    offsets = {
        "offset": numbers(1, 18, 64, 64, low=-2, high=2),
        "mask": numbers(1, 9, 64, 64, low=0, high=1),
        "bias": numbers(256, low=-0.1, high=0.1),
    }
    sides = np.array([[80, 80], [40, 40], [20, 20]])
    attended = {
        "shapes": sides,
        "starts": np.array([0, 6400, 8000]),
        "locations": numbers(1, 8400, 8, 3, 4, 2, low=0, high=1),
        "weights": numbers(1, 8400, 8, 3, 4, low=0, high=1 / 6),
    }
    attention = "MultiScaleDeformableAttention"
    return [
        Case(
            "RoIAlign, 512 boxes, 256 x 200 x 304", node("polyop::RoiAlign", ["x", "rois", "images"], **pooled),
            ("QuantizedRoiAlign", ["rois", "images"]), {"x": image(1, 256, 200, 304), **rois}, pooled,
        ),
        Case(
            "grid sampling, 64 x 128 x 128, scattered", node("polyop::GridSample", ["x", "grid"], **sampled),
            ("QuantizedGridSample", ["grid"]), {"x": image(1, 64, 128, 128), **grid}, sampled,
        ),
        Case(
            "cubic resize, 64 x 96 x 96 to 192 x 192", node("polyop::CubicResize", ["x", "sizes"]),
            ("QuantizedCubicResize", ["sizes"]), {"x": image(1, 64, 96, 96), "sizes": np.array([192, 192])}, {},
        ),
        Case(
            "deformable convolution, 3 x 3, 256 to 256 x 64 x 64",
            node("polyop::DeformConv", ["x", "weight", "offset", "bias", "mask"], **convolved),
            ("QuantizedDeformConv", ["codes", "steps", "offset", "bias", "mask"]), {"x": image(1, 256, 64, 64), **offsets},
            convolved, numbers(256, 256, 3, 3, low=-0.05, high=0.05),
        ),
        Case(
            "deformable attention, 8,400 queries, 3 levels, 8 heads of 32",
            node(f"mmcv::MMCV{attention}", ["x", "shapes", "starts", "locations", "weights"]),
            (f"Quantized{attention}", ["shapes", "starts", "locations", "weights"]),
            {"x": RNG.standard_normal((1, 8400, 8, 32)).astype(np.float32), **attended}, {},
        ),
    ]  # fmt: skip


def session(case: Case, kind: str, steps: dict[str, tuple[float, int]], threads: int) -> ort.InferenceSession:
    graph_inputs = dict(case.inputs)
    constants: dict[str, np.ndarray] = {}
    for name, (scale, zero) in steps.items():
        constants |= {f"{name}_scale": np.float32(scale), f"{name}_zero": np.array(zero, np.uint8)}
    weight = case.weight
    if weight is not None:
        filter_steps = (np.abs(weight).reshape(len(weight), -1).max(1) / 127).astype(np.float32)
        codes = np.round(weight / filter_steps[:, None, None, None]).astype(np.int8)
        constants |= {"codes": codes, "steps": filter_steps, "weight": weight}
    if kind == "f32":
        nodes, result = case.real(), "y"
    elif kind == "Q/DQ":
        before = helper.make_node("DequantizeLinear", ["q", "x_scale", "x_zero"], ["x"])
        after = helper.make_node("QuantizeLinear", ["y", "y_scale", "y_zero"], ["r"])
        nodes, result = [before, *case.real(), after], "r"
        if weight is not None:
            constants["weight"] = codes * filter_steps[:, None, None, None]
    else:
        op, inputs = case.eight
        scales = {
            "input_scale": steps["x"][0],
            "input_zero_point": steps["x"][1],
            "output_scale": steps["y"][0],
            "output_zero_point": steps["y"][1],
        }
        nodes = [helper.make_node(op, ["q", *inputs], ["r"], domain="polyop", **case.attributes, **scales)]
        result = "r"
    if kind != "f32":
        scale, zero = steps["x"]
        x = graph_inputs.pop("x")
        graph_inputs = {"q": np.clip(np.round(x / np.float32(scale)) + zero, 0, 255).astype(np.uint8), **graph_inputs}
    used = {name for n in nodes for name in n.input}
    graph = helper.make_graph(
        nodes,
        "case",
        [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in graph_inputs.items()
        ],
        [helper.make_tensor_value_info(result, TensorProto.FLOAT if kind == "f32" else TensorProto.UINT8, None)],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items() if n in used],
    )
    domains = [helper.make_opsetid("", 18), helper.make_opsetid("polyop", 1), helper.make_opsetid("mmcv", 1)]
    model = helper.make_model(graph, opset_imports=domains, ir_version=8)
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.register_custom_ops_library(polyop.get_onnxruntime_op_path())
    opened = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    opened.feeds = graph_inputs
    return opened


def scale_for(array: np.ndarray) -> tuple[float, int]:
    low, high = min(float(array.min()), 0.0), max(float(array.max()), 0.0)
    scale = (high - low) / 255
    return scale, round(-low / scale)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3)
    options = parser.parse_args()
    print(
        "| Node | f32, ms | Q/DQ, ms | 8 bits, ms | gain | error of Q/DQ | error of 8 bits |\n|---|---|---|---|---|---|---|"
    )
    for case in cases():
        plain = session(case, "f32", {}, options.threads)
        real = plain.run(None, plain.feeds)[0]
        steps = {"x": scale_for(case.inputs["x"]), "y": scale_for(real)}
        sessions = {"f32": plain, **{k: session(case, k, steps, options.threads) for k in ("Q/DQ", "8 bits")}}
        scale, zero = steps["y"]
        errors = {}
        for kind in ("Q/DQ", "8 bits"):
            got = (sessions[kind].run(None, sessions[kind].feeds)[0].astype(np.float64) - zero) * scale
            errors[kind] = float(np.sqrt(np.mean((got - real) ** 2))) / scale
        runs = {kind: partial(opened.run, None, opened.feeds) for kind, opened in sessions.items()}
        ms = {kind: float(np.median(t)) for kind, t in interleaved(runs, options.seconds, 10_000, 5).items()}
        print(
            f"| {case.name} | {ms['f32']:.2f} | {ms['Q/DQ']:.2f} | {ms['8 bits']:.2f} | {ms['Q/DQ'] / ms['8 bits']:.2f}x "
            f"| {errors['Q/DQ']:.3f} | {errors['8 bits']:.3f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
