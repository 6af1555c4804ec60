# SPDX-License-Identifier: Apache-2.0
"""polyop optimize: the patterns that it finds in graphs of both exporters, the graphs that it leaves unchanged, and the
new file.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime as ort
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from transformers.models.mask2former.modeling_mask2former import multi_scale_deformable_attention as first_variant
from transformers.models.rt_detr_v2.modeling_rt_detr_v2 import multi_scale_deformable_attention_v2 as second_variant

import polyop
from polyop.optimizing import optimize
from tests.support.deformable_attention import ATTENTION, SIZES, First, inputs, write
from tests.support.exported import nodes

pytestmark = pytest.mark.filterwarnings("ignore")


class Second(torch.nn.Module):
    """Points are [.., points of all levels, 2], as in RT-DETRv2."""

    def __init__(self, points: list[int], method: str = "default") -> None:
        super().__init__()
        self.points, self.method = points, method

    def forward(self, value: torch.Tensor, locations: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        return second_variant(value * 1.5, SIZES, locations, weights.softmax(-1), self.points, self.method) + 1


class Pyramid(torch.nn.Module):
    """The levels are images of any size, so that the graph computes their sizes."""

    def forward(self, a: torch.Tensor, b: torch.Tensor, locations: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        batch, channels = a.shape[:2]
        sizes = [(p.shape[2], p.shape[3]) for p in (a, b)]
        value = torch.cat([p.flatten(2).transpose(1, 2) for p in (a, b)], 1).reshape(batch, -1, 4, channels // 4)
        return first_variant(value, sizes, locations, weights) * 2


def pyramid_inputs(height: int, width: int, batch: int = 1) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(height)
    return {
        "a": torch.randn(batch, 32, height, width, generator=generator),
        "b": torch.randn(batch, 32, height // 2, width // 2, generator=generator),
        "locations": torch.rand(batch, 7, 4, 2, 3, 2, generator=generator),
        "weights": torch.rand(batch, 7, 4, 2, 3, generator=generator),
    }


def run(path: Path | onnx.ModelProto, feeds: dict[str, np.ndarray], with_polyop: bool = True) -> list[np.ndarray]:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    if with_polyop:
        options.register_custom_ops_library(polyop.get_onnxruntime_op_path())
    model = path.SerializeToString() if isinstance(path, onnx.ModelProto) else str(path)
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, feeds)


def assert_same(before: Path, after: Path, feeds: dict[str, torch.Tensor]) -> None:
    arrays = {name: tensor.numpy() for name, tensor in feeds.items()}
    for want, got in zip(run(before, arrays), run(after, arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
@pytest.mark.parametrize(
    ("module", "points"),
    [
        (First(), (3, 2)),
        (Second([2, 2, 2]), (6,)),
        (Second([3, 6, 1]), (10,)),
        (Second([2, 2, 2], "discrete"), (6,)),
        (Second([3, 6, 1], "discrete"), (10,)),
    ],
    ids=["first variant", "second variant", "second variant, unequal points", "discrete", "discrete, unequal points"],
)
def test_deformable_attention(module: torch.nn.Module, points: tuple[int, ...], exporter: str, tmp_path: Path) -> None:
    given = inputs(points=points)
    before, after = write(module, given, tmp_path / "before.onnx", exporter), tmp_path / "after.onnx"
    report = optimize(before, after, all=True)
    assert dict(report.replaced) == {"deformable attention": 1}, str(report)
    left = nodes(after)
    assert left[ATTENTION] == 1
    assert left["GridSample"] + left["GatherND"] == 0
    assert_same(before, after, given)


@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
def test_levels_with_sizes_computed_by_the_graph(exporter: str, tmp_path: Path) -> None:
    if exporter == "dynamo":
        half = {2: torch.export.Dim.AUTO, 3: torch.export.Dim.AUTO}
        dynamic: dict = {"a": half, "b": half, "locations": {}, "weights": {}}
    else:
        dynamic = {"a": {2: "h", 3: "w"}, "b": {2: "h2", 3: "w2"}}
    given = pyramid_inputs(12, 16)
    before, after = write(Pyramid(), given, tmp_path / "before.onnx", exporter, dynamic), tmp_path / "after.onnx"
    report = optimize(before, after, all=True)
    assert dict(report.replaced) == {"deformable attention": 1}, str(report)
    for height, width in ((12, 16), (4, 30)):
        assert_same(before, after, pyramid_inputs(height, width))


class Swapped(torch.nn.Module):
    """Resembles deformable attention, but its first level is stored after the second."""

    def forward(self, value: torch.Tensor, locations: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        small, large = value.split([12, 48], 1)
        maps = [v.permute(0, 2, 3, 1).reshape(8, 8, h, w) for v, (h, w) in ((large, (6, 8)), (small, (3, 4)))]
        grids = [2 * locations[:, :, :, i].transpose(1, 2).flatten(0, 1) - 1 for i in range(2)]
        samples = [torch.nn.functional.grid_sample(m, g, align_corners=False) for m, g in zip(maps, grids, strict=True)]
        flat = weights.transpose(1, 2).reshape(8, 1, 5, 4)
        return (torch.stack(samples, -2).flatten(-2) * flat).sum(-1).view(2, 32, 5).transpose(1, 2)


def test_different_graphs_are_unchanged(tmp_path: Path) -> None:
    given = inputs(points=(2, 2))
    given["value"] = given["value"][:, :60]
    before = write(Swapped(), given, tmp_path / "before.onnx", "torchscript")
    report = optimize(before, tmp_path / "after.onnx", all=True)
    (finding,) = [f for f in report.findings if f.pattern == "deformable attention"]
    assert not finding.replaced
    assert nodes(tmp_path / "after.onnx")[ATTENTION] == 0


def in_subgraph(model: onnx.ModelProto, kind: str) -> onnx.ModelProto:
    """Returns the graph's nodes as both branches of an If, or as the body of a Loop that sums two iterations."""
    inner, name = model.graph, model.graph.output[0].name
    kinds = {i.name: i for i in inner.input}
    extra = helper.make_tensor_value_info("choose", TensorProto.BOOL, [])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    if kind == "If":
        taken = helper.make_graph(inner.node, "taken", [], [onnx.ValueInfoProto(name=name)], inner.initializer)
        zero = helper.make_node("Sub", ["value", "value"], ["zero"])
        other = helper.make_graph([zero], "other", [], [onnx.ValueInfoProto(name="zero")])
        outer = [helper.make_node("If", ["choose"], ["y"], name="choice", then_branch=taken, else_branch=other)]
    else:
        stated = [
            helper.make_tensor_value_info("round", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("sum", TensorProto.FLOAT, None),
        ]
        body = [
            *inner.node,
            helper.make_node("Add", ["sum", name], ["next"]),
            helper.make_node("Identity", ["go"], ["on"]),
        ]
        loop_body = helper.make_graph(
            body, "body", stated,
            [helper.make_tensor_value_info("on", TensorProto.BOOL, []), helper.make_tensor_value_info("next", TensorProto.FLOAT, None)],
            inner.initializer,
        )  # fmt: skip
        two = numpy_helper.from_array(np.array(2, np.int64), "two")
        start = numpy_helper.from_array(np.zeros(1, np.float32), "start")
        outer = [
            helper.make_node("Constant", [], ["two"], value=two),
            helper.make_node("Constant", [], ["start"], value=start),
            helper.make_node("Loop", ["two", "choose", "start"], ["y"], name="rounds", body=loop_body),
        ]
    graph = helper.make_graph(outer, "outer", [extra, *kinds.values()], [y])
    return helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)


