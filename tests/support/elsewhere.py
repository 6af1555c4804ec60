# SPDX-License-Identifier: Apache-2.0
"""Runs every exported node in another ONNX Runtime: on another processor or of another version.

Models and inputs are written to files, elsewhere_child.py runs them, and `check` compares its results with those of
this environment.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx

from tests.support.exported_nodes import Node
from tests.support.single_node import model, session

CHILD = Path(__file__).with_name("elsewhere_child.py")


def inputs(node: Node) -> dict[str, np.ndarray]:
    return {f"in{i}": array for i, array in enumerate(node.inputs) if array is not None}


def proto(node: Node) -> onnx.ModelProto:
    given = {f"in{i}": array for i, array in enumerate(node.inputs)}
    return model(node.name, given, [f"out{o}" for o in range(len(node.outputs))], node.attributes)


def write(calls: Sequence[Node], folder: Path) -> None:
    for number, node in enumerate(calls):
        (folder / f"{number}.onnx").write_bytes(proto(node).SerializeToString())
        np.savez(folder / f"{number}.npz", **inputs(node))


def refusal(folder: Path, number: int) -> str | None:
    """Returns the error of a call there, or None."""
    error = folder / f"{number}.error"
    return error.read_text() if error.exists() else None


def here(node: Node) -> list[np.ndarray]:
    return session(proto(node), threads=2).run(None, inputs(node))


def check(folder: Path, number: int, want: Sequence[np.ndarray]) -> None:
    """Checks that the call ran there and gave these results, up to rounding."""
    assert refusal(folder, number) is None, refusal(folder, number)
    compare(list(np.load(folder / f"{number}.results.npz").values()), want)


def compare(got: Sequence[np.ndarray], want: Sequence[np.ndarray]) -> None:
    """Checks that results are equal up to rounding."""
    for mine, theirs in zip(got, want, strict=True):
        assert mine.dtype == theirs.dtype
        if np.issubdtype(theirs.dtype, np.floating):
            np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)
        else:
            np.testing.assert_array_equal(mine, theirs)
