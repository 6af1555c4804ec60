# SPDX-License-Identifier: Apache-2.0
"""Compares polyop for aarch64, run by qemu, with this machine's: the results of every node, and the program.

tools/test_aarch64.sh builds it and runs this file; pytest does not collect it on its own.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from polyop._onnx.catalogue import find_node
from tests.support import elsewhere
from tests.support.exported_nodes import NODES, Node
from tests.support.processes import ROOT

SYSTEM = ROOT / ".deps" / "aarch64"
QEMU = [str(ROOT / ".deps" / "qemu" / "qemu-aarch64"), "-L", str(SYSTEM)]
TREE = ROOT / "build" / "portable" / "aarch64" / "tests"
OPERATORS = os.environ["POLYOP_OPS"].split(";")


def by_qemu(*command: str | Path, **environment: str) -> str:
    variables = [part for name, value in environment.items() for part in ("-E", f"{name}={value}")]
    done = subprocess.run([*QEMU, *variables, *map(str, command)], capture_output=True, text=True)
    assert done.returncode == 0, f"{command} failed:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def operator(node: Node) -> str:
    return find_node(*node.name.split("::"), node.attributes)[0]["name"]


CALLS = [node for node in NODES if OPERATORS == ["all"] or operator(node) in OPERATORS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs all calls in one process: under qemu, importing ONNX Runtime takes most of the time."""
    folder = tmp_path_factory.mktemp("aarch64")
    elsewhere.write(CALLS, folder)
    python = SYSTEM / "usr" / "bin" / "python3"
    library = TREE / "lib" / "libpolyop_onnxruntime.so"
    by_qemu(python, elsewhere.CHILD, library, folder, PYTHONPATH=str(SYSTEM / "packages"))
    return folder


def test_every_operator_is_called():
    assert {operator(node) for node in CALLS} >= {name for name in OPERATORS if name != "all"}


@pytest.mark.parametrize("number", range(len(CALLS)), ids=lambda number: f"{CALLS[number].name}-{number}")
def test_results_equal_those_of_this_processor(folder: Path, number: int):
    elsewhere.check(folder, number, elsewhere.here(CALLS[number]))


def test_program_output_equals_that_of_this_processor(tmp_path: Path, program: str):
    image = np.random.default_rng(0).random((1, 3, 20, 30), dtype=np.float32)
    np.savez(tmp_path / "in.npz", input=image, factor=np.array([1, 1, 2.5, 2.5], np.float32))
    srcnn = ROOT / "models" / "srcnn" / "srcnn3.onnx"
    arguments = ["run", srcnn, "-i", tmp_path / "in.npz", "-o"]
    subprocess.run([program, *map(str, arguments), str(tmp_path / "x86.npz")], check=True, capture_output=True)
    (runtime,) = (SYSTEM / "packages" / "onnxruntime" / "capi").glob("libonnxruntime.so*")
    by_qemu(TREE / "bin" / "polyop", *arguments, tmp_path / "arm.npz", POLYOP_ONNXRUNTIME=str(runtime))
    want, got = np.load(tmp_path / "x86.npz"), np.load(tmp_path / "arm.npz")
    assert want.files == got.files
    assert want.files
    for name in want.files:
        np.testing.assert_allclose(got[name], want[name], rtol=1e-4, atol=1e-5)
