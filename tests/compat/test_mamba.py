# SPDX-License-Identifier: Apache-2.0
"""selective_scan_cuda, causal_conv1d and mamba_ssm, compared with loops over the steps and transformers' layers."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import conv1d, pad, silu, softplus

import polyop.compat
from polyop import functional
from polyop.compat import causal_conv1d, causal_conv1d_cuda, mamba_ssm, selective_scan_cuda
from polyop.compat.causal_conv1d import cpp_functions
from polyop.compat.causal_conv1d.causal_conv1d_varlen import causal_conv1d_varlen_states
from polyop.compat.mamba_ssm.ops.selective_scan_interface import selective_scan_fn, selective_scan_ref
from polyop.compat.mamba_ssm.ops.triton.ssd_combined import mamba_chunk_scan_combined
from polyop.compat.transformers import use_polyop
from tests.support.single_node import session


def formula(
    u: Tensor, delta: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor | None, z: Tensor | None, bias: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The recurrence, one step after the other. B and C are [N, groups, S, L]."""
    steps = softplus(delta if bias is None else delta + bias[:, None])
    b, c = (t.repeat_interleave(u.shape[1] // t.shape[1], 1) for t in (b, c))
    h = u.new_zeros(u.shape[0], *a.shape)
    outputs = []
    for step in range(u.shape[2]):
        size = steps[:, :, step, None]
        h = torch.exp(size * a) * h + size * u[:, :, step, None] * b[..., step]
        outputs.append((h * c[..., step]).sum(2))
    y = torch.stack(outputs, 2)
    y = y if d is None else y + d[:, None] * u
    return y if z is None else y * silu(z), h


def inputs(batch: int = 2, dim: int = 12, length: int = 70, states: int = 5, groups: int = 2) -> list[Tensor]:
    torch.manual_seed(0)
    rows, coefficients = (batch, dim, length), (batch, groups, states, length)
    return [
        torch.randn(rows), torch.randn(rows) * 0.5, -torch.rand(dim, states) * 4, torch.randn(coefficients),
        torch.randn(coefficients), torch.randn(dim), torch.randn(rows), torch.randn(dim) * 0.5,
    ]  # fmt: skip


@pytest.mark.parametrize("omitted", [(), (5, 6, 7), (6,)])
def test_selective_scan_and_its_gradients(omitted: tuple[int, ...]) -> None:
    given = [None if i in omitted else t for i, t in enumerate(inputs())]
    wide = [None if t is None else t.double().requires_grad_() for t in given]
    expected, last = formula(*wide)
    leaves = [None if t is None else t.clone().requires_grad_() for t in given]
    out, state = selective_scan_fn(*leaves, delta_softplus=True, return_last_state=True)
    torch.testing.assert_close(out.double(), expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(state.double(), last, rtol=1e-4, atol=1e-4)
    grad = torch.randn_like(out)
    found = torch.autograd.grad(out, [t for t in leaves if t is not None], grad)
    of_formula = torch.autograd.grad(expected, [t for t in wide if t is not None], grad.double())
    for got, want in zip(found, of_formula, strict=True):
        torch.testing.assert_close(got.double(), want, rtol=1e-3, atol=1e-3)
    with torch.no_grad():
        torch.testing.assert_close(selective_scan_ref(*given, delta_softplus=True), out, rtol=1e-4, atol=1e-4)


def test_the_compiled_part() -> None:
    """Its functions, as the autograd function of mamba_ssm calls them."""
    given = inputs()
    u, delta, a, b, c, d, z, bias = given
    out, states, gated = selective_scan_cuda.fwd(*given, True)
    expected, last = formula(*given)
    torch.testing.assert_close(gated, expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(states[:, :, -1, 1::2], last, rtol=1e-4, atol=1e-4)
    leaves = [t.clone().requires_grad_() for t in given]
    grad = torch.randn_like(gated)
    of_formula = torch.autograd.grad(selective_scan_fn(*leaves, delta_softplus=True), leaves, grad)
    into = torch.empty_like(z)
    found = selective_scan_cuda.bwd(*given, grad, states, out, into, True, True)
    assert found[7] is into
    for i, want in zip((0, 1, 2, 3, 4, 5, 7, 6), of_formula, strict=True):
        torch.testing.assert_close(found[i], want)
    torch.testing.assert_close(found[8], gated)
    assert len(selective_scan_cuda.fwd(u, delta, a, b, c, d, None, bias, True)) == 2


def test_constant_and_complex_coefficients() -> None:
    u, delta, a, b, c, *_ = inputs(groups=1)
    constant = torch.randn(12, 5)
    expected = formula(u, delta, a, constant[None, :, :, None].expand(2, 12, 5, 70), c, None, None, None)[0]
    torch.testing.assert_close(
        selective_scan_fn(u, delta, a, constant, c[:, 0], delta_softplus=True), expected, rtol=1e-4, atol=1e-4
    )
    turning = torch.complex(a, torch.randn(12, 5))
    pairs = torch.view_as_real(torch.complex(b[:, 0], torch.randn(2, 5, 70))).flatten(2)
    found = selective_scan_fn(u, delta, turning, pairs, pairs, delta_softplus=True)
    h, steps, both = (
        torch.zeros(2, 12, 5, dtype=torch.complex64),
        softplus(delta),
        torch.view_as_complex(pairs.unflatten(2, (-1, 2))),
    )
    for step in range(70):
        size = steps[:, :, step, None]
        h = torch.exp(size * turning) * h + size * u[:, :, step, None] * both[:, None, :, step]
    torch.testing.assert_close(found[:, :, -1], 2 * (h * both[:, None, :, -1]).sum(2).real, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("heads", [None, 3])
def test_selective_state_update(heads: int | None) -> None:
    u, delta, a, b, c, d, z, bias = (t for t in inputs(length=4, groups=1 if heads is None else 3))
    state = torch.zeros(2, 12, 5) if heads is None else torch.zeros(2, 3, 4, 5)
    spread = (lambda t, at: t) if heads is None else (lambda t, at: t.unflatten(at, (3, 4)))
    expected, last = formula(u, delta, a, b, c, d, z, bias)
    for step in range(4):
        out = mamba_ssm.selective_state_update(
            state, spread(u[..., step], 1), spread(delta[..., step], 1), spread(a, 0),
            b[:, 0, :, step] if heads is None else b[..., step], c[:, 0, :, step] if heads is None else c[..., step],
            spread(d, 0), spread(z[..., step], 1), spread(bias, 0), dt_softplus=True,
        )  # fmt: skip
        torch.testing.assert_close(out.reshape(2, 12), expected[..., step], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(state.reshape(2, 12, 5), last, rtol=1e-4, atol=1e-5)
    many = torch.zeros(5, *state.shape[1:])
    mamba_ssm.selective_state_update(
        many, spread(u[..., 0], 1), spread(delta[..., 0], 1), spread(a, 0), b[..., 0], c[..., 0],
        state_batch_indices=torch.tensor([3, 1]),
    )  # fmt: skip
    assert many.flatten(1).any(1).tolist() == [False, True, False, True, False]


@pytest.mark.parametrize(("length", "groups"), [(150, 1), (64, 2), (5, 4), (0, 2)])
@pytest.mark.parametrize("full", [False, True])
def test_the_chunked_scan_of_mamba_2(length: int, groups: int, full: bool) -> None:
    torch.manual_seed(0)
    heads, width, states, double = 4, 3, 6, torch.float64
    x, z = (torch.randn(2, length, heads, width, dtype=double) for _ in range(2))
    b, c = (torch.randn(2, length, groups, states, dtype=double) for _ in range(2))
    steps, rates = torch.randn(2, length, heads, dtype=double), -torch.rand(heads, dtype=double) * 3
    skip, bias = torch.randn(heads, dtype=double), torch.randn(heads, dtype=double)
    first = torch.randn(2, heads, width, states, dtype=double)
    options = {"D": skip, "z": z, "dt_bias": bias, "initial_states": first, "dt_limit": (0.1, 2.0)} if full else {}
    leaves = [t.requires_grad_() for t in (x, steps, rates, b, c)]
    found, last = mamba_chunk_scan_combined(
        *leaves, chunk_size=16, dt_softplus=True, return_final_states=True, **options
    )

    sizes = softplus(steps + bias).clamp(0.1, 2) if full else softplus(steps)
    every_b, every_c = (t.repeat_interleave(heads // groups, 2) for t in (b, c))
    h, outputs = first if full else torch.zeros_like(first), []
    for step in range(length):
        size = sizes[:, step, :, None, None]
        added = size * x[:, step, :, :, None] * every_b[:, step, :, None]
        h = torch.exp(size * rates[:, None, None]) * h + added
        outputs.append((h * every_c[:, step, :, None]).sum(3))
    expected = torch.stack(outputs, 1) if outputs else torch.zeros_like(x)
    expected = (expected + skip[:, None] * x) * silu(z) if full else expected
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(last, h)
    if length:
        grad = torch.randn_like(expected)
        torch.testing.assert_close(
            torch.autograd.grad(found, leaves, grad), torch.autograd.grad(expected, leaves, grad)
        )


class VMamba(nn.Module):
    """The scans of a block of VMamba: along rows and columns, in both directions, as four groups of one call."""

    def __init__(self, scan: Callable[..., Tensor]) -> None:
        super().__init__()
        torch.manual_seed(0)
        channels, states = 6, 4
        self.scan, self.sizes = scan, [channels, states, states]
        self.weight = torch.randn(4, 2 * states + channels, channels) * 0.3
        self.rates = -torch.rand(4 * channels, states) * 3
        self.skip, self.bias = torch.randn(4 * channels), torch.randn(4 * channels)

    def forward(self, image: Tensor) -> Tensor:
        height, width = image.shape[2:]
        both = torch.stack([image.flatten(2), image.transpose(2, 3).flatten(2)], 1)
        rows = torch.cat([both, both.flip(3)], 1)  # [N, 4, channels, pixels]
        sizes, b, c = torch.einsum("nkcl,kdc->nkdl", rows, self.weight).split(self.sizes, 2)
        y = self.scan(
            rows.flatten(1, 2), sizes.flatten(1, 2).contiguous(), self.rates, b.contiguous(), c.contiguous(),
            self.skip, self.bias,
        )  # fmt: skip
        y = y.unflatten(1, (4, self.sizes[0]))
        y = y[:, :2] + y[:, 2:].flip(3)
        return y[:, 0].unflatten(2, (height, width)) + y[:, 1].unflatten(2, (width, height)).transpose(2, 3)


def test_a_block_of_vmamba(tmp_path: Path) -> None:
    image = torch.randn(2, 6, 5, 7)
    block = VMamba(lambda *given: selective_scan_fn(*given[:6], None, given[6], delta_softplus=True))
    in_steps = VMamba(lambda *given: formula(*(t.double() for t in given[:6]), None, given[6].double())[0])
    found, expected = block(image), in_steps(image)
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-4)
    file = tmp_path / "vmamba.onnx"
    torch.onnx.export(block.eval(), (image,), file, dynamo=True, input_names=["image"])
    assert [node.op_type for node in onnx.load(file).graph.node].count("SelectiveScan") == 1
    (exported,) = session(onnx.load(file)).run(None, {"image": image.numpy()})
    np.testing.assert_allclose(exported, expected, rtol=1e-4, atol=1e-4)


def convolved(x: Tensor, weight: Tensor, bias: Tensor | None, before: Tensor | None) -> Tensor:
    wide = pad(x, (weight.shape[1] - 1, 0)) if before is None else torch.cat([before, x], 2)
    return silu(conv1d(wide, weight[:, None], bias, groups=weight.shape[0]))


@pytest.mark.parametrize("width", [2, 3, 4])
def test_causal_conv1d(width: int) -> None:
    torch.manual_seed(0)
    x, weight, bias, before = torch.randn(2, 6, 40), torch.randn(6, width), torch.randn(6), torch.randn(2, 6, width - 1)
    expected = convolved(x, weight, bias, before)
    out, final = causal_conv1d.causal_conv1d_fn(x, weight, bias, None, before, True, activation="swish")
    torch.testing.assert_close(out, expected)
    assert torch.equal(final, torch.cat([before, x], 2)[..., 40:])
    state = torch.cat([torch.zeros(2, 6, 1), before], 2)
    for step in range(40):
        one = causal_conv1d.causal_conv1d_update(x[..., step], state, weight, bias, "silu")
        torch.testing.assert_close(one, expected[..., step])
    assert torch.equal(state, x[..., 40 - width :])


def test_sequences_and_circular_states() -> None:
    torch.manual_seed(0)
    x, weight, bias = torch.randn(2, 6, 9), torch.randn(6, 4), torch.randn(6)
    sequences = torch.tensor([[0, 0, 0, 1, 1, 2, 2, 2, 2], [0] * 9], dtype=torch.int32)
    out = causal_conv1d.causal_conv1d_fn(x, weight, bias, sequences, activation="silu")
    parts = [convolved(x[:1, :, i:j], weight, bias, None) for i, j in ((0, 3), (3, 5), (5, 9))]
    torch.testing.assert_close(out[:1], torch.cat(parts, 2))
    torch.testing.assert_close(out[1:], convolved(x[1:], weight, bias, None))
    ring, expected = torch.zeros(2, 6, 5), convolved(x, weight, bias, None)
    for step in range(0, 9, 3):
        found = causal_conv1d.causal_conv1d_update(
            x[..., step : step + 3], ring, weight, bias, "silu", cache_seqlens=torch.tensor([step, step])
        )
        torch.testing.assert_close(found, expected[..., step : step + 3])
    rows = torch.zeros(4, 6, 3)
    first = causal_conv1d.causal_conv1d_update(x[..., 0], rows, weight, bias, None, None, torch.tensor([2, 0]))
    torch.testing.assert_close(silu(first), expected[..., 0])
    assert torch.equal(rows[[2, 0], :, 2], x[..., 0])
    with pytest.raises(ValueError, match=r"causal_conv1d_update: conv_state: expected at least 3 columns, got 2"):
        causal_conv1d.causal_conv1d_update(x, torch.zeros(2, 6, 2), weight)
    with pytest.raises(NotImplementedError, match=r"activation: expected None, 'silu' or 'swish', got 'relu'"):
        causal_conv1d.causal_conv1d_fn(x, weight, activation="relu")


def _compiled_update(x: Tensor, state: Tensor, weight: Tensor, bias: Tensor, **given: Tensor) -> Tensor:
    out = torch.full_like(x, 9).unsqueeze(2)
    lengths, indices = given.get("cache_seqlens"), given["conv_state_indices"]
    causal_conv1d_cuda.causal_conv1d_update(x.unsqueeze(2), state, weight, bias, out, False, lengths, indices)
    return out.squeeze(2)


@pytest.mark.parametrize("update", [causal_conv1d.causal_conv1d_update, _compiled_update])
@pytest.mark.parametrize("is_ring", [False, True])
@pytest.mark.parametrize("indices", [[1, -1, 2, -7], [-1, 4, -1, 0], [-1] * 4, [3, 1, 0, 2], []])
def test_padding_among_the_rows(update: Callable[..., Tensor], is_ring: bool, indices: list[int]) -> None:
    """A negative index marks a row of the batch that nobody owns: its result is 0, and no state changes for it."""
    torch.manual_seed(0)
    x, weight, bias = torch.randn(len(indices), 6), torch.randn(6, 4), torch.randn(6)
    state = torch.randn(5, 6, 4)
    x[[row for row, index in enumerate(indices) if index < 0]] = torch.nan
    expected, expected_state = torch.zeros_like(x), state.clone()
    lengths = torch.arange(len(indices), dtype=torch.int32) if is_ring else None
    for row, index in enumerate(indices):
        if index >= 0:
            one = expected_state[index : index + 1]  # is updated in place
            at = None if lengths is None else lengths[row : row + 1]
            expected[row] = causal_conv1d.causal_conv1d_update(x[row : row + 1], one, weight, bias, cache_seqlens=at)
    rows = torch.tensor(indices, dtype=torch.int32)
    out = update(x, state, weight, bias, cache_seqlens=lengths, conv_state_indices=rows)
    torch.testing.assert_close(out, expected)
    assert torch.equal(state, expected_state)


def test_padding_behind_the_sequences() -> None:
    torch.manual_seed(0)
    x, weight, bias = torch.randn(2, 6, 7), torch.randn(6, 4), torch.ones(6)
    x[1, :, :2] = torch.nan
    x.requires_grad_()
    sequences = torch.tensor([[0, 0, 0, 1, 1, -1, -1], [-1, -1, 4, 4, -1, 5, 5]], dtype=torch.int32)
    parts = ((0, 0, 3), (0, 3, 5), (1, 2, 4), (1, 5, 7))
    expected = torch.zeros(2, 6, 7)
    for row, i, j in parts:
        expected[row, :, i:j] = convolved(x[row : row + 1, :, i:j], weight, bias, None)[0].detach()
    out = causal_conv1d.causal_conv1d_fn(x, weight, bias, sequences, activation="silu")
    torch.testing.assert_close(out.detach(), expected)
    (grad,) = torch.autograd.grad(out.sum(), x)
    assert not grad.transpose(0, 1)[:, sequences < 0].any()
    with torch.no_grad():
        assert torch.equal(cpp_functions.causal_conv1d_fwd_function(x, weight, bias, sequences, None, None, True), out)


def test_states_of_sequences_in_one_tensor() -> None:
    x, ends = torch.randn(11, 3), torch.tensor([0, 5, 6, 6, 11], dtype=torch.int32)
    states = causal_conv1d_varlen_states(x, ends, 4)
    assert states.shape == (4, 3, 4)
    for state, (begin, end) in zip(states, itertools.pairwise(ends.tolist()), strict=True):
        own = x[max(begin, end - 4) : end].T
        assert torch.equal(state, pad(own, (4 - own.shape[1], 0)))
    assert torch.equal(causal_conv1d_varlen_states(x[:0], ends[:2] * 0, 2), torch.zeros(1, 3, 2))


def test_both_interfaces_of_the_compiled_convolution() -> None:
    torch.manual_seed(0)
    x, weight, bias, before = torch.randn(2, 6, 20), torch.randn(6, 4), torch.randn(6), torch.randn(2, 6, 3)
    leaves = [t.clone().requires_grad_() for t in (x, weight, bias, before)]
    expected = convolved(*leaves)
    out = cpp_functions.causal_conv1d_fwd_function(x, weight, bias, None, before, None, True)
    torch.testing.assert_close(out, expected.detach())
    torch.testing.assert_close(causal_conv1d_cuda.causal_conv1d_fwd(x, weight, bias, None, before, None, True), out)
    grad = torch.randn_like(out)
    of_formula = torch.autograd.grad(expected, leaves, grad)
    older = cpp_functions.causal_conv1d_bwd_function(x, weight, bias, grad, None, before, None, None, True, True)
    newer = [torch.empty_like(t) for t in (x, weight, bias, before)]
    causal_conv1d_cuda.causal_conv1d_bwd(x, weight, bias, grad, None, before, None, *newer, True)
    for want, a, b in zip(of_formula, older, newer, strict=True):
        torch.testing.assert_close(a, want, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(b, want, rtol=1e-4, atol=1e-4)
    state, other = before.clone(), before.clone()
    one = cpp_functions.causal_conv1d_update_function(x[..., :1], state, weight, bias, True, None, None)
    torch.testing.assert_close(one, expected.detach()[..., :1])
    torch.testing.assert_close(
        causal_conv1d_cuda.causal_conv1d_update(x[..., :1], other, weight, bias, True, None, None), one
    )
    assert torch.equal(state, other)


# ---- transformers ------------------------------------------------------------------------------------------------

transformers = pytest.importorskip("transformers")


def mamba(**changes: object) -> nn.Module:
    torch.manual_seed(0)
    config = transformers.MambaConfig(
        vocab_size=50, hidden_size=32, state_size=16, num_hidden_layers=2, intermediate_size=64, time_step_rank=4, **changes
    )  # fmt: skip
    return transformers.MambaModel(config).eval()


def mamba_2(**changes: object) -> nn.Module:
    torch.manual_seed(0)
    config = transformers.Mamba2Config(
        vocab_size=50, hidden_size=32, state_size=16, num_hidden_layers=2, num_heads=4, head_dim=16, n_groups=2,
        chunk_size=16, pad_token_id=0, bos_token_id=0, eos_token_id=0, **changes
    )  # fmt: skip
    return transformers.Mamba2Model(config).eval()


def jamba() -> nn.Module:
    torch.manual_seed(0)
    config = transformers.JambaConfig(
        vocab_size=50, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, mamba_d_state=8, mamba_dt_rank=4, num_experts=2, attn_layer_period=2, attn_layer_offset=1,
        expert_layer_period=2, expert_layer_offset=1, pad_token_id=0, use_mamba_kernels=False,
    )  # fmt: skip
    return transformers.JambaModel(config).eval()


TOKENS = torch.randint(1, 50, (2, 40), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("create", [mamba, mamba_2, jamba])
def test_models_equal_their_slow_path(create: object) -> None:
    model = create()
    with torch.no_grad():
        slow = model(TOKENS, use_cache=False).last_hidden_state
        assert use_polyop(model) == (1 if create is jamba else 2)
        torch.testing.assert_close(model(TOKENS, use_cache=False).last_hidden_state, slow, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("create", [mamba, mamba_2])
def test_a_model_trains_and_generates(create: object) -> None:
    torch.manual_seed(0)
    kind = transformers.MambaForCausalLM if create is mamba else transformers.Mamba2ForCausalLM
    model = kind(create().config)
    found = []
    for replaced in (False, True):
        if replaced:
            assert use_polyop(model) == 2
        model.zero_grad()
        model.train()
        model(TOKENS, labels=TOKENS).loss.backward()
        gradients = [p.grad.clone() for p in model.parameters()]
        model.eval()
        with torch.no_grad():
            found.append((gradients, model.generate(TOKENS[:, :5], max_new_tokens=6, do_sample=False)))
    for a, b in zip(found[0][0], found[1][0], strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)
    assert torch.equal(found[0][1], found[1][1])


@pytest.mark.parametrize("dynamo", [False, True])
@pytest.mark.parametrize("create", [mamba, mamba_2])
def test_export(create: object, dynamo: bool, tmp_path: Path) -> None:
    model = create(use_cache=False)
    use_polyop(model)

    class Hidden(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, tokens: Tensor) -> Tensor:
            return self.model(tokens, use_cache=False).last_hidden_state

    file = tmp_path / "mamba.onnx"
    with torch.no_grad():
        torch.onnx.export(Hidden().eval(), (TOKENS,), file, dynamo=dynamo, opset_version=18, input_names=["tokens"])
        expected = model(TOKENS, use_cache=False).last_hidden_state
    nodes = [node.op_type for node in onnx.load(file).graph.node]
    assert nodes.count("SelectiveScan") == nodes.count("CausalConv1d") == 2
    (found,) = session(onnx.load(file)).run(None, {"tokens": TOKENS.numpy()})
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-4, atol=1e-4)


@pytest.fixture
def _installed() -> Iterator[None]:
    """Modules as before the installation, afterwards: other tests import transformers without it."""
    before = dict(sys.modules)
    yield
    for name in set(sys.modules) - set(before):
        if name.split(".")[0] in ("mamba_ssm", "causal_conv1d", "selective_scan_cuda", "causal_conv1d_cuda"):
            del sys.modules[name]


@pytest.mark.usefixtures("_installed")
def test_names_of_the_packages() -> None:
    polyop.compat.install("mamba_ssm", "causal_conv1d", "selective_scan_cuda", "causal_conv1d_cuda")
    from causal_conv1d import causal_conv1d_varlen
    from causal_conv1d.causal_conv1d_interface import causal_conv1d_fn
    from mamba_ssm.ops.selective_scan_interface import mamba_inner_fn
    from mamba_ssm.ops.triton.selective_state_update import selective_state_update

    assert causal_conv1d_fn is causal_conv1d.causal_conv1d_fn
    assert causal_conv1d_varlen.causal_conv1d_varlen_states is causal_conv1d_varlen_states
    assert mamba_inner_fn is mamba_ssm.mamba_inner_fn
    assert selective_state_update is mamba_ssm.selective_state_update


def test_errors() -> None:
    u, delta, a, b, c, *_ = inputs()
    with pytest.raises(
        RuntimeError, match=r"'B': expected a number of groups that divides the 12 channels of 'u', got 5"
    ):
        functional.selective_scan(u, delta, a, b[:, :1].expand(2, 5, 5, 70), c[:, :1].expand(2, 5, 5, 70))
    with pytest.raises(ValueError, match=r"selective_scan: B: expected 2 to 4 dimensions, got \[70\]"):
        selective_scan_fn(u, delta, a, b[0, 0, 0], c)
