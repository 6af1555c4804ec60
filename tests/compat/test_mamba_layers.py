# SPDX-License-Identifier: Apache-2.0
"""The layers of mamba_ssm, compared with transformers', and VMamba's compiled parts. An installed mamba_ssm keeps its
own layers."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import transformers
from torch import Tensor, nn
from torch.nn.functional import silu
from transformers.models.mamba.modeling_mamba import MambaMixer
from transformers.models.mamba2.modeling_mamba2 import Mamba2Mixer

from polyop.compat import mamba_ssm, selective_scan_cuda_core
from polyop.compat.mamba_ssm import Mamba, Mamba2
from polyop.compat.mamba_ssm.ops.selective_scan_interface import selective_scan_fn
from polyop.compat.mamba_ssm.ops.triton import layer_norm, layernorm_gated
from tests.support.processes import environment, run


def mamba() -> tuple[nn.Module, nn.Module]:
    torch.manual_seed(0)
    config = transformers.MambaConfig(hidden_size=32, state_size=8, num_hidden_layers=1, time_step_rank=2)
    return Mamba(32, d_state=8, layer_idx=0), MambaMixer(config, 0)


def mamba_2() -> tuple[nn.Module, nn.Module]:
    torch.manual_seed(0)
    config = transformers.Mamba2Config(
        hidden_size=32, state_size=8, num_hidden_layers=1, num_heads=4, head_dim=16, n_groups=1, chunk_size=16
    )
    return Mamba2(32, d_state=8, headdim=16, layer_idx=0), Mamba2Mixer(config, 0)


@pytest.mark.parametrize("create", [mamba, mamba_2])
def test_layers(create: object) -> None:
    layer, reference = create()
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.3)
    reference.load_state_dict(layer.state_dict())  # the names of checkpoints
    tokens = torch.randn(2, 21, 32)
    with torch.no_grad():
        expected = reference(tokens)
        torch.testing.assert_close(layer(tokens), expected, rtol=1e-4, atol=1e-4)
        for first in (1, 13):  # a prompt, then token by token
            cache = SimpleNamespace(seqlen_offset=0, key_value_memory_dict={})
            parts = [layer(tokens[:, :first], inference_params=cache)]
            for i in range(first, 21):
                cache.seqlen_offset = i
                parts.append(layer(tokens[:, i : i + 1], inference_params=cache))
            torch.testing.assert_close(torch.cat(parts, 1), expected, rtol=1e-4, atol=1e-4)
    layer(tokens).square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in layer.parameters())
    with pytest.raises(ValueError, match="step: hidden_states: expected one token, got 2"):
        layer.step(tokens[:, :2], *layer.allocate_inference_cache(2, 9))


@pytest.mark.parametrize("options", [
    {"ngroups": 2, "D_has_hdim": True}, {"rmsnorm": False, "bias": True}, {"d_ssm": 32, "norm_before_gate": True},
    {"dt_limit": (0.01, 0.4)},
])  # fmt: skip
def test_options_of_mamba_2(options: dict[str, object]) -> None:
    """The way with a cache, whose parts are tested one by one, against the other one."""
    torch.manual_seed(0)
    layer = Mamba2(32, d_state=8, headdim=16, layer_idx=3, **options)
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.3)
    tokens = torch.randn(2, 9, 32)
    with torch.no_grad():
        expected = layer(tokens)
        torch.testing.assert_close(layer(tokens.flatten(0, 1), seqlen=9), expected.flatten(0, 1))
        states = layer.allocate_inference_cache(2, 9)
        found = [layer.step(tokens[:, i : i + 1], *states)[0] for i in range(9)]
        torch.testing.assert_close(torch.cat(found, 1), expected, rtol=1e-4, atol=1e-4)
        cache = SimpleNamespace(seqlen_offset=0, key_value_memory_dict={})
        torch.testing.assert_close(layer(tokens, inference_params=cache), expected, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(cache.key_value_memory_dict[3][1], states[1], rtol=1e-4, atol=1e-4)


def test_normalization() -> None:
    torch.manual_seed(0)
    x, z, residual, weight, bias = (torch.randn(2, 5, 8) for _ in range(5))
    weight, bias = weight[0, 0], bias[0, 0]

    def rms(t: Tensor) -> Tensor:
        return t / (t.square().mean(-1, keepdim=True) + 1e-6).sqrt()

    groups = rms(x.unflatten(2, (2, 4))).flatten(2) * weight
    torch.testing.assert_close(layernorm_gated.rmsnorm_fn(x, weight, None, z, group_size=4), groups * silu(z))
    gated = rms(x * silu(z)) * weight + bias
    torch.testing.assert_close(layernorm_gated.rmsnorm_fn(x, weight, bias, z, norm_before_gate=False), gated)
    total = x + residual
    expected = nn.functional.layer_norm(total, (8,), weight, bias, 1e-6)
    found = layer_norm.layer_norm_fn(x, weight, bias, residual, prenorm=True)
    torch.testing.assert_close(found, (expected, total))
    half = layer_norm.RMSNorm(8, eps=1e-6).half()(x.half(), prenorm=True, residual_in_fp32=True)
    assert [t.dtype for t in half] == [torch.float16, torch.float32]
    torch.testing.assert_close(half[0].float(), rms(x), rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("wide", [False, True])
def test_the_compiled_parts_of_vmamba(wide: bool) -> None:
    torch.manual_seed(0)
    kind = torch.bfloat16 if wide else torch.float32
    u, delta = torch.randn(2, 12, 40).to(kind), torch.randn(2, 6, 40).to(kind)
    a, b, c = -torch.rand(12, 5), torch.randn(2, 3, 5, 40).to(kind), torch.randn(2, 3, 5, 40).to(kind)
    d, bias = torch.randn(12), torch.randn(6)
    leaves = [t.clone().requires_grad_() for t in (u, delta, a, b, c, d, bias)]
    given = [t.float() for t in leaves]
    expected = selective_scan_fn(
        given[0], given[1].repeat_interleave(2, 1), *given[2:6], None, given[6].repeat_interleave(2), True
    )
    out, states = selective_scan_cuda_core.fwd(u, delta, a, b, c, d, bias, True, 1, *([True] if wide else []))
    assert out.dtype == torch.float32
    torch.testing.assert_close(out, expected)
    grad = torch.randn_like(out)
    found = selective_scan_cuda_core.bwd(u, delta, a, b, c, d, bias, grad, states, True, 1)
    for got, leaf, want in zip(found, leaves, torch.autograd.grad(expected, leaves, grad), strict=True):
        assert got is not None
        assert got.dtype == leaf.dtype
        torch.testing.assert_close(got, want)
    with pytest.raises(ValueError, match="delta: expected a divisor of 12 channels, got 5"):
        selective_scan_cuda_core.fwd(u, delta[:, :5], a, b, c, d, None, True)


def installed(folder: Path, head: str = "") -> Path:
    """Writes a mamba_ssm as 2.x is: its layers import functions that need Triton and CUDA."""
    for name, text in {
        "__init__": f"{head}\nfrom mamba_ssm.modules.layer import Mamba2\n__version__ = '2.3.1'",
        "modules/__init__": "",
        "modules/layer": (
            "from mamba_ssm.ops.triton.ssd_combined import mamba_chunk_scan_combined\n"
            "from mamba_ssm.ops.triton.layernorm_gated import RMSNorm as Norm\n"
            "from mamba_ssm.ops.triton.mamba3.mamba3_siso_combined import mamba3_siso_combined\n"
            "from mamba_ssm.ops.selective_scan_interface import selective_scan_fn\n"
            "import selective_scan_cuda\nclass Mamba2: pass"
        ),
        "ops/__init__": "",
        "ops/selective_scan_interface": "import triton",
        "ops/triton/__init__": "",
        "ops/triton/ssd_combined": "import triton",
        "ops/triton/layernorm_gated": "import triton",
        "ops/triton/mamba3/__init__": "",
        "ops/triton/mamba3/mamba3_siso_combined": "import triton",
    }.items():
        file = folder / "mamba_ssm" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


def test_an_installed_package_keeps_its_layers(tmp_path: Path) -> None:
    code = (
        "import polyop.compat as c; print('mamba_ssm' in c.install(), c.install('mamba_ssm'))\n"
        "import mamba_ssm; from mamba_ssm.modules.layer import Norm, Mamba2, mamba3_siso_combined as m3\n"
        "from mamba_ssm.ops.triton import ssd_combined\n"
        "print(mamba_ssm.__version__, Mamba2.__module__, Norm.__module__, ssd_combined.__name__)\n"
        "try: m3(1)\nexcept NotImplementedError as e: print(e)"
    )
    said = run(sys.executable, "-c", code, env=environment(installed(tmp_path))).splitlines()
    ours = "polyop.compat.mamba_ssm.ops.triton"
    assert said == [
        "True []",
        f"2.3.1 mamba_ssm.modules.layer {ours}.layernorm_gated {ours}.ssd_combined",
        "mamba3_siso_combined: expected Triton and a GPU: polyop has no operators of Mamba 3",
    ]


def test_a_package_whose_python_code_does_not_load(tmp_path: Path) -> None:
    """The cause is not hidden."""
    code = (
        "import warnings\nwith warnings.catch_warnings(record=True) as said:\n"
        "  warnings.simplefilter('always'); import polyop.compat as c; c.install('mamba_ssm')\n"
        "print([str(w.message) for w in said if 'mamba_ssm' in str(w.message)])\n"
        "from mamba_ssm import Mamba; print(Mamba.__module__)"
    )
    said = run(
        sys.executable, "-c", code, env=environment(installed(tmp_path, "import a_missing_package"))
    ).splitlines()
    assert said[0].endswith("because that does not load: No module named 'a_missing_package'\"]")
    assert said[1] == "polyop.compat.mamba_ssm.modules.mamba_simple"


def test_names_that_are_missing() -> None:
    with pytest.raises(ImportError, match="polyop's mamba_ssm has no MambaLMHeadModel: install mamba_ssm's own"):
        _ = mamba_ssm.MambaLMHeadModel
    assert not hasattr(mamba_ssm, "another_name")