@pytest.mark.parametrize("kind", ["If", "Loop"])
def test_subgraphs(kind: str, tmp_path: Path) -> None:
    given = inputs(points=(3, 2))
    inner = onnx.load(write(First(), given, tmp_path / "inner.onnx", "torchscript"))
    before, after = tmp_path / "before.onnx", tmp_path / "after.onnx"
    onnx.save(in_subgraph(inner, kind), before)
    report = optimize(before, after, all=True)
    assert dict(report.replaced) == {"deformable attention": 1}, str(report)
    assert nodes(after)[ATTENTION] == 1
    assert_same(before, after, {**given, "choose": torch.tensor(True)})


SUPPRESSION_BY_CLASSES = """
<ir_version: 8, opset_import: ["": 17]>
by_classes (float[n, 4] boxes, float[n] scores, int64[n] labels, int64 classes) => (int64[k] kept) {
  zero = Constant <value_ints = [0]> ()
  first = Constant <value_ints = [0, 1]> ()
  box_column = Constant <value_int = 2> ()
  max_boxes = Constant <value_ints = [1000]> ()
  threshold = Constant <value_floats = [0.5]> ()
  go = Constant <value = bool {1}> ()
  none = ConstantOfShape <value = int64[1] {0}> (zero)
  kept = Loop <body = of_one (int64 label, bool on, int64[m] before) => (bool still, int64[l] after) {
    still = Identity (on)
    same = Equal (labels, label)
    found = NonZero (same)
    at = Squeeze (found, zero)
    some_boxes = Gather (boxes, at)
    candidates = Unsqueeze (some_boxes, zero)
    some_scores = Gather (scores, at)
    ranked = Unsqueeze (some_scores, first)
    picked = NonMaxSuppression (candidates, ranked, max_boxes, threshold)
    rows = Gather <axis = 1> (picked, box_column)
    best = Gather (at, rows)
    after = Concat <axis = 0> (before, best)
  }> (classes, go, none)
}
"""


