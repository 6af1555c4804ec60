"""Every node of test_exported_nodes.py for an ONNX Runtime elsewhere, another processor's or another version's: models and
inputs as files, which elsewhere_child.py runs there, and its results beside this environment's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from single_node import model, session
from test_exported_nodes import Node

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
    """The error of a call there."""
    error = folder / f"{number}.error"
    return error.read_text() if error.exists() else None


def here(node: Node) -> list[np.ndarray]:
    return session(proto(node), threads=2).run(None, inputs(node))


def check(folder: Path, number: int, want: Sequence[np.ndarray]) -> None:
    """The call ran there with these results, but for roundings."""
    assert refusal(folder, number) is None, refusal(folder, number)
    got = list(np.load(folder / f"{number}.results.npz").values())
    for mine, theirs in zip(got, want, strict=True):
        assert mine.dtype == theirs.dtype
        if np.issubdtype(theirs.dtype, np.floating):
            np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)
        else:
            np.testing.assert_array_equal(mine, theirs)
