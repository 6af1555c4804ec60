# SPDX-License-Identifier: Apache-2.0
"""RoiAlign and DeformConv by the formulas of polyop's operators (polyop/formulas.py), which torch traces."""

from __future__ import annotations

from importlib.util import find_spec
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import onnx_ir as ir
from onnx import TensorProto, helper

from polyop import formulas
from polyop._onnx.function_bodies import Argument, Body, Variant
from polyop.formulas import Call
from polyop.optimizing.matching import Builder
from polyop.optimizing.rewrites import Build, Without
from polyop.optimizing.rewrites._maker import Maker, RefusedError, kind_of
from polyop.optimizing.scope import Scope

OPERATORS = ("RoiAlign", "DeformConv")


def rewrite(scope: Scope, node: ir.Node, without: Without) -> Build:
    if find_spec("torch") is None:
        raise RefusedError("its formula needs torch: pip install torch")
    if (kind := kind_of(node.inputs[0])) is not ir.DataType.FLOAT:
        raise RefusedError(f"expected float32, got {kind.name.lower()}")
    return _roi_align(scope, node) if node.op_type == "RoiAlign" else _deform_conv(node)


def _roi_align(scope: Scope, node: ir.Node) -> Build:
    text, number = node.attributes.get_string, node.attributes.get_int
    default = "half_pixel" if scope.opset >= 16 else "output_half_pixel"
    attributes = {
        "output_height": number("output_height", 1),
        "output_width": number("output_width", 1),
        "spatial_scale": node.attributes.get_float("spatial_scale", 1.0),
        "sampling_ratio": number("sampling_ratio", 0),
        "mode": text("mode", "avg"),
        "aligned": text("coordinate_transformation_mode", default) == "half_pixel",
    }
    if attributes["mode"] != "avg":
        raise RefusedError("mode max differs between ONNX Runtime and the standard")

    def build(b: Builder, inputs: list[ir.Value]) -> list[ir.Value]:
        m = Maker(b)
        image = m.unsqueeze(m.cast(inputs[2], ir.DataType.FLOAT), 1)
        rois = b("Concat", image, inputs[1], axis=1)
        return [_traced(b, "roi_align", {"input": inputs[0], "rois": rois}, (4, 2), attributes)]

    return build


def _deform_conv(node: ir.Node) -> Build:
    number, numbers = node.attributes.get_int, node.attributes.get_ints
    attributes = {
        "strides": list(numbers("strides", [1, 1])),
        "pads": list(numbers("pads", [0, 0, 0, 0])),
        "dilations": list(numbers("dilations", [1, 1])),
        "group": number("group", 1),
        "offset_group": number("offset_group", 1),
    }
    names = [name for name, value in zip(("X", "W", "offset", "B", "mask"), node.inputs, strict=False) if value]
    places = {name: value for name, value in zip(("X", "W", "offset", "B", "mask"), node.inputs, strict=False) if value}

    def build(b: Builder, inputs: list[ir.Value]) -> list[ir.Value]:
        now = dict(zip(dict.fromkeys(places.values()), inputs, strict=True))
        given = {name: now[places[name]] for name in names}
        ranks = tuple(1 if name == "B" else 4 for name in names)
        return [_traced(b, "onnx_deform_conv", given, ranks, attributes)]

    return build


def _traced(
    b: Builder, operator: str, inputs: dict[str, ir.Value], ranks: tuple[int, ...], attributes: dict[str, Any]
) -> ir.Value:
    """Adds the nodes of an operator's formula, without the standard operator that its function has. Returns the
    result."""
    found = formulas.find(operator)
    assert found is not None  # both are polyop's own
    formula = cast(ModuleType, SimpleNamespace(formula=found.formula, example=found.example))
    body = Body(
        formula, [Argument(name, "f32", rank) for name, rank in zip(inputs, ranks, strict=True)],
        [Argument("output", "f32", 4)], {name: ["f32"] for name in inputs}, Call(b.opset, tuple(inputs), ranks),
    )  # fmt: skip
    nodes = body.nodes([Variant(attributes, {})])
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in (*inputs, "output")]
    graph = helper.make_graph(nodes, operator, values[:-1], values[-1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", b.opset)])
    now: dict[str | None, ir.Value] = dict(inputs)
    for node in ir.from_proto(model).graph:
        operands = [None if v is None else now[v.name] for v in node.inputs]
        made = b.node(node.op_type, operands, dict(node.attributes), len(node.outputs))
        now.update(zip((v.name for v in node.outputs), made, strict=True))
    return now["output"]
