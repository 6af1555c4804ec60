"""Every node of the catalogue in OpenVINO, against ONNX Runtime: shapes known and unknown, from ONNX files and its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import openvino as ov
import pytest
import single_node
from test_exported_nodes import NODES, Node

import polyop.openvino

F32, I64 = np.float32, np.int64
EXACT = {"INFERENCE_PRECISION_HINT": "f32"}  # the default rounds other nodes to bf16 where the machine can


@pytest.fixture(scope="module")
def core() -> ov.Core:
    return polyop.openvino.core()


def model(node: Node, dynamic: bool = False) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    inputs = {f"i{i}": array for i, array in enumerate(node.inputs)}
    outputs = [f"o{i}" for i in range(len(node.outputs))]
    shapes = {n: [None] * a.ndim for n, a in inputs.items() if a is not None} if dynamic else None
    made = single_node.model(node.name, inputs, outputs, node.attributes, shapes)
    return made, {n: a for n, a in inputs.items() if a is not None}


def infer(core: ov.Core, source: onnx.ModelProto | Path, feeds: Mapping[str, np.ndarray], **config: object) -> list:
    read = core.read_model(source if isinstance(source, Path) else source.SerializeToString())
    compiled = core.compile_model(read, "CPU", {**EXACT, **config})
    results = compiled(dict(feeds))
    return [np.array(results[output]) for output in compiled.outputs]


def same(got: list[np.ndarray], want: list[np.ndarray]) -> None:
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        assert g.shape == w.shape
        if w.dtype.kind != "f":
            assert np.array_equal(g, w)
        else:
            np.testing.assert_allclose(g.astype(w.dtype), w, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dynamic", [False, True], ids=["known shapes", "unknown shapes"])
@pytest.mark.parametrize("node", NODES, ids=lambda node: node.name)
def test_every_node(core: ov.Core, node: Node, dynamic: bool) -> None:
    made, feeds = model(node, dynamic)
    same(infer(core, made, feeds), single_node.session(made).run(None, feeds))


@pytest.mark.parametrize("node", NODES, ids=lambda node: node.name)
def test_openvinos_own_files(core: ov.Core, node: Node, tmp_path: Path) -> None:
    made, feeds = model(node, dynamic=True)
    ov.save_model(core.read_model(made.SerializeToString()), tmp_path / "m.xml", compress_to_fp16=False)
    same(infer(core, tmp_path / "m.xml", feeds), single_node.session(made).run(None, feeds))
