# SPDX-License-Identifier: Apache-2.0
"""Engines of TensorRT-RTX, which parses models and builds engines without a GPU."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import helper

from polyop import tensorrt as polyop_tensorrt
from tests.support.exported_nodes import Node
from tests.support.processes import ROOT, environment
from tests.support.single_node import DTYPES, model

RUNTIME = ROOT / ".deps" / "tensorrt-rtx"
HAS_PLUGINS = bool(polyop_tensorrt.get_tensorrt_op_path())
NO_ENGINE = "no engine was built: without CUDA there is no plugin library"


def build_all(cases: list[dict]) -> list[dict]:
    """Parses the models and builds their engines in a process with the library paths that TensorRT-RTX needs."""
    with tempfile.TemporaryDirectory() as folder:
        cases_path, answers_path = Path(folder, "cases"), Path(folder, "answers")
        cases_path.write_bytes(pickle.dumps(cases))
        variables = environment(
            RUNTIME, LD_LIBRARY_PATH=str(RUNTIME / "tensorrt_rtx_libs"), POLYOP_TENSORRT="tensorrt_rtx_bindings"
        )
        program = [
            sys.executable,
            str(ROOT / "tests" / "support" / "tensorrt_child.py"),
            str(cases_path),
            str(answers_path),
        ]
        done = subprocess.run(program, env=variables, capture_output=True, text=True, timeout=800, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        return pickle.loads(answers_path.read_bytes())


def model_of(node: Node, dynamic: bool) -> tuple[onnx.ModelProto, dict | None]:
    inputs = {f"in{i}": array for i, array in enumerate(node.inputs)}
    present = {name: array for name, array in inputs.items() if array is not None}
    shapes = {name: [f"{name}_{d}" for d in range(a.ndim)] for name, a in present.items()} if dynamic else None
    proto = model(node.name, inputs, [f"out{o}" for o in range(len(node.outputs))], node.attributes, shapes)
    for output, (dtype, shape) in zip(proto.graph.output, node.outputs, strict=True):
        output.CopyFrom(helper.make_tensor_value_info(output.name, DTYPES[np.dtype(dtype)], shape))
    # Values that determine shapes are constants of the model.
    constants = {
        "custom::knnquery": "in0",
        "custom::DynamicTRTResize": "in1",
        "Just_A_Scope_Name::DynamicTRTResize": "in1",
        "polyop::CubicResize": "in1",
        "polyop::RepeatIndices": "in1",
    }
    if node.name in constants:
        proto = polyop_tensorrt.preprocess_onnx(proto, {constants[node.name]: inputs[constants[node.name]]})
        present.pop(constants[node.name])
    return proto, {name: [a.shape] * 3 for name, a in present.items()} if dynamic else None


def case_of(node: Node, dynamic: bool) -> dict:
    proto, shapes = model_of(node, dynamic)
    return {"model": proto.SerializeToString(), "shapes": shapes}


def convert(program: str, model: Path, *arguments: str) -> dict:
    """Builds an engine with `polyop convert` and returns its report."""
    engine = model.with_suffix(".engine")
    done = subprocess.run(
        [program, "convert", str(model), "-o", str(engine), "--json", *arguments],
        env=environment(RUNTIME, POLYOP_TENSORRT="tensorrt_rtx_bindings"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert engine.stat().st_size > 1000
    needs = json.loads(Path(f"{engine}.json").read_text())
    report = json.loads(done.stdout)
    assert report["needs"] == needs
    return report


def plugins(report: dict) -> int:
    """Returns the number of plugin layers in the report of `convert`."""
    return sum(layer["type"].startswith("PLUGIN") for layer in report["layers"])
