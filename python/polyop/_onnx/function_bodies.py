# SPDX-License-Identifier: Apache-2.0
"""Bodies of model-local functions: formulas as nodes of ONNX's own operators.

ONNX identifies a function by its name, so one body serves all nodes of that name in a file. Attributes that differ
between nodes are references in the body. A number that a formula only computes with is referenced directly; for other
attributes the body has an If per set of values, which ONNX Runtime folds when it loads the file.
"""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import onnx
from onnx import helper, numpy_helper

from polyop.formulas import Call, NoBodyError, Reference

_FLOATS = {"f32", "f16", "bf16", "f64"}
_TRACED_OPSETS = range(9, 21)  # the opsets that torch's tracing exporter can write; later opsets read its nodes as well


@dataclass(frozen=True)
class Argument:
    """An input or output, as the catalogue describes it."""

    name: str
    type: str
    """A type, `any`, or a type variable such as T."""
    rank: int | None
    """None if it varies."""


@dataclass(frozen=True)
class Variant:
    """A set of attribute values that some of the nodes share."""

    attributes: Mapping[str, Any]
    """All attributes of the definition, by its names."""
    written: Mapping[str, Any]
    """The attributes on the nodes, by the nodes' names."""


@dataclass
class Body:
    """The body of a function with these inputs and outputs."""

    module: ModuleType
    inputs: Sequence[Argument]
    """One by one, also for a variadic input. Trailing inputs that all nodes omit are missing."""
    outputs: Sequence[Argument]
    types: Mapping[str, Sequence[str]]
    """The types that the kernels accept, by the inputs' names."""
    call: Call
    references: Mapping[str, str] = field(default_factory=dict)
    """Float attributes that differ between nodes: the definition's names, mapped to the nodes' names."""

    def nodes(self, variants: Sequence[Variant]) -> list[onnx.NodeProto]:
        """Returns the body's nodes. All nodes have names, and the names of values are unique."""
        result = (
            [self._cast(self._choose(variants))] if len(variants) > 1 else [self._cast(self._statements(variants[0]))]
        )
        return name_nodes([node for part in result for node in part])

    # ---- one variant ---------------------------------------------------------------------------------------

    def _statements(self, variant: Variant) -> list[onnx.NodeProto]:
        if hasattr(self.module, "body"):
            attributes = {**variant.attributes, **{a: Reference(written) for a, written in self.references.items()}}
            text = self.module.body(self.call, **attributes)
            if text is not None:
                return _parse(text, [i.name for i in self.inputs], [o.name for o in self.outputs], self.call.opset)
        if not hasattr(self.module, "example"):
            raise NoBodyError("no body of standard operators exists for this call")
        return self._trace(variant)

    def _trace(self, variant: Variant) -> list[onnx.NodeProto]:
        """Traces the formula. torch's tracing exporter takes half a second, the other one half a minute."""
        import torch

        examples = self.module.example(self.call, **variant.attributes)
        present = [(i, tensor) for i, tensor in enumerate(examples) if tensor is not None]
        formula, slots = self.module.formula, len(examples)
        attributes, references = dict(variant.attributes), self.references

        class Formula(torch.nn.Module):
            def forward(self, *tensors: Any) -> Any:
                inputs: list[Any] = [None] * slots
                for (i, _), tensor in zip(present, tensors, strict=False):
                    inputs[i] = tensor
                given = dict(zip(references, tensors[len(present) :], strict=True))
                return formula(*inputs, **{**attributes, **given})

        names = [self.inputs[i].name for i, _ in present] + [reference_name(r) for r in references]
        values = [tensor for _, tensor in present] + [torch.tensor(float(attributes[r])) for r in references]
        file: Any = io.BytesIO()  # which torch accepts, but does not declare
        level = logging.getLogger("torch.onnx").level
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                Formula(),
                tuple(values),
                file,
                dynamo=False,
                input_names=names,
                output_names=[o.name for o in self.outputs],
                dynamic_axes={n: list(range(v.dim())) for n, v in zip(names, values, strict=True) if v.dim()},
                opset_version=min(self.call.opset, _TRACED_OPSETS[-1]),
            )
        logging.getLogger("torch.onnx").setLevel(level)
        return _without_repetitions(onnx.load_from_string(file.getvalue()), self.call.opset)

    # ---- several variants -------------------------------------------------------------------------------------------

    def _choose(self, variants: Sequence[Variant]) -> list[onnx.NodeProto]:
        """Returns nested Ifs that choose a variant; the last variant needs none."""
        differing = [k for k in variants[0].written if len({_key(v.written[k]) for v in variants}) > 1]
        ends = self._statements(variants[-1])
        for i in range(len(variants) - 2, -1, -1):
            result = _prefixed(self._statements(variants[i]), f"v{i}_", {a.name for a in self.inputs})
            other = _prefixed(ends, "e_", {a.name for a in self.inputs})
            conditions, condition = _is_variant(variants[i], i, differing, self.call.opset)
            branches = {
                "then_branch": self._branch(result, f"v{i}_", f"variant_{i}"),
                "else_branch": self._branch(other, "e_", f"not_{i}"),
            }
            ends = [*conditions, helper.make_node("If", [condition], [o.name for o in self.outputs], **branches)]
        return ends

    def _branch(self, nodes: list[onnx.NodeProto], prefix: str, name: str) -> onnx.GraphProto:
        return helper.make_graph(nodes, name, [], [onnx.ValueInfoProto(name=prefix + o.name) for o in self.outputs])

    # ---- types ---------------------------------------------------------------------------------------------

    def _cast(self, nodes: list[onnx.NodeProto]) -> list[onnx.NodeProto]:
        """Adds casts: formulas compute in float32 and index with int64, the file's nodes may have other types."""
        before: list[onnx.NodeProto] = []
        after: list[onnx.NodeProto] = []
        renamed: dict[str, str] = {}
        like: dict[str, str] = {}
        for reference, written in self.references.items():
            value = reference_name(reference)
            before.append(_constant(value, "value_float", written, onnx.AttributeProto.FLOAT))
        for argument in self.inputs:
            types = set(self.types[argument.name])
            if len(types) > 1 and types <= _FLOATS:
                suffix, to = "f32", onnx.TensorProto.FLOAT
            elif types == {"i32", "i64"}:
                suffix, to = "i64", onnx.TensorProto.INT64
            else:
                continue
            renamed[argument.name] = f"{argument.name}_{suffix}"
            like.setdefault(argument.type, argument.name)
            before.append(helper.make_node("Cast", [argument.name], [renamed[argument.name]], to=to))
        for argument in self.outputs:
            if argument.type in like:
                source = like[argument.type]
                renamed[argument.name] = f"{argument.name}_as_{source}"
                after.append(helper.make_node("CastLike", [renamed[argument.name], source], [argument.name]))
        for node in nodes:
            rename(node, lambda name: renamed.get(name, name))
        used = {name for node in nodes for name in _reads(node)}
        return [n for n in before if n.output[0] in used] + nodes + after


