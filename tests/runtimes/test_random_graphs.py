# SPDX-License-Identifier: Apache-2.0
"""Random graphs in ONNX Runtime and in OpenVINO: the results equal those of their nodes run alone."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import openvino as ov
import pytest

import polyop.openvino
from tests.support import single_node
from tests.support.exported_nodes import Node
from tests.support.portable_calls import operator_of
from tests.support.random_graphs import MAX_NODES, RandomGraph, random_graph

QUICK, ALL = range(40), range(40, 640)


@pytest.fixture(scope="module")
def core() -> ov.Core:
    return polyop.openvino.core()


def in_openvino(core: ov.Core, source: bytes | Path, graph: RandomGraph) -> list[np.ndarray]:
    compiled = core.compile_model(core.read_model(source), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    results = compiled(graph.feeds)
    return [np.array(results[output]) for output in compiled.outputs]


def agree(graph: RandomGraph, got: list[np.ndarray]) -> None:
    """Integers, and f32 that nothing has rounded, must be equal; others may differ by rounding, relative to the largest
    number.
    """
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
def test_random_graph(core: ov.Core, seed: int, tmp_path: Path) -> None:
    check(core, seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", ALL)
def test_more_random_graphs(core: ov.Core, seed: int, tmp_path: Path) -> None:
    check(core, seed, tmp_path)


def test_graphs_have_the_required_variety() -> None:
    """The tests above are meaningful only if the graphs have all of these features."""
    has: Counter[str] = Counter()
    for seed in QUICK:
        graph = random_graph(seed)
        proto = graph.model.graph
        assert 1 <= len(proto.node) <= MAX_NODES
        assert {o.name for o in proto.output} == {w.name for w in graph.results}
        ours = [n for n in proto.node if n.name.startswith("node")]
        producers = {name: node for node in proto.node for name in node.output}
        readers = Counter(name for node in proto.node for name in node.input)
        results = {o.name for o in proto.output}
        extents = [d for i in proto.input for d in i.type.tensor_type.shape.dim]
        has["one of polyop's nodes reads another's result"] += any(depends_on(ours, producers, n) for n in ours)
        has["branches"] += any(readers[name] > 1 for name in producers)
        has["shared inputs"] += any(readers[i.name] > 1 for i in proto.input)
        has["f16"] += has_halves(graph)
        has["integers that ONNX's nodes read"] += any(
            w in producers and producers[w] in ours and n not in ours for w, n in integer_edges(graph)
        )
        has["extents unknown"] += any(d.dim_param for d in extents)
        has["extents known"] += all(d.dim_value for d in extents)
        has["an input left out"] += any(len(n.input) < inputs_of(n) or "" in n.input for n in ours)
        has["an output that nobody reads"] += any(o not in readers and o not in results for n in ours for o in n.output)
    required = ["one of polyop's nodes reads another's result", "branches", "shared inputs", "f16",
              "integers that ONNX's nodes read", "extents unknown", "extents known", "an input left out",
              "an output that nobody reads"]  # fmt: skip
    assert all(has[what] >= 3 for what in required), has


def depends_on(ours: list, producers: dict, node: object) -> bool:
    """Returns whether the node reads, directly or indirectly, an output of another node in `ours`."""
    todo, seen = [producers[i] for i in node.input if i in producers], []
    while todo:
        one = todo.pop()
        if one in ours:
            return True
        seen.append(one)
        todo += [producers[i] for i in one.input if i in producers and producers[i] not in seen]
    return False


def inputs_of(node: object) -> int:
    return len(operator_of(Node(f"{node.domain}::{node.op_type}", [], []))["inputs"])


def integer_edges(graph: RandomGraph) -> list[tuple[str, object]]:
    kinds = {wire.name: wire.array.dtype.kind for wire in graph.wires}
    return [(name, node) for node in graph.model.graph.node for name in node.input if kinds.get(name) == "i"]
