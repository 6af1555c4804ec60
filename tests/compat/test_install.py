# SPDX-License-Identifier: Apache-2.0
"""polyop.compat.install, `python -m polyop.compat`, and the small compiled parts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from polyop.compat import install, ms_deform_attn, pointnet2_ext
from polyop.functional import ms_deform_attn as attention
from tests.support.processes import environment, run

SCRIPT = """
import sys
import torch
from torch_scatter import scatter_max
from torch_scatter.utils import broadcast
import torch_cluster, MultiScaleDeformableAttention as MSDA
print(sys.argv[1:], scatter_max(torch.tensor([1.0, 2.0]), torch.tensor([0, 0]))[1].tolist(), MSDA.__name__)
"""


def test_a_script_finds_missing_packages(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "-m", "polyop.compat", tmp_path / "script.py", "--option", "1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "['--option', '1'] [1] polyop.compat.ms_deform_attn", done.stderr
    assert (
        "polyop replaces: torch_scatter, torch_cluster, pyg_lib, torch_sparse, MultiScaleDeformableAttention"
        in done.stderr
    )
    missing = subprocess.run(
        [sys.executable, "-m", "polyop.compat", "none.py"], capture_output=True, text=True, check=False
    )
    assert missing.returncode == 1
    assert missing.stderr.strip() == "polyop.compat: expected a file, got 'none.py'"


def packages(folder: Path) -> Path:
    """Writes a package that loads, one that does not, and one whose compiled part is missing."""
    for name, text in (("torch_scatter", "mine = 1"), ("torch_cluster", "raise OSError('undefined symbol')")):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(text)
    (folder / "pointnet2_ops").mkdir()
    (folder / "pointnet2_ops" / "__init__.py").write_text("")
    return folder


def test_what_loads_is_kept(tmp_path: Path) -> None:
    code = (
        "import polyop.compat as c; n = c.install(); import torch_scatter as s, torch_cluster as t;"
        "from pointnet2_ops import _ext; print(n, hasattr(s, 'mine'), t.__version__, hasattr(_ext, 'ball_query'));"
        "print(c.install('torch_scatter', replace=True)); import torch_scatter as s; print(s.__version__)"
    )
    said = run(sys.executable, "-c", code, env=environment(packages(tmp_path))).splitlines()
    names = [
        "torch_cluster", "pyg_lib", "torch_sparse", "MultiScaleDeformableAttention", "DCNv3", "DCNv4",
        "pointnet2_ops._ext", "pointnet2_cuda", "pointops", "pointops_cuda", "knn_cuda", "chamfer", "chamferdist",
        "bev_pool_v2_ext", "spatial_correlation_sampler", "selective_scan_cuda", "selective_scan_cuda_core",
        "selective_scan_cuda_oflex", "selective_scan_cuda_nrow", "causal_conv1d_cuda", "causal_conv1d", "mamba_ssm",
        "natten", "alt_cuda_corr", "corr_sampler", "correlation_cuda", "correlation_package", "spconv", "cumm",
    ]  # fmt: skip
    assert said == [f"{names} True 1.6.3 True", "['torch_scatter']", "2.1.2"]
    status = run(sys.executable, "-m", "polyop.compat", env=environment(tmp_path))
    assert [line.split(maxsplit=1) for line in status.splitlines()][:7] == [
        ["torch_scatter", "is installed and loads: kept"],
        ["torch_cluster", "polyop replaces it: undefined symbol"],
        ["pyg_lib", "polyop replaces it: No module named 'pyg_lib'"],
        ["torch_sparse", "polyop replaces it: No module named 'torch_sparse'"],
        ["torchvision._C", "torchvision is not installed"],
        ["MultiScaleDeformableAttention", "polyop replaces it: No module named 'MultiScaleDeformableAttention'"],
        ["groundingdino._C", "groundingdino is not installed"],
    ]


def test_unknown_names() -> None:
    with pytest.raises(ValueError, match=r"^install: expected names out of torch_scatter, .*, got torch_scater"):
        install("torch_scater")


def test_deformable_attention() -> None:
    torch.manual_seed(0)
    shapes = torch.tensor([[4, 5], [2, 3]])
    starts = torch.tensor([0, 20])
    value = torch.rand(2, 26, 2, 4, requires_grad=True)
    locations = torch.rand(2, 7, 2, 2, 3, 2, requires_grad=True)
    weights = torch.rand(2, 7, 2, 2, 3, requires_grad=True)
    output = attention(value, shapes, starts, locations, weights)
    grad = torch.rand_like(output)
    output.backward(grad)
    inputs = [value.detach(), shapes, starts, locations.detach(), weights.detach()]
    assert torch.equal(ms_deform_attn.ms_deform_attn_forward(*inputs, 64), output)
    found = ms_deform_attn.ms_deform_attn_backward(*inputs, grad, 64)
    for gradient, leaf in zip(found, (value, locations, weights), strict=True):
        torch.testing.assert_close(gradient, leaf.grad)


def test_pointnet2() -> None:
    torch.manual_seed(0)
    points, few = torch.rand(2, 20, 3), torch.rand(2, 5, 3)
    distances, nearest = pointnet2_ext.three_nn(few, points)
    expected = torch.cdist(few, points).square().topk(3, 2, largest=False)
    torch.testing.assert_close(distances, expected[0])
    assert torch.equal(nearest.long(), expected[1])
    found = pointnet2_ext.ball_query(few, points, 0.4, 6)
    is_near = torch.cdist(few, points) < 0.4
    for b, m in ((0, 0), (1, 4)):
        index = is_near[b, m].nonzero()[:, 0].tolist()[:6]
        assert found[b, m].tolist() == (index + [index[0] if index else 0] * 6)[:6]
    features = torch.rand(2, 4, 20)
    index = torch.randint(0, 20, (2, 5, 6), dtype=torch.int32)
    grouped = pointnet2_ext.group_points(features, index)
    assert torch.equal(grouped[1, :, 3, 2], features[1, :, index[1, 3, 2]])
    gradient = pointnet2_ext.group_points_grad(torch.ones_like(grouped), index, 20)
    assert torch.equal(gradient[0, 0], index[0].flatten().bincount(minlength=20).float())
    assert torch.equal(
        pointnet2_ext.gather_points_grad(torch.ones(2, 4, 5), index[:, :, 0].contiguous(), 20)[1, 2],
        index[1, :, 0].bincount(minlength=20).float(),
    )
    weight = torch.rand(2, 5, 3)
    interpolated = pointnet2_ext.three_interpolate(features, nearest, weight)
    torch.testing.assert_close(interpolated[0, 1], (features[0, 1][nearest[0].long()] * weight[0]).sum(1))
    gradient = pointnet2_ext.three_interpolate_grad(torch.ones_like(interpolated), nearest, weight, 20)
    sums = torch.zeros(20).index_add_(0, nearest[0].flatten().long(), weight[0].flatten())
    torch.testing.assert_close(gradient[0, 0], sums)
    assert pointnet2_ext.furthest_point_sampling(points, 4)[:, 0].tolist() == [0, 0]