def reference_name(attribute: str) -> str:
    return f"attribute_{attribute}"


def name_nodes(nodes: list[onnx.NodeProto], prefix: str = "") -> list[onnx.NodeProto]:
    """Names all nodes: ONNX Runtime 1.20 rejects functions with unnamed nodes."""
    for i, node in enumerate(nodes):
        node.name = f"{prefix}{i}_{node.op_type}"
        for j, graph in enumerate(_subgraphs(node)):
            name_nodes(list(graph.node), f"{prefix}{i}_{j}_")
    return nodes


def _subgraphs(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    return [a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]


def _reads(node: onnx.NodeProto) -> list[str]:
    """Returns the names of the values that a node and its subgraphs read."""
    return [*node.input, *(name for g in _subgraphs(node) for inner in g.node for name in _reads(inner))]


def rename(node: onnx.NodeProto, new: Callable[[str], str]) -> None:
    """Renames values, in subgraphs too. Keeps the empty name, which stands for an omitted value."""
    for names in (node.input, node.output):
        names[:] = [new(name) if name else "" for name in names]
    for graph in _subgraphs(node):
        for info in (*graph.input, *graph.output):
            info.name = new(info.name)
        for inner in graph.node:
            rename(inner, new)


def _prefixed(nodes: list[onnx.NodeProto], prefix: str, outside: set[str]) -> list[onnx.NodeProto]:
    """Returns copies with prefixed value names, except for values in `outside` and values of attributes."""
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    for node in copies:
        rename(node, lambda n: n if n in outside or n.startswith("attribute_") else prefix + n)
    return copies


def _parse(text: str, inputs: Sequence[str], outputs: Sequence[str], opset: int) -> list[onnx.NodeProto]:
    header = f'<opset_import: ["" : {opset}], domain: "polyop">\nBody ({", ".join(inputs)}) => ({", ".join(outputs)})'
    return list(onnx.parser.parse_function(f"{header} {{ {text} }}").node)


def _constant(output: str, field: str, attribute: str, kind: onnx.AttributeProto.AttributeType) -> onnx.NodeProto:
    """Returns a Constant whose value is an attribute of the function's node."""
    node = helper.make_node("Constant", [], [output])
    node.attribute.append(onnx.AttributeProto(name=field, ref_attr_name=attribute, type=kind))
    return node


def _key(value: Any) -> Any:
    return tuple(value) if isinstance(value, (list, tuple)) else value


def _is_variant(variant: Variant, index: int, differing: Sequence[str], opset: int) -> tuple[list[onnx.NodeProto], str]:
    """Returns nodes that compare the attributes of the function's node with the variant's, and the name of the
    result."""
    kinds = onnx.AttributeProto
    nodes, parts = [], []
    for name in differing:
        value = variant.written[name]
        sample = value[0] if isinstance(value, (list, tuple)) and value else value
        if isinstance(sample, str):
            if opset < 19:
                raise NoBodyError(
                    f"nodes have different values of the string attribute '{name}'; comparing strings needs opset 19, got {opset}"
                )
            kind, plural = "string", isinstance(value, (list, tuple))
        else:
            kind, plural = "float" if isinstance(sample, float) else "int", isinstance(value, (list, tuple))
        field = f"value_{kind}{'s' if plural else ''}"
        number = getattr(kinds, kind.upper() + ("S" if plural else ""))
        got, expected, same = (f"{name}_{what}_{index}" for what in ("got", "expected", "same"))
        nodes += [
            _constant(got, field, name, number),
            helper.make_node("Constant", [], [expected], **{field: value}),
            helper.make_node("Equal", [got, expected], [same]),
        ]
        if plural:
            as_int, minimum = f"{same}_int", f"{same}_min"
            nodes += [
                helper.make_node("Cast", [same], [as_int], to=onnx.TensorProto.INT32),
                helper.make_node("ReduceMin", [as_int], [minimum], keepdims=0),
                helper.make_node("Cast", [minimum], [f"{same}_all"], to=onnx.TensorProto.BOOL),
            ]
            same = f"{same}_all"
        parts.append(same)
    while len(parts) > 1:
        both = f"{parts[0]}_and"
        nodes.append(helper.make_node("And", parts[:2], [both]))
        parts[:2] = [both]
    return nodes, parts[0]


def _without_repetitions(model: onnx.ModelProto, opset: int) -> list[onnx.NodeProto]:
    """Returns the nodes of a traced graph, including constants, without common subexpressions."""
    import onnx_ir as ir
    from onnx_ir.passes import common

    graph = ir.from_proto(model)
    for one in (
        common.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0),
        common.DeduplicateInitializersPass(),
        common.CommonSubexpressionEliminationPass(),
        common.RemoveUnusedNodesPass(),
    ):
        one(graph)
    traced = ir.to_proto(graph).graph
    names = {value: f"c{i}" for i, value in enumerate(t.name for t in traced.initializer)}
    interface = {info.name for info in (*traced.input, *traced.output)}
    values = (name for node in traced.node for name in node.output if name not in interface)
    names |= {value: f"t{i}" for i, value in enumerate(values)}
    nodes = [helper.make_node("Constant", [], [t.name], value=_unnamed(t)) for t in traced.initializer]
    for node in traced.node:
        node.ClearField("doc_string")
        node.ClearField("metadata_props")
        if node.op_type == "Reshape" and opset >= 14:  # a 0 in torch's shapes is a dimension of 0
            del node.attribute[:]
            node.attribute.append(helper.make_attribute("allowzero", 1))
        nodes.append(node)
    for node in nodes:
        rename(node, lambda name: names.get(name, name))
    return nodes


def _unnamed(tensor: onnx.TensorProto) -> onnx.TensorProto:
    return numpy_helper.from_array(numpy_helper.to_array(tensor))
