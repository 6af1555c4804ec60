# SPDX-License-Identifier: Apache-2.0
"""optimize infers no fact from dynamic sizes that are equal by chance."""

from __future__ import annotations

from itertools import chain

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
import pytest

from polyop.optimizing import optimize
from polyop.optimizing.inputs import candidates, equal_sizes, of_other_sizes, of_size_one

IMAGES = "(float[N, C, H, W] x, float[N, C, H2, W2] y, float[B, L] z, float[?, ?] t) => (u) { u = Identity(x) }"


def _model(text: str, opset: int = 18) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> g {text}')


def _remainder(a: str, b: str) -> onnx.ModelProto:
    return _model(f"(float[{a}] a, float[{b}] b) => (y) {{ y = Mod<fmod = 1>(a, b) }}")


def test_dimensions_of_different_names_have_different_sizes() -> None:
    graph = ir.from_proto(_model(IMAGES)).graph
    first = next(candidates(graph, {}, {}, 0))
    runs = [first, *(next(of_other_sizes(graph, {}, first, seed)) for seed in (1, 2))]
    for feeds in runs:
        assert feeds["x"].shape[:2] == feeds["y"].shape[:2]
        sizes = [*feeds["x"].shape[1:], *feeds["y"].shape[2:], feeds["z"].shape[1], feeds["t"].shape[1]]
        batches = [] if feeds is first else [feeds[name].shape[0] for name in "xzt"]
        assert len({*sizes, *batches}) == len(sizes + batches), sizes
    assert [first[name].shape[0] for name in "xzt"] == [1, 1, 1]
    assert equal_sizes(graph, runs) == []
    assert list(of_size_one(graph, {}, runs)) == []


def test_equal_sizes_that_the_user_gives_differ_in_other_runs() -> None:
    graph = ir.from_proto(_model(IMAGES)).graph
    first = next(candidates(graph, {}, {"x": (1, 3, 640, 640), "y": (1, 3, 640, 640)}, 0))
    assert first["x"].shape == (1, 3, 640, 640)
    others = [next(of_other_sizes(graph, {}, first, seed)) for seed in (1, 2)]
    for feeds in others:
        images = [*feeds["x"].shape[2:], *feeds["y"].shape[2:]]
        assert len(set(images)) == 4
        assert all(size % 32 == 0 and size != 640 for size in images)


def test_other_sizes_are_at_least_half() -> None:
    """Of an image of 8 pixels, a pooled tensor may be empty, and ONNX Runtime's Resize then divides by zero."""
    graph = ir.from_proto(_model("(float[1, 3, H, W] x) => (u) { u = Identity(x) }")).graph
    first = next(candidates(graph, {}, {"x": (1, 3, 24, 24)}, 0))
    others = [feeds["x"].shape[2:] for seed in (1, 2) for feeds in of_other_sizes(graph, {}, first, seed)]
    assert min(min(sizes) for sizes in others) == 12


@pytest.mark.parametrize(("a", "b", "shapes"), [
    ("N", "M", {}), ("N", "M", {"a": (3000,), "b": (3000,)}), ("N", "3000", {"a": (3000,)}),
    ("N, 4", "M, 4", {}), ("B, 7", "C, 7", {}),
])  # fmt: skip
def test_operands_that_may_be_broadcast_are_kept(a: str, b: str, shapes: dict[str, tuple[int, ...]]) -> None:
    """The model accepts equal sizes, or 1: in runs with equal sizes alone, SpecialBinary would be right."""
    model = _remainder(a, b)
    report = optimize(model, shapes=shapes, all=True)
    assert not any(report.replaced.values()), str(report)
    assert report.model is not None
    feeds = {
        name: np.float32([[5.5] * 7]).reshape(1, 7)[:, : int(text.split(",")[-1])]
        if "," in text
        else np.full(1 if name == "a" else 3000, 5.5, np.float32)
        for name, text in (("a", a), ("b", b))
    }
    (expected,) = ort.InferenceSession(model.SerializeToString()).run(None, feeds)
    (got,) = ort.InferenceSession(report.model.SerializeToString()).run(None, feeds)
    assert np.array_equal(got, expected)


def test_operands_of_the_same_sizes_are_replaced() -> None:
    report = optimize(_remainder("N, M", "N, M"), all=True)
    assert sum(report.replaced.values()) == 1, str(report)


def test_sizes_that_the_model_needs_to_be_equal_are_stated() -> None:
    report = optimize(_model("(float[N, K] x, float[L, M] y) => (z, t) { z = MatMul(x, y) t = Tan(z) }"), all=True)
    assert "the dynamic sizes K and L were equal in all runs, because the model rejects others" in report.lines()
    assert sum(report.replaced.values()) == 1, str(report)
    assert not list(chain(*(note for note in report.notes if "rejects the others" in note)))
