"""Random graphs in ONNX Runtime and in OpenVINO: both give what their nodes give alone."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
import single_node
from portable_calls import operator_of
from random_graphs import MOST_NODES, RandomGraph, random_graph
from test_exported_nodes import Node

import polyop.openvino

QUICK, ALL = range(40), range(40, 640)


@pytest.fixture(scope="module")
def core() -> ov.Core:
    return polyop.openvino.core()


def in_openvino(core: ov.Core, source: bytes | Path, graph: RandomGraph) -> list[np.ndarray]:
    compiled = core.compile_model(core.read_model(source), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    results = compiled(graph.feeds)
    return [np.array(results[output]) for output in compiled.outputs]


def agree(graph: RandomGraph, got: list[np.ndarray]) -> None:
    """Integers, and f32 that nothing has rounded, to the last bit; else as rounding allows, beside the largest number."""
    assert len(got) == len(graph.results)
    for array, wire in zip(got, graph.results, strict=True):
        want = wire.array
        assert (array.dtype, array.shape) == (want.dtype, want.shape), wire.name
        if want.dtype.kind != "f" or (wire.exact and want.dtype == np.float32):
            np.testing.assert_array_equal(array, want, wire.name)
            continue
        largest = np.abs(want[np.isfinite(want)], dtype=np.float64).max(initial=1)
        slack = (2e-2 if want.dtype == np.float16 or has_halves(graph) else 1e-4) * largest
        np.testing.assert_allclose(
            array.astype(np.float64), want.astype(np.float64), rtol=0, atol=slack, err_msg=wire.name
        )


def has_halves(graph: RandomGraph) -> bool:
    return any(a.dtype == np.float16 for a in (*graph.feeds.values(), *(w.array for w in graph.wires)))


def check(core: ov.Core, seed: int, tmp_path: Path) -> None:
    graph = random_graph(seed)
    try:
        agree(graph, single_node.session(graph.model).run(None, graph.feeds))
        agree(graph, in_openvino(core, graph.model.SerializeToString(), graph))
        if seed % 4 == 0:
            ov.save_model(core.read_model(graph.model.SerializeToString()), tmp_path / "m.xml", compress_to_fp16=False)
            agree(graph, in_openvino(core, tmp_path / "m.xml", graph))
    except BaseException as error:
        error.add_note(f"seed {seed}: {graph}")
        raise


@pytest.mark.parametrize("seed", QUICK)
def test_a_random_graph(core: ov.Core, seed: int, tmp_path: Path) -> None:
    check(core, seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", ALL)
def test_another_random_graph(core: ov.Core, seed: int, tmp_path: Path) -> None:
    check(core, seed, tmp_path)


def test_the_graphs_have_what_they_are_to_have() -> None:
    """Else the tests above could pass for want of it."""
    has: Counter[str] = Counter()
    for seed in QUICK:
        graph = random_graph(seed)
        proto = graph.model.graph
        assert 1 <= len(proto.node) <= MOST_NODES
        assert {o.name for o in proto.output} == {w.name for w in graph.results}
        ours = [n for n in proto.node if n.name.startswith("node")]
        made = {name: node for node in proto.node for name in node.output}
        readers = Counter(name for node in proto.node for name in node.input)
        results = {o.name for o in proto.output}
        extents = [d for i in proto.input for d in i.type.tensor_type.shape.dim]
        has["one of polyop's nodes reads another's result"] += any(comes_from(ours, made, n) for n in ours)
        has["branches"] += any(readers[name] > 1 for name in made)
        has["shared inputs"] += any(readers[i.name] > 1 for i in proto.input)
        has["f16"] += has_halves(graph)
        has["integers that ONNX's nodes read"] += any(
            w in made and made[w] in ours and n not in ours for w, n in integer_edges(graph)
        )
        has["extents unknown"] += any(d.dim_param for d in extents)
        has["extents known"] += all(d.dim_value for d in extents)
        has["an input left out"] += any(len(n.input) < inputs_of(n) or "" in n.input for n in ours)
        has["an output that nobody reads"] += any(o not in readers and o not in results for n in ours for o in n.output)
    wanted = ["one of polyop's nodes reads another's result", "branches", "shared inputs", "f16",
              "integers that ONNX's nodes read", "extents unknown", "extents known", "an input left out",
              "an output that nobody reads"]  # fmt: skip
    assert all(has[what] >= 3 for what in wanted), has


def comes_from(ours: list, made: dict, node: object) -> bool:
    """Whether what the node reads was made of what another one of `ours` gave."""
    todo, seen = [made[i] for i in node.input if i in made], []
    while todo:
        one = todo.pop()
        if one in ours:
            return True
        seen.append(one)
        todo += [made[i] for i in one.input if i in made and made[i] not in seen]
    return False


def inputs_of(node: object) -> int:
    return len(operator_of(Node(f"{node.domain}::{node.op_type}", [], []))["inputs"])


def integer_edges(graph: RandomGraph) -> list[tuple[str, object]]:
    kinds = {wire.name: wire.array.dtype.kind for wire in graph.wires}
    return [(name, node) for node in graph.model.graph.node for name in node.input if kinds.get(name) == "i"]
