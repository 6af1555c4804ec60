# SPDX-License-Identifier: Apache-2.0
"""Patterns in sessions with polyop's execution provider: which parts of a graph become one node, that the results are
ONNX Runtime's, and that near misses stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import torch
from onnx import helper, numpy_helper
from torch import Tensor, nn

import polyop
from tests.onnxruntime.test_execution_provider import claimed, compare, options, plain, provided
from tests.optimizing.test_optimize_best_box_nms import (
    set_to_infinity,
    set_to_zero,
    weakened,
    with_a_mask_of_what_is_left,
)
from tests.optimizing.test_optimize_corner_pool import Along, Doubled, Flipped
from tests.optimizing.test_optimize_fourier_transform import model as transform
from tests.optimizing.test_optimize_fourier_transform import spectrum
from tests.optimizing.test_optimize_greedy_nms import among_the_best, at_most_five, from_the_first, from_the_last
from tests.optimizing.test_optimize_multi_level_roi_align import MultiScale, export
from tests.optimizing.test_optimize_multi_level_roi_align import inputs as pyramid
from tests.optimizing.test_optimize_paste_masks import detections as masks
from tests.optimizing.test_optimize_paste_masks import exported as pasting
from tests.optimizing.test_optimizer import Second, Swapped, in_subgraph
from tests.support.deformable_attention import First, inputs
from tests.support.exported import write
from tests.support.optimizable import Pool, corner_pool_inputs
from tests.support.suppression import Scripted, detections, scripted

pytestmark = pytest.mark.filterwarnings("ignore")
Tensors = Mapping[str, Tensor]


def fused(session: ort.InferenceSession) -> int:
    """Returns the number of fused nodes, also in subgraphs."""
    graphs = session.get_provider_graph_assignment_info()
    return sum(g.ep_name == "PolyopExecutionProvider" and len(g.get_nodes()) > 1 for g in graphs)


def check(path: Path, sizes: list[Tensors], expected: int = 1, tolerance: float = 1e-4, **given: object) -> None:
    """Compares the results for all inputs with those of ONNX Runtime's nodes, and of polyop's own in the file."""
    proto = onnx.load(path)
    session, nodes = provided(proto, only_faster=0, **given), provided(proto, claim="none", patterns=0)
    assert fused(session) == expected
    for tensors in sizes:
        names = {i.name for i in session.get_inputs()}
        feeds = {name: t.numpy() for name, t in tensors.items() if name in names}
        compare(session.run(None, feeds), nodes.run(None, feeds), tolerance=tolerance)


def without_sizes(path: Path, names: tuple[str, ...], kept: tuple[int, ...] = ()) -> Path:
    """Removes the sizes of inputs from the file, except those of the axes `kept`: of many tensors inside of a model
    only the rank is known."""
    proto = onnx.load(path)
    for value in proto.graph.input:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if value.name in names and axis not in kept:
                dim.Clear()
    for value in proto.graph.output:
        value.type.tensor_type.ClearField("shape")
    onnx.save(proto, path)
    return path


# ---- corner pooling ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "module",
    [
        *(Pool(axis, forward) for axis in (2, 3) for forward in (True, False)),
        Pool(3, True, lowest=True),
        Doubled(2, True, joined=True),
        Doubled(3, False, joined=True),
        Flipped(2),
    ],
)
def test_corner_pool(module: nn.Module, tmp_path: Path) -> None:
    path = write(module, corner_pool_inputs(), tmp_path / "m.onnx", "torchscript")
    check(path, [corner_pool_inputs()], tolerance=0)


@pytest.mark.parametrize(
    "module",
    [Along(3, positions=True), Along(1), Doubled(2, True, joined=True, first=2), Pool(2, True, skip=1)],
    ids=["positions are outputs", "channels", "every other row", "another order"],
)
def test_other_running_maxima_are_left(module: nn.Module, tmp_path: Path) -> None:
    path = write(module, corner_pool_inputs(), tmp_path / "m.onnx", "torchscript")
    check(path, [corner_pool_inputs()], expected=0)


def test_saved_files(tmp_path: Path) -> None:
    """ONNX Runtime cannot write fused nodes into an .onnx file, and says so."""
    given = {"x": corner_pool_inputs()["x"].numpy()}
    path = write(Pool(2, True), corner_pool_inputs(), tmp_path / "m.onnx", "torchscript")
    want = plain(onnx.load(path)).run(None, given)

    def saved(name: str, **options_of_provider: object) -> ort.InferenceSession:
        saving = options(only_faster=0, **options_of_provider)
        saving.optimized_model_filepath = str(tmp_path / name)
        if name.endswith(".ort"):
            saving.add_session_config_entry("session.save_model_format", "ORT")
        return ort.InferenceSession(str(path), saving, enable_fallback=0)

    with pytest.raises(Exception, match="compiled nodes"):
        saved("saved.onnx")
    compare(saved("saved.onnx", patterns=0).run(None, given), want)
    compare(saved("saved.ort").run(None, given), want)
    compare(provided(tmp_path / "saved.ort", only_faster=0).run(None, given), want)


def test_session_finds_patterns_unless_it_saves_the_file(tmp_path: Path) -> None:
    given = {"x": corner_pool_inputs()["x"].numpy()}
    path = write(Pool(2, True), corner_pool_inputs(), tmp_path / "m.onnx", "torchscript")
    want = plain(onnx.load(path)).run(None, given)
    for saved in ("", str(tmp_path / "saved.onnx")):
        created = ort.SessionOptions()
        created.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
        created.optimized_model_filepath = saved
        session = polyop.session(path, options=created)
        assert fused(session) == (not saved)
        compare(session.run(None, given), want)


# ---- deformable attention ----------------------------------------------------------------------------------

ATTENTIONS = {
    "first variant": (First(), (3, 2)),
    "second variant": (Second([2, 2, 2]), (6,)),
    "second variant, unequal points": (Second([3, 6, 1]), (10,)),
    "discrete, unequal points": (Second([3, 6, 1], "discrete"), (10,)),
}


@pytest.mark.parametrize("name", ATTENTIONS)
def test_deformable_attention(name: str, tmp_path: Path) -> None:
    module, points = ATTENTIONS[name]
    check(write(module, inputs(points=points), tmp_path / "m.onnx", "torchscript"), [inputs(points=points)])


def test_deformable_attention_of_any_batch(tmp_path: Path) -> None:
    batch = {name: {0: "batch"} for name in ("value", "locations", "weights")}
    path = write(First(), inputs(points=(3, 2)), tmp_path / "m.onnx", "torchscript", batch)
    check(path, [inputs(batch=n, points=(3, 2)) for n in (1, 2, 5)])


@pytest.mark.parametrize("kind", ["If", "Loop"])
def test_deformable_attention_in_subgraphs(kind: str, tmp_path: Path) -> None:
    given = inputs(points=(3, 2))
    inner = onnx.load(write(First(), given, tmp_path / "inner.onnx", "torchscript"))
    onnx.save(in_subgraph(inner, kind), tmp_path / "m.onnx")
    check(tmp_path / "m.onnx", [{**given, "choose": torch.tensor(choose)} for choose in (True, False)])


def test_near_misses_of_deformable_attention_are_left(tmp_path: Path) -> None:
    """Another order of levels, one other constant, and samples that are an output, too."""
    given = inputs(points=(2, 2))
    given["value"] = given["value"][:, :60]
    check(write(Swapped(), given, tmp_path / "m.onnx", "torchscript"), [given], expected=0)
    given = inputs(points=(3, 2))
    model = onnx.load(write(First(), given, tmp_path / "m.onnx", "torchscript"))
    samples = next(n.output[0] for n in model.graph.node if n.op_type == "GridSample")
    model.graph.output.append(onnx.ValueInfoProto(name=samples))
    onnx.save(model, tmp_path / "m.onnx")
    check(tmp_path / "m.onnx", [given], expected=0)
    model.graph.output.pop()
    for node in model.graph.node:
        if node.op_type == "GridSample":
            next(a for a in node.attribute if a.name == "align_corners").i = 1
            break
    onnx.save(model, tmp_path / "m.onnx")
    check(tmp_path / "m.onnx", [given], expected=0)


# ---- multi-level RoIAlign ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 2e-4), (torch.float16, 1e-2)])
def test_multi_level_roi_align(dtype: torch.dtype, tolerance: float, tmp_path: Path) -> None:
    module = MultiScale(dtype=dtype)
    path = export(module, tmp_path / "m.onnx", "torchscript")
    check(path, [pyramid(module, seed, count) for seed, count in ((0, 2), (1, 40), (2, 300))], tolerance=tolerance)


def test_multi_level_roi_align_of_unknown_sizes(tmp_path: Path) -> None:
    module = MultiScale()
    given = [pyramid(module, seed, count) for seed, count in ((0, 2), (1, 40))]
    path = export(module, tmp_path / "m.onnx", "torchscript")
    check(without_sizes(path, tuple(given[0]), kept=(1,)), given, tolerance=2e-4)


def test_another_choice_of_levels_is_left(tmp_path: Path) -> None:
    module = MultiScale(moved=0.1)
    check(export(module, tmp_path / "m.onnx", "torchscript"), [pyramid(module, 0)], expected=0)


# ---- suppression in loops ----------------------------------------------------------------------------------

ANY_COUNT = {"boxes": {0: "n"}, "scores": {0: "n"}}


@pytest.mark.parametrize(
    "suppress",
    [from_the_first, from_the_last, among_the_best, set_to_zero, set_to_infinity, with_a_mask_of_what_is_left],
    ids=lambda f: f.name,
)
def test_suppression(suppress: Callable[..., Tensor], tmp_path: Path) -> None:
    check(scripted(suppress, 0.5, tmp_path), [detections(n) for n in (60, 150, 2)], tolerance=0)


@pytest.mark.parametrize("suppress", [at_most_five, weakened], ids=lambda f: f.name)
def test_other_suppression_is_left(suppress: Callable[..., Tensor], tmp_path: Path) -> None:
    check(scripted(suppress, 0.5, tmp_path), [detections(60)], expected=0, tolerance=0)


def test_another_overlap_is_left(tmp_path: Path) -> None:
    """The loop's form is that of suppression, but it divides by the larger area."""
    path = scripted(from_the_first, 0.5, tmp_path)
    model = onnx.load(path)
    (loop,) = [node for node in model.graph.node if node.op_type == "Loop"]
    (add,) = [node for node in loop.attribute[0].g.node if node.op_type == "Add"]
    add.op_type = "Max"
    onnx.save(model, path)
    check(path, [detections(60)], expected=0, tolerance=0)