def test_suppression_in_a_loop_over_classes(tmp_path: Path) -> None:
    """Some detectors write batched suppression as this loop instead of shifting the boxes of each class."""
    rng = np.random.default_rng(0)
    corner = rng.uniform(0, 10, (200, 2))
    feeds = {
        "boxes": np.concatenate([corner, corner + rng.uniform(1, 10, corner.shape)], 1).astype(np.float32),
        "scores": rng.permutation(np.linspace(0, 1, 200, dtype=np.float32)),
        "labels": rng.integers(0, 3, 200),
        "classes": np.array(3),
    }
    before, after = tmp_path / "before.onnx", tmp_path / "after.onnx"
    onnx.save(onnx.parser.parse_model(SUPPRESSION_BY_CLASSES), before)
    report = optimize(before, after, inputs=feeds, all=True)
    assert dict(report.replaced) == {"NonMaxSuppression": 1}, str(report)
    assert nodes(after)["polyop::NonMaxSuppression"] == 1
    for with_polyop in (True, False):
        (want,), (got,) = run(before, feeds), run(after, feeds, with_polyop)
        assert 10 < len(want) < 180
        np.testing.assert_array_equal(got, want)


def test_small_patterns_are_kept_unless_all_is_set(tmp_path: Path) -> None:
    given = inputs(batch=1, queries=1, heads=1, points=(3, 1))
    before = write(First(), given, tmp_path / "before.onnx", "torchscript")
    report = optimize(before, tmp_path / "after.onnx")
    (finding,) = [f for f in report.findings if f.pattern == "deformable attention"]
    assert finding.why == "too small to gain; --all replaces it"
    assert nodes(optimize(onnx.load(before), all=True).model)[ATTENTION] == 1


def test_a_model_without_patterns_gives_the_same_file(tmp_path: Path) -> None:
    before, after = tmp_path / "before.onnx", tmp_path / "after.onnx"
    write(
        torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU()),
        {"x": torch.rand(1, 3, 9, 9)},
        before,
        "torchscript",
    )
    assert not optimize(before, after, all=True).findings
    assert after.read_bytes() == before.read_bytes()


def test_measuring(tmp_path: Path) -> None:
    before = write(First(), inputs(points=(3, 2)), tmp_path / "before.onnx", "torchscript")
    report = optimize(before, tmp_path / "after.onnx", all=True, measure=True, threads=1)
    assert report.before > 0
    assert report.after > 0
    assert all(f.before > 0 and f.after > 0 for f in report.findings if f.replaced)
    header, rows = report.table()
    assert header[-2:] == ["before", "after"]
    assert len(rows) == len(report.findings)
    assert f"{report.before / report.after:.2f}x" in str(report)


def test_consecutive_replacements(tmp_path: Path) -> None:
    """A replaced node reads the output of another one."""
    info = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, s)
        for n, s in (("x", [1, 3, 40, 50]), ("grid", [1, 40, 50, 2]))
    ]
    chain = [
        helper.make_node("GridSample", [a, "grid"], [b], name=f"to_{b}")
        for a, b in (("x", "a"), ("a", "b"), ("b", "y"))
    ]
    graph = helper.make_graph(chain, "g", info, [onnx.ValueInfoProto(name="y")])
    before, after = tmp_path / "before.onnx", tmp_path / "after.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8), before)
    assert dict(optimize(before, after).replaced) == {"GridSample": 3}
    assert nodes(after) == {"polyop::GridSample": 3}
    rng = np.random.default_rng(0)
    feeds = {
        "x": rng.random((1, 3, 40, 50), np.float32),
        "grid": rng.uniform(-1.2, 1.2, (1, 40, 50, 2)).astype(np.float32),
    }
    for with_polyop in (True, False):
        np.testing.assert_allclose(run(after, feeds, with_polyop)[0], run(before, feeds, False)[0], atol=1e-5)


def test_fixes() -> None:
    """ONNX Runtime's RoiAlign of mode max is not the standard's. A node that reads the result is replaced as well."""
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 16]>
        g (float[1, 4, 20, 20] x, float[30, 4] rois, int64[30] batch, float[30, 9, 9, 2] grid) => (float[30, 4, 9, 9] y) {
            pooled = RoiAlign <mode = "max", output_height = 7, output_width = 7, sampling_ratio = 2> (x, rois, batch)
            y = GridSample (pooled, grid)
        }""")
    rng = np.random.default_rng(0)
    corners = rng.uniform(0, 10, (30, 2))
    feeds = {
        "x": rng.random((1, 4, 20, 20), np.float32),
        "rois": np.concatenate([corners, corners + rng.uniform(3, 9, (30, 2))], 1).astype(np.float32),
        "batch": np.zeros(30, np.int64),
        "grid": rng.uniform(-1, 1, (30, 9, 9, 2)).astype(np.float32),
    }
    plain = optimize(model, inputs=feeds, all=True)
    assert dict(plain.replaced) == {"GridSample": 1}
    report = optimize(model, inputs=feeds, all=True, allow_fix=True)
    assert dict(report.replaced) == {"GridSample": 1, "RoiAlign": 1}
    (finding,) = [f for f in report.findings if f.pattern == "RoiAlign"]
    assert finding.change > 0.1
    assert finding.difference < 1e-5
    assert set(report.differences) == {"with polyop", "without polyop"}
    (right,) = run(report.model, feeds)
    (before,) = run(model, feeds, False)
    assert np.abs(right - before).max() > 0.1
    np.testing.assert_allclose(run(report.model, feeds, False)[0], before, atol=1e-5)
    # The standard's maximum of sums of four weighted corners is at least the largest of these corners.
    assert (right >= before - 1e-6).all()
