# SPDX-License-Identifier: Apache-2.0
"""polyop.compat.transformers replaces every deformable attention of the installed transformers."""

from __future__ import annotations

import ast
import copy
from importlib import import_module
from pathlib import Path

import pytest
import torch
import transformers
from torch import Tensor, nn

from polyop.compat import transformers as compat

MODELS = Path(transformers.__file__).parent / "models"
SIZES = [(6, 5), (3, 4), (2, 2)]
SHAPES = torch.tensor(SIZES)
STARTS = torch.tensor([0, 30, 42])

# Layers that call a function, and the arguments of their constructors.
LAYERS = [
    ("mask2former", "Mask2FormerPixelDecoderEncoderMultiscaleDeformableAttention", "explicit"),
    ("oneformer", "OneFormerPixelDecoderEncoderMultiscaleDeformableAttention", "explicit"),
    ("rt_detr_v2", "RTDetrV2MultiscaleDeformableAttention", "RTDetrV2Config"),
    ("d_fine", "DFineMultiscaleDeformableAttention", "DFineConfig"),
    ("deimv2", "Deimv2MultiscaleDeformableAttention", "Deimv2Config"),
]


def deformable_attentions() -> dict[str, set[str]]:
    """Returns the functions and classes that sample at `sampling_locations` or `sampling_grids`, by file."""
    found: dict[str, set[str]] = {}
    for file in sorted(MODELS.glob("*/modeling_*.py")):
        text = file.read_text()
        if "grid_sample" not in text or "attention_weights" not in text:
            continue
        for node in ast.parse(text).body:
            if not isinstance(node, ast.FunctionDef | ast.ClassDef):
                continue
            names = {n.attr if isinstance(n, ast.Attribute) else getattr(n, "id", "") for n in ast.walk(node)}
            if "grid_sample" in names and "attention_weights" in names:
                found.setdefault(file.parent.name, set()).add(node.name)
    return found


def test_every_deformable_attention_is_known() -> None:
    found = deformable_attentions()
    assert len(found) >= 15
    known = {compat._LAYER, *compat._FUNCTIONS}
    assert {model: names - known for model, names in found.items() if names - known} == {}
    functions = {model for model, names in found.items() if names & set(compat._FUNCTIONS)}
    assert functions == {model for model, _, _ in LAYERS}


def layer(model: str, name: str, config: str, method: str = "default") -> nn.Module:
    module = import_module(f"transformers.models.{model}.modeling_{model}")
    torch.manual_seed(0)
    if config == "explicit":
        module_ = getattr(module, name)(32, 4, 3, 2)
    else:
        arguments = {
            "d_model": 32,
            "decoder_attention_heads": 4,
            "decoder_n_points": 2,
            "num_feature_levels": 3,
            "decoder_method": method,
        }
        if model != "rt_detr_v2":
            arguments |= {"hidden_dim": 32, "decoder_n_points": [2, 4, 2]}  # different on the levels
        module_ = getattr(module, name)(getattr(transformers, config)(**arguments))
    for parameter in module_.parameters():
        nn.init.normal_(parameter, std=0.3)
    return module_.eval()


def run(module_: nn.Module, hidden: Tensor, values: Tensor, boxes: Tensor) -> Tensor:
    sizes = {"spatial_shapes": SHAPES, "spatial_shapes_list": SIZES}
    if type(module_).__name__.startswith("Mask2Former"):
        del sizes["spatial_shapes"]
    given = {"hidden_states": hidden, "encoder_hidden_states": values, "reference_points": boxes}
    return module_(**given, **sizes, level_start_index=STARTS)[0]


@pytest.mark.parametrize(("model", "name", "config"), LAYERS, ids=[m for m, _, _ in LAYERS])
def test_layers_that_call_a_function(model: str, name: str, config: str) -> None:
    plain = layer(model, name, config)
    ours = nn.Sequential(copy.deepcopy(plain))
    assert compat.use_polyop(ours) == 1
    torch.manual_seed(1)
    levels = 3 if config == "explicit" else 1
    inputs = torch.randn(2, 7, 32), torch.randn(2, 46, 32), torch.rand(2, 7, levels, 4) * 0.6 + 0.2
    results, gradients = [], []
    for one in (plain, ours[0]):
        leaves = [t.clone().requires_grad_() for t in inputs]
        results.append(run(one, *leaves))
        results[-1].square().sum().backward()
        gradients.append([t.grad for t in leaves])
    torch.testing.assert_close(results[1], results[0], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(gradients[1], gradients[0], rtol=1e-3, atol=1e-3)
    untouched = run(layer(model, name, config), *inputs)  # other instances of the class keep their own
    assert torch.equal(untouched, results[0])


@pytest.mark.parametrize("model", [m for m, _, c in LAYERS if c != "explicit"])
def test_discrete_method(model: str) -> None:
    (name, config) = next((n, c) for m, n, c in LAYERS if m == model)
    plain = layer(model, name, config, "discrete")
    ours = nn.Sequential(copy.deepcopy(plain))
    compat.use_polyop(ours)
    torch.manual_seed(2)
    inputs = torch.randn(2, 9, 32), torch.randn(2, 46, 32), torch.rand(2, 9, 1, 4) * 1.5 - 0.25
    torch.testing.assert_close(run(ours[0], *inputs), run(plain, *inputs), rtol=1e-4, atol=1e-4)


def test_the_kernel_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    kernel = compat.functional.ms_deform_attn
    monkeypatch.setattr(compat.functional, "ms_deform_attn", lambda *a: calls.append(a) or kernel(*a))
    ours = nn.Sequential(*(layer(*entry) for entry in LAYERS))
    assert compat.use_polyop(ours) == len(LAYERS)
    for entry, one in zip(LAYERS, ours, strict=True):
        run(one, torch.randn(1, 3, 32), torch.randn(1, 46, 32), torch.rand(1, 3, 3 if entry[2] == "explicit" else 1, 4))
    assert len(calls) == len(LAYERS)
    with pytest.raises(ValueError, match="deformable attention or Mamba layers, got Linear"):
        compat.use_polyop(nn.Linear(1, 1))