def test_suppression_in_a_branch(tmp_path: Path) -> None:
    model = onnx.load(scripted(from_the_first, 0.5, tmp_path))
    graph, none = model.graph, numpy_helper.from_array(np.array([-1]), "none")
    result = graph.output[0].name
    taken = helper.make_graph(graph.node, "taken", [], [onnx.ValueInfoProto(name=result)], graph.initializer)
    constant = helper.make_node("Constant", [], ["none"], value=none)
    other = helper.make_graph([constant], "other", [], [onnx.ValueInfoProto(name="none")])
    choose = helper.make_tensor_value_info("choose", onnx.TensorProto.BOOL, [])
    choice = helper.make_node("If", ["choose"], ["y"], then_branch=taken, else_branch=other)
    whole = helper.make_graph([choice], "g", [*graph.input, choose], [onnx.ValueInfoProto(name="y")])
    onnx.save(helper.make_model(whole, opset_imports=model.opset_import, ir_version=8), tmp_path / "m.onnx")
    given = [{**detections(40), "choose": torch.tensor(choose)} for choose in (True, False)]
    check(tmp_path / "m.onnx", given, tolerance=0)


@pytest.mark.parametrize("opset", [11, 13, 16, 20, 23])
def test_opsets(opset: int, tmp_path: Path) -> None:
    """PyTorch's exporter ends at 20; the operators of these files are the same in 23."""
    parts = [(Pool(2, True), corner_pool_inputs(), None)]
    if opset >= 13:  # before, the exporter writes another loop
        parts.append((torch.jit.script(Scripted(from_the_first)), detections(40), ANY_COUNT))
    for module, tensors, dynamic in parts:
        path = write(module, tensors, tmp_path / "m.onnx", "torchscript", dynamic, opset=min(opset, 20))
        model = onnx.load(path)
        model.opset_import[0].version = opset
        onnx.save(model, path)
        check(path, [tensors], tolerance=0)


