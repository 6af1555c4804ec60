# SPDX-License-Identifier: Apache-2.0
"""polyop.compat.hub_kernels: a folder that Hugging Face's package `kernels` loads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from polyop.compat import hub_kernels
from polyop.errors import PolyopError
from tests.support.processes import ROOT, environment, run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kernel")
    variant = run(sys.executable, "-m", "polyop.compat.hub_kernels", folder, env=environment()).strip()
    assert Path(variant) == folder / "build" / hub_kernels.VARIANT
    return folder


def in_child(code: str, folder: Path) -> str:
    """Runs the code where polyop is not installed and no network is used. `folder` is the kernel's."""
    head = (
        "import sys\nfrom pathlib import Path\n"
        f"sys.path[:] = [p for p in sys.path if Path(p) != Path({str(ROOT / 'python')!r})]\n"
        f"folder = Path({str(folder)!r})\n"
    )
    return run(sys.executable, "-c", head + code, env=environment(HF_HUB_OFFLINE="1"))


def test_functions(folder: Path) -> None:
    """The copy in the folder computes, with gradients that agree with PyTorch's grid_sample."""
    code = """
import torch
from kernels import get_local_kernel
kernel = get_local_kernel(folder)
import polyop
assert Path(polyop.__file__).is_relative_to(folder), polyop.__file__
torch.manual_seed(0)
shapes = torch.tensor([[6, 8], [3, 4]])
starts = torch.tensor([0, 48])
value, where, weights = torch.rand(2, 60, 2, 4), torch.rand(2, 5, 2, 2, 3, 2), torch.rand(2, 5, 2, 2, 3)
result = kernel.ms_deform_attn_forward(value, shapes, starts, where, weights, 64)
upstream = torch.rand_like(result)
gradients = kernel.ms_deform_attn_backward(value, shapes, starts, where, weights, upstream, 64)

def formula(value, where, weights):
    sampled = []
    for level, (h, w) in enumerate(shapes.tolist()):
        planes = value[:, starts[level] : starts[level] + h * w].permute(0, 2, 3, 1).reshape(4, 4, h, w)
        grid = where[:, :, :, level].transpose(1, 2).flatten(0, 1) * 2 - 1
        sampled.append(torch.nn.functional.grid_sample(planes, grid, align_corners=False))
    scale = weights.transpose(1, 2).reshape(4, 1, 5, 6)
    return (torch.cat(sampled, -1) * scale).sum(-1).view(2, 8, 5).transpose(1, 2)

leaves = [t.requires_grad_() for t in (value, where, weights)]
expected = formula(*leaves)
torch.testing.assert_close(result, expected.detach(), rtol=1e-4, atol=1e-5)
for ours, correct in zip(gradients, torch.autograd.grad(expected, leaves, upstream), strict=True):
    torch.testing.assert_close(ours, correct, rtol=1e-3, atol=1e-4)
print("equal")
"""
    assert in_child(code, folder).endswith("equal\n")


@pytest.mark.rest
def test_transformers(folder: Path) -> None:
    """Deformable DETR with the layer of the folder, on the CPU: outputs and gradients."""
    code = """
import torch
from kernels import LocalLayerRepository, Mode, kernelize, use_kernel_forward_from_hub, use_kernel_mapping
from transformers import DeformableDetrConfig, DeformableDetrForObjectDetection, ResNetConfig
from transformers.models.deformable_detr import modeling_deformable_detr as modeling
# transformers does this itself with the versions of kernels that it accepts, which the index may not have yet
use_kernel_forward_from_hub("MultiScaleDeformableAttention")(modeling.MultiScaleDeformableAttention)
backbone = ResNetConfig(embedding_size=8, hidden_sizes=[8, 8, 16, 16], depths=[1] * 4, out_features=["stage2", "stage3", "stage4"])
torch.manual_seed(0)
model = DeformableDetrForObjectDetection(DeformableDetrConfig(
    backbone_config=backbone, use_timm_backbone=False, backbone=None, use_pretrained_backbone=False, d_model=32,
    encoder_layers=1, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=32,
    decoder_ffn_dim=32, num_queries=10))
for parameter in model.parameters():  # initial offsets are pixel centres, where the derivative is not continuous
    parameter.data.add_(torch.randn_like(parameter) * 0.05)
image = torch.rand(1, 3, 64, 96)

def results():
    model.zero_grad()
    logits = model(image).logits
    logits.square().sum().backward()
    return [logits.detach(), *(p.grad.clone() for p in model.parameters() if p.grad is not None)]

model.eval()
expected = results()
repository = LocalLayerRepository(folder, layer_name="MultiScaleDeformableAttention")
with use_kernel_mapping({"MultiScaleDeformableAttention": {"cpu": {Mode.TRAINING: repository}}}, inherit_mapping=False):
    model = kernelize(model, mode=Mode.TRAINING, device="cpu")
layers = [m for m in model.modules() if isinstance(m, modeling.MultiScaleDeformableAttention)]
assert layers and all("polyop" in m.forward.__func__.__module__ for m in layers), layers
model.eval()
largest = max(t.abs().max().item() for t in expected)
for ours, correct in zip(results(), expected, strict=True):
    torch.testing.assert_close(ours, correct, rtol=1e-3, atol=1e-5 * largest)
print("equal", len(layers))
"""
    assert in_child(code, folder).endswith("equal 3\n")


def test_a_folder_with_files_is_refused(folder: Path) -> None:
    with pytest.raises(PolyopError, match="expected an empty or missing folder"):
        hub_kernels.write(folder)
    done = subprocess.run(
        [sys.executable, "-m", "polyop.compat.hub_kernels", folder], env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 3
    assert done.stderr == f"error: {folder}: expected an empty or missing folder\n"
