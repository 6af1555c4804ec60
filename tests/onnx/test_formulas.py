# SPDX-License-Identifier: Apache-2.0
"""Formulas in torch, compared with the kernels, and the decompositions that use them."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import torch

import polyop.functional
from polyop import formulas
from polyop._onnx.catalogue import find_node, operators
from polyop._onnx.node_groups import values
from polyop._torch.operators import OPERATORS
from tests.support.exported_nodes import Node, rois
from tests.support.portable_calls import WITH_BODIES, WITH_FORMULAS, name_of, operator_of


def test_no_operator_has_both_a_formula_and_a_reason_for_lacking_one() -> None:
    with_formulas = {o["name"] for o in operators() if formulas.find(o["name"]) is not None}
    assert not [o["name"] for o in operators() if o["not_portable"] and o["name"] in with_formulas]
    assert {operator_of(node)["name"] for node in WITH_BODIES} == with_formulas
    assert len(with_formulas) >= 23


@pytest.mark.parametrize("node", WITH_FORMULAS, ids=name_of)
def test_formula_equals_the_kernel(node: Node) -> None:
    domain, op_type = node.name.split("::")
    operator = OPERATORS[find_node(domain, op_type, node.attributes)[0]["name"]]
    attributes = values(onnx.helper.make_node(op_type, [], [], domain=domain, **node.attributes))
    attributes = {name: v for name, v in attributes.items() if v is not None}
    tensors = [None if a is None else torch.from_numpy(np.ascontiguousarray(a)) for a in node.inputs]
    tensors += [None] * (len(operator.inputs) - len(tensors))
    variadic = next((i for i, spec in enumerate(operator.inputs) if spec.variadic), None)
    args = tensors if variadic is None else [*tensors[:variadic], tensors[variadic:]]
    want = operator.overload(*args, **attributes)
    got = formulas.decompositions()[operator.overload](*args, **attributes)
    pairs = zip(*((r,) if isinstance(r, torch.Tensor) else r for r in (got, want)), strict=True)
    for g, w in pairs:
        torch.testing.assert_close(g, w, rtol=2e-5, atol=2e-5, equal_nan=True)


def test_decomposes_a_program() -> None:
    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor, offset: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
            return polyop.corner_pool(polyop.deform_conv2d(x, offset, weight, padding=1), "left")

    inputs = (torch.rand(1, 4, 6, 7), torch.rand(1, 18, 6, 7), torch.rand(3, 4, 3, 3))
    program = torch.export.export(Net(), inputs).run_decompositions(formulas.decompositions())
    assert not any("polyop" in str(node.target) for node in program.graph.nodes)
    torch.testing.assert_close(program.module()(*inputs), Net()(*inputs))


def test_a_compiler_can_use_formulas() -> None:
    from torch._dynamo.backends.common import aot_autograd

    seen: list[str] = []

    def compiler(graph: torch.fx.GraphModule, _: object) -> torch.fx.GraphModule:
        seen.extend(str(node.target) for node in graph.graph.nodes)
        return graph

    x, boxes_of = torch.rand(2, 3, 8, 8), torch.from_numpy(rois(5))
    compiled = torch.compile(
        lambda a, b: polyop.roi_align(a, b, 2, 0.5, 2),
        backend=aot_autograd(fw_compiler=compiler, decompositions=formulas.decompositions()),
    )
    torch.testing.assert_close(compiled(x, boxes_of), polyop.roi_align(x, boxes_of, 2, 0.5, 2))
    assert seen
    assert not any("polyop" in target for target in seen)