def test_half_precision(tmp_path: Path) -> None:
    """ONNX Runtime computes suppression of f16 in f32, and so does polyop."""
    parts: list[tuple[nn.Module, list[Tensors]]] = [(Pool(2, True), [corner_pool_inputs()])]
    for suppress in (from_the_first, among_the_best, set_to_infinity):
        parts.append((torch.jit.script(Scripted(suppress)), [detections(n) for n in (60, 150, 2)]))
    for module, sizes in parts:
        halves = [{name: t.half() for name, t in tensors.items()} for tensors in sizes]
        dynamic = ANY_COUNT if "boxes" in halves[0] else None
        check(write(module, halves[0], tmp_path / "m.onnx", "torchscript", dynamic), halves, tolerance=0)


# ---- mask pasting ------------------------------------------------------------------------------------------


def test_mask_pasting(tmp_path: Path) -> None:
    check(pasting(tmp_path), [masks(n) for n in (5, 20, 1)])


def test_mask_pasting_of_unknown_sizes(tmp_path: Path) -> None:
    check(without_sizes(pasting(tmp_path), ("masks",)), [masks(n) for n in (5, 20, 1)])


def test_pasting_of_other_sizes_is_left(tmp_path: Path) -> None:
    check(pasting(tmp_path, past=0), [masks(5)], expected=0)


# ---- Fourier transforms ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "axis", "opset", "length", "attributes"),
    [
        ([2, 250, 1], 1, 17, None, {"onesided": 1}),
        ([2, 24, 7, 2], 1, 20, 24, {"inverse": 1}),
        ([3, 5, 7, 2], 0, 19, None, {}),
    ],
)
def test_fourier_transform(
    shape: list[int], axis: int, opset: int, length: int | None, attributes: dict[str, int]
) -> None:
    session = provided(transform(shape, axis, opset, length, **attributes))
    assert claimed(session) == ["DFT"]
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    want = spectrum(x, axis, bool(attributes.get("inverse")), bool(attributes.get("onesided")))
    np.testing.assert_allclose(session.run(None, {"x": x})[0], want, atol=1e-4)


def test_another_length_is_left() -> None:
    assert claimed(provided(transform([2, 24, 2], 1, 17, 16))) == []
