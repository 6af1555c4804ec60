# SPDX-License-Identifier: Apache-2.0
"""torch.ops.polyop.*: results equal those of ONNX Runtime's nodes, fake kernels work, and both exporters write the
nodes.

The calls are those of exported_nodes, so every operator of the catalogue is covered.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch

import polyop.functional
from polyop._torch.node_domain import chosen_domain, node_domain
from polyop._torch.operators import Operator
from tests.support.exported_nodes import Node
from tests.support.single_node import run, session
from tests.support.torch_calls import CALLS, NAMED, as_tuple, call_of, domain_of, name_of, one_per_operator_is_quick

CALLS_A_FILE = 12


def side_by_side(nodes: list[Node]) -> list[Any]:
    """Returns parameters: the quick nodes, several of one domain together; and each node alone, marked slow."""
    quick = [param.values[0] for param in one_per_operator_is_quick(nodes) if not param.marks]
    params = [pytest.param([node], id=name_of(node), marks=[pytest.mark.slow]) for node in nodes]
    for domain in dict.fromkeys(map(domain_of, quick)):
        mine = [node for node in quick if domain_of(node) == domain]
        for at in range(0, len(mine), CALLS_A_FILE):
            params.append(pytest.param(mine[at : at + CALLS_A_FILE], id=f"{domain}-{at}"))
    return params


@pytest.mark.parametrize("node", CALLS, ids=name_of)
def test_equals_onnxruntime(node: Node) -> None:
    operator, args, given = call_of(node)
    got = as_tuple(operator.overload(*args, **given))
    inputs = {f"in{i}": array for i, array in enumerate(node.inputs)}
    names = [f"out{o}" for o in range(len(node.outputs))]
    for ours, theirs in zip(got, run(node.name, inputs, names, **node.attributes), strict=False):
        np.testing.assert_array_equal(ours.numpy(), theirs)


@pytest.mark.parametrize("node", CALLS, ids=name_of)
def test_opcheck(node: Node) -> None:
    operator, args, given = call_of(node)
    torch.library.opcheck(
        operator.overload,
        tuple(args),
        given,
        test_utils=("test_schema", "test_faketensor", "test_aot_dispatch_dynamic"),
    )


class Call(torch.nn.Module):
    """One call of an operator whose arguments are all tensors: forward() builds lists and inserts omitted arguments."""

    def __init__(self, operator: Operator, args: list[Any], given: dict[str, Any]) -> None:
        super().__init__()
        self.operator, self.given = operator, given
        self.counts = [len(a) if isinstance(a, list) else a is not None for a in args]

    def forward(self, *tensors: torch.Tensor) -> Any:
        left, args = list(tensors), []
        for count in self.counts:
            if count is True:
                args.append(left.pop(0))
            elif count is False:
                args.append(None)
            else:
                args.append([left.pop(0) for _ in range(count)])
        return self.operator.overload(*args, **self.given)


class Calls(torch.nn.Module):
    """Several calls in one module."""

    def __init__(self, calls: list[Call], counts: list[int]) -> None:
        super().__init__()
        self.calls, self.counts = torch.nn.ModuleList(calls), counts

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        results, at = [], 0
        for call, count in zip(self.calls, self.counts, strict=True):
            results += as_tuple(call(*tensors[at : at + count]))
            at += count
        return tuple(results)


def round_trip(nodes: list[Node], dynamo: bool, path: Path) -> None:
    """Exports the calls as nodes of one domain and runs them in ONNX Runtime: the results must be equal."""
    calls = [call_of(node) for node in nodes]
    given = [[t for a in args if a is not None for t in (a if isinstance(a, list) else [a])] for _, args, _ in calls]
    module = Calls([Call(*parts) for parts in calls], [len(tensors) for tensors in given]).eval()
    tensors = tuple(t for tensors in given for t in tensors)
    domain = domain_of(nodes[0])
    with node_domain(domain), torch.no_grad():
        if dynamo:
            torch.onnx.export(module, tensors, dynamo=True, verbose=False).save(path, external_data=False)
        else:
            torch.onnx.export(module, tensors, str(path), dynamo=False, opset_version=17)
    proto = onnx.load(path)
    written = {f"{n.domain}::{n.op_type}" for n in proto.graph.node}
    for operator, _, _ in calls:
        assert {n["name"] for n in operator.nodes if n["name"].startswith(domain)} & written
    assert domain in {o.domain for o in proto.opset_import}
    file = session(proto)
    # Unused inputs may be missing from the graph.
    feeds = {i.name: t.numpy() for i, t in zip(file.get_inputs(), tensors, strict=True)}
    for ours, theirs in zip(module(*tensors), file.run(None, feeds), strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("node", NAMED, ids=name_of)
def test_round_trip_through_onnx(node: Node, tmp_path: Path) -> None:
    round_trip([node], False, tmp_path / "model.onnx")


# The dynamo exporter takes two seconds for a model of any size, and writes the same node for all names of a call.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("nodes", side_by_side(CALLS))
def test_round_trip_with_dynamo(nodes: list[Node], tmp_path: Path) -> None:
    round_trip(nodes, True, tmp_path / "model.onnx")


def test_errors_name_the_operator_and_the_tensor() -> None:
    with pytest.raises(
        RuntimeError, match=r"polyop::roi_align: 'rois'\[0, 0\]: expected a batch index in \[0, 1\), got 7"
    ):
        torch.ops.polyop.roi_align(torch.zeros(1, 2, 4, 4), torch.tensor([[7.0, 0, 0, 1, 1]]))
    with pytest.raises(
        RuntimeError, match=r"polyop::roi_align: attribute 'mode': expected one of \{avg, max\}, got median"
    ):
        torch.ops.polyop.roi_align(torch.zeros(1, 2, 4, 4), torch.zeros(1, 5), mode="median")


def test_outputs_of_the_caller_overlap_no_other_tensor() -> None:
    memory = torch.zeros(3 * 8)
    x, values, indices = memory[:8], memory[8:16], torch.empty(8, dtype=torch.int64)
    into = torch.ops.polyop_into.cummax.default
    into(x, dim=0, mode="max", values=values, indices=indices)
    for name, other, index in (
        ("values", x, indices),
        ("values", memory[7:15], indices),
        ("indices", values, memory[:16].view(torch.int64)),
        ("indices", values, memory[8:].view(torch.int64)),
    ):
        with pytest.raises(RuntimeError, match=f"output '{name}': expected memory that no input and no other output"):
            into(x, dim=0, mode="max", values=other, indices=index)


def test_double_precision_uses_the_reference_kernels() -> None:
    x = torch.rand(2, 3, 5, dtype=torch.float64)
    got = torch.ops.polyop.instance_norm(x, torch.ones(3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64))
    torch.testing.assert_close(got, torch.nn.functional.instance_norm(x), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("threads", [1, 2])
def test_uses_torchs_threads(threads: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    x = torch.rand(1, 64, 100, 100)
    rois = torch.tensor([[0.0, 3, 4, 80, 90]]).repeat(50, 1)
    got = torch.ops.polyop.roi_align(x, rois, output_height=7, output_width=7)
    torch.set_num_threads(before)
    want = torch.ops.polyop.roi_align(x.double(), rois[:1].double(), output_height=7, output_width=7)  # one thread
    torch.testing.assert_close(got, want.float().expand_as(got), rtol=1e-5, atol=1e-5)


def test_strided_tensors_and_compile() -> None:
    x = torch.rand(2, 6, 5, 3).permute(0, 3, 1, 2)
    want = torch.ops.polyop.corner_pool(x.contiguous(), mode="left")

    def twice(t: torch.Tensor) -> torch.Tensor:
        return torch.ops.polyop.corner_pool(t, mode="left") * 2

    torch.testing.assert_close(torch.compile(twice, backend="aot_eager", fullgraph=True)(x), want * 2, rtol=0, atol=0)


@pytest.mark.filterwarnings("ignore")
def test_inductor_compiles_dynamic_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Uses the default backend, without graph breaks, with a data-dependent size in the middle.

    Inductor is stricter under continuous integration, and ignores what is in its cache.
    """
    monkeypatch.setenv("CI", "true")

    def head(x: torch.Tensor, boxes: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        kept = polyop.nms(boxes, scores, 0.5)
        rois = torch.cat([torch.zeros_like(boxes[:, :1]), boxes], 1)[kept]
        return polyop.roi_align(x * 2, rois, 3, 0.5, 2, aligned=True).mean((2, 3)) + 1

    compiled = torch.compile(head, fullgraph=True, dynamic=True)
    for count, size in ((20, 12), (7, 15), (33, 20)):
        corner = torch.rand(count, 2) * 10
        inputs = torch.rand(1, 4, size, size + 3), torch.cat([corner, corner + 8], 1), torch.rand(count)
        with torch._inductor.config.patch(force_disable_caches=True):
            torch.testing.assert_close(compiled(*inputs), head(*inputs), rtol=1e-5, atol=1e-6)


# ---- the typed functions ---------------------------------------------------------------------------


def test_functions_equal_torchs_functions() -> None:
    x, grid = torch.rand(2, 3, 6, 7), torch.rand(2, 4, 5, 2) * 2 - 1
    want = torch.nn.functional.grid_sample(x, grid, "bicubic", "border", align_corners=True)
    torch.testing.assert_close(polyop.grid_sample(x, grid, "bicubic", "border", align_corners=True), want)
    assert all(a.equal(b) for a, b in zip(polyop.cummin(x, 2), torch.cummin(x, 2), strict=True))
    weight = torch.rand(4, 3, 3, 3)
    offset, mask = torch.zeros(2, 18, 3, 3), torch.ones(2, 9, 3, 3)
    want = torch.nn.functional.conv2d(x, weight, stride=2, padding=(1, 0))
    got = polyop.modulated_deform_conv2d(x, offset, mask, weight, stride=2, padding=(1, 0))
    torch.testing.assert_close(got, want)
    torch.testing.assert_close(polyop.deform_conv2d(x, offset, weight, stride=2, padding=(1, 0)), want)


def test_functions_of_boxes_and_points() -> None:
    boxes, scores = torch.tensor([[0.0, 0, 9, 9], [0, 0, 9, 8], [20, 20, 30, 30]]), torch.tensor([0.5, 0.9, 0.1])
    assert polyop.nms(boxes, scores, 0.5).tolist() == [1, 2]
    dets, keep = polyop.soft_nms(boxes, scores, method="gaussian")
    assert dets.shape == (len(keep), 5)
    upright = torch.cat([(boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2], torch.zeros(3, 1)], 1)
    assert polyop.nms_rotated(upright, scores, 0.5).tolist() == [1, 2]
    points = torch.rand(20, 3)
    index, dist = polyop.knn_query(3, points, torch.tensor([20], dtype=torch.int32))
    assert index[:, 0].tolist() == list(range(20))
    torch.testing.assert_close(dist, torch.cdist(points, points).topk(3, largest=False).values, atol=1e-3, rtol=0)
    assert polyop.voxel_grid(points, torch.full((3,), 2.0), torch.zeros(3)).tolist() == [0] * 20


def test_importing_polyop_does_not_import_the_exporters() -> None:
    """They take longer to import than all of polyop.

    They learn of its operators even if their spec was looked up before.
    """
    code = """
import importlib.util, sys
import torch, polyop

print(polyop.nms.__name__, "onnxscript" in sys.modules, "torch.onnx" in sys.modules)
assert importlib.util.find_spec("torch.onnx") is not None
import torch.onnx

print("polyop._torch.onnx_operators" in sys.modules, type(torch.onnx.__loader__).__name__)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["nms False False", "True SourceFileLoader"], done.stderr


def test_functions_need_only_pytorch() -> None:
    code = """
import sys
sys.modules.update(dict.fromkeys(("numpy", "onnx", "onnxruntime")))  # to import them fails
import torch, polyop
with polyop.accelerate():
    print(polyop.nms(torch.tensor([[0.0, 0, 2, 2]]), torch.ones(1), iou_threshold=0.5).tolist())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[0]\n"


def test_the_domain_of_nodes_is_the_threads_own() -> None:
    seen, inside, done = [], threading.Event(), threading.Event()

    def other() -> None:
        with node_domain("custom"):
            inside.set()
            done.wait(60)

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait(60)
    seen.append(chosen_domain())
    with node_domain("mmdeploy"):
        done.set()
        thread.join()
        seen.append(chosen_domain())
    assert [*seen, chosen_domain()] == ["mmcv", "mmdeploy", "mmcv"]


WITHOUT_TORCH = """
import sys

class NoTorch:
    def find_spec(self, name, path, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")

sys.meta_path.insert(0, NoTorch())
import polyop
"""


def test_without_pytorch_its_part_alone_is_missing() -> None:
    """The import of each module that does not need PyTorch works. Unknown names are unknown, as in every module."""
    code = f"""{WITHOUT_TORCH}
needs_torch = {{"accelerating", "compat", "exporting", "functional", "modules", "sparse"}}
assert needs_torch < polyop._MODULES
for name in sorted(polyop._MODULES - needs_torch):
    exec(f"from polyop import {{name}}")
    assert getattr(polyop, name).__name__ == f"polyop.{{name}}"
assert not hasattr(polyop, "roi_aline") and not hasattr(polyop, "_repr_html_")
assert callable(polyop.optimize) and callable(polyop.session)
for name in ("nms", "RoIAlign", "export", "accelerate", *sorted(needs_torch - {{"compat"}})):
    try:
        getattr(polyop, name)
    except ModuleNotFoundError as error:
        assert error.name == "torch", (name, error)
    else:
        raise AssertionError(name)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_public_names_are_those_of_the_modules() -> None:
    assert {"node_domain", *polyop._function_names()} == set(polyop.functional.__all__)
    assert {k for k, v in polyop._FROM_MODULES.items() if v == "modules"} == set(polyop.modules.__all__)
    assert {"nms", "RoIAlign", "export"} < set(dir(polyop))


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="no attribute 'roi_aline'"):
        polyop.roi_aline  # noqa: B018
