# SPDX-License-Identifier: Apache-2.0
"""Every runtime refuses the same wrong calls with the same messages, because all of them use core/call.h.

For each call of one table: the operator in PyTorch, NumPy, JAX and through the C interface, the node in ONNX Runtime
and in the program, and, where CUDA's toolkit is installed, the plugin in TensorRT-RTX.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
import onnx
import pytest
import torch
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument, RuntimeException

import polyop.functional
import polyop.jax
import polyop.numpy
from tests.support.array_calls import definition_call
from tests.support.c_calls import call as call_from_c
from tests.support.single_node import model, session
from tests.support.tensorrt_rtx import HAS_PLUGINS, build_all
from tests.support.wrong_calls import WRONG, Wrong

IDS = [wrong.what for wrong in WRONG]


def cannot_run(wrong: Wrong, runtime: str, not_run: Callable[[str], None]) -> bool:
    """Returns whether the runtime cannot run the call, and reports the reason at the end of the run."""
    if runtime in wrong.not_in:
        not_run(f"not run in {runtime}: {wrong.not_in[runtime]}")
    return runtime in wrong.not_in


def proto_of(wrong: Wrong, static: bool = False) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Returns a model of the node and its inputs.

    With `static` the extents are known, otherwise even ranks are unknown, so that nothing is refused before the call.
    """
    inputs = {f"in{i}": array for i, array in enumerate(wrong.inputs)}
    attributes = wrong.attributes if wrong.node_attributes is None else wrong.node_attributes
    shapes = None if static else dict.fromkeys(inputs)
    return model(wrong.node, inputs, wrong.outputs, attributes, shapes), inputs


@pytest.mark.parametrize("wrong", WRONG, ids=IDS)
def test_pytorch(wrong: Wrong, not_run: Callable[[str], None]) -> None:
    if cannot_run(wrong, "torch", not_run):
        return
    tensors = [torch.from_numpy(array) for array in wrong.inputs]
    variadic = wrong.operator.startswith("multi_level")
    arguments = [tensors[0], tensors[1:]] if variadic else tensors
    with pytest.raises((RuntimeError, ValueError)) as error:
        getattr(torch.ops.polyop, wrong.operator)(*arguments, **wrong.attributes)
    assert wrong.message in str(error.value)
    assert f"polyop::{wrong.operator}" in str(error.value)


@pytest.mark.parametrize("wrong", WRONG, ids=IDS)
def test_c(wrong: Wrong, not_run: Callable[[str], None]) -> None:
    if cannot_run(wrong, "c", not_run):
        return
    with pytest.raises(ValueError, match=f"^polyop::{wrong.operator}: ") as error:
        call_from_c(wrong.operator, *wrong.inputs, **wrong.attributes)
    assert wrong.message in str(error.value)


@pytest.mark.parametrize("wrong", WRONG, ids=IDS)
def test_numpy(wrong: Wrong, not_run: Callable[[str], None]) -> None:
    if cannot_run(wrong, "c", not_run):
        return
    variadic = wrong.operator.startswith("multi_level")
    arguments = [wrong.inputs[0], wrong.inputs[1:]] if variadic else wrong.inputs
    with pytest.raises(ValueError, match=f"^polyop::{wrong.operator}: ") as error:
        definition_call(polyop.numpy, wrong.operator, arguments, wrong.attributes)
    assert wrong.message in str(error.value)


@pytest.mark.parametrize("wrong", WRONG, ids=IDS)
def test_jax(wrong: Wrong, not_run: Callable[[str], None]) -> None:
    if cannot_run(wrong, "c", not_run):
        return
    variadic = wrong.operator.startswith("multi_level")
    arguments = [wrong.inputs[0], wrong.inputs[1:]] if variadic else wrong.inputs
    with pytest.raises((ValueError, jax.errors.JaxRuntimeError)) as error:
        definition_call(polyop.jax, wrong.operator, arguments, wrong.attributes)
    assert f"polyop::{wrong.operator}: " in str(error.value)
    assert wrong.message in str(error.value)


@pytest.mark.parametrize("wrong", WRONG, ids=IDS)
def test_onnxruntime(wrong: Wrong, not_run: Callable[[str], None]) -> None:
    if cannot_run(wrong, "onnxruntime", not_run):
        return
    proto, feeds = proto_of(wrong)
    with pytest.raises((InvalidArgument, Fail, RuntimeException)) as error:
        session(proto).run(None, feeds)
    assert wrong.message in str(error.value)
    assert f"{wrong.node} (node 'node')" in str(error.value)


@pytest.mark.parametrize("wrong", WRONG, ids=IDS)
def test_program(wrong: Wrong, program: str, tmp_path: Path, not_run: Callable[[str], None]) -> None:
    if cannot_run(wrong, "program", not_run):
        return
    proto, feeds = proto_of(wrong)
    onnx.save(proto, tmp_path / "model.onnx")
    np.savez(tmp_path / "inputs.npz", **feeds)
    done = subprocess.run(
        [program, "run", tmp_path / "model.onnx", "-i", tmp_path / "inputs.npz"],
        capture_output=True,
        text=True,
        check=False,
    )
    # A wrong attribute is a fault of the file, and a wrong tensor one of the call.
    code = 3 if wrong.message.startswith("attribute ") else 1
    assert done.returncode == code, done.stdout + done.stderr
    said = " ".join(done.stderr.split())
    assert wrong.message in said
    assert f"{wrong.node} (node 'node')" in said


if HAS_PLUGINS:

    @pytest.fixture(scope="module")
    def answers() -> dict[str, dict]:
        calls = [wrong for wrong in WRONG if "tensorrt" not in wrong.not_in]
        cases = [{"model": proto_of(wrong, static=True)[0].SerializeToString()} for wrong in calls]
        return {wrong.what: answer for wrong, answer in zip(calls, build_all(cases), strict=True)}

    @pytest.mark.parametrize("wrong", WRONG, ids=IDS)
    def test_tensorrt(wrong: Wrong, answers: dict[str, dict], not_run: Callable[[str], None]) -> None:
        if cannot_run(wrong, "tensorrt", not_run):
            return
        answer = answers[wrong.what]
        assert "error" in answer
        assert wrong.message in answer["said"]
