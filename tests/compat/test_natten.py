"""natten, compared with its formula: a softmax over the keys that are not masked, in plain PyTorch."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import pytest
import torch
from torch import Tensor

import polyop.compat
from polyop.compat import natten
from polyop.compat.natten import functional as ours


def sees(extent: int, kernel: int, dilation: int, causal: bool) -> Tensor:
    """Returns which positions of an axis each position attends to, found one by one."""
    mask = torch.zeros(extent, extent, dtype=torch.bool)
    for query in range(extent):
        group = [i for i in range(extent) if (i - query) % dilation == 0]
        at = group.index(query)
        if causal:
            chosen = group[max(0, at - kernel + 1) : at + 1]
        else:
            first = min(max(at - kernel // 2, 0), len(group) - kernel)
            chosen = group[first : first + kernel]
        mask[query, chosen] = True
    return mask


def mask_of(extents: Sequence[int], kernel: Sequence[int], dilation: Sequence[int], causal: Sequence[bool]) -> Tensor:
    result = torch.ones(1, 1, dtype=torch.bool)
    for arguments in zip(extents, kernel, dilation, causal, strict=True):
        axis = sees(*arguments)
        result = (result[:, None, :, None] & axis[None, :, None]).flatten(2).flatten(0, 1)
    return result


def formula(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, scale: float) -> Tensor:
    flat = [t.flatten(1, -3).transpose(1, 2) for t in (query, key, value)]
    products = (flat[0] @ flat[1].transpose(2, 3) * scale).masked_fill(~mask, -torch.inf)
    return (products.softmax(3) @ flat[2]).transpose(1, 2).reshape(*query.shape[:-1], value.shape[-1])


CASES = [
    ((9,), (3,), (1,), (False,)),
    ((10,), (4,), (2,), (False,)),
    ((11,), (3,), (3,), (True,)),
    ((7, 8), (3, 5), (2, 1), (False, True)),
    ((6, 6), (2, 3), (1, 2), (False, False)),
    ((3, 4, 6), (3, 3, 2), (1, 1, 3), (True, False, False)),
]


@pytest.mark.parametrize(("extents", "kernel", "dilation", "causal"), CASES)
def test_attention_and_its_gradients(
    extents: tuple[int, ...], kernel: tuple[int, ...], dilation: tuple[int, ...], causal: tuple[bool, ...]
) -> None:
    torch.manual_seed(0)
    leaves = [torch.randn(2, *extents, 3, 8, requires_grad=True) for _ in range(3)]
    expected = formula(*leaves, mask_of(extents, kernel, dilation, causal), 8**-0.5)
    attend = getattr(natten, f"na{len(extents)}d")
    found = attend(*leaves, kernel, dilation=dilation, is_causal=causal)
    torch.testing.assert_close(found, expected)
    grad = torch.randn_like(found)
    for got, want in zip(
        torch.autograd.grad(found, leaves, grad), torch.autograd.grad(expected, leaves, grad), strict=True
    ):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("extents", "kernel", "dilation", "causal"), CASES)
def test_the_two_halves(
    extents: tuple[int, ...], kernel: tuple[int, ...], dilation: tuple[int, ...], causal: tuple[bool, ...]
) -> None:
    torch.manual_seed(0)
    axes = len(extents)
    query, key, value = (torch.randn(2, *extents, 3, 8) for _ in range(3))
    heads_first = [t.movedim(-2, 1) for t in (query, key, value)]
    products = getattr(ours, f"na{axes}d_qk")(heads_first[0], heads_first[1], kernel, dilation, is_causal=causal)
    sums = getattr(ours, f"na{axes}d_av")(products.softmax(-1), heads_first[2], kernel, dilation, is_causal=causal)
    expected = formula(query, key, value, mask_of(extents, kernel, dilation, causal), 1)
    torch.testing.assert_close(sums.movedim(1, -2), expected)


def test_relative_biases() -> None:
    """The bias of a pair is at the difference of their numbers, counted in steps of the dilation."""
    torch.manual_seed(0)
    query, key, rpb = torch.randn(1, 2, 7, 9, 4), torch.randn(1, 2, 7, 9, 4), torch.randn(2, 5, 5)
    without = ours.natten2dqk(query, key, 3, 2)
    biases = ours.natten2dqkrpb(query, key, rpb, 3, 2) - without
    rows, columns = sees(7, 3, 2, False), sees(9, 3, 2, False)
    for y, x in ((0, 0), (3, 4), (6, 8), (1, 7)):
        near = [(r, c) for r in rows[y].nonzero()[:, 0].tolist() for c in columns[x].nonzero()[:, 0].tolist()]
        for j, (r, c) in enumerate(near):
            torch.testing.assert_close(biases[0, :, y, x, j], rpb[:, (r - y) // 2 + 2, (c - x) // 2 + 2])


def test_groups_of_heads_options_and_layers() -> None:
    torch.manual_seed(0)
    query, key = torch.randn(1, 9, 4, 8), torch.randn(1, 9, 2, 8)
    few = natten.na1d(query, key, key, 3, scale=2.0, backend="flex", q_tile_shape=(64,))
    torch.testing.assert_close(few, formula(query, *[key.repeat_interleave(2, 2)] * 2, sees(9, 3, 1, False), 2.0))
    layer = natten.NeighborhoodAttention2D(32, 4, 3, dilation=2)
    x = torch.randn(2, 6, 7, 32)
    parts = layer.qkv(x).reshape(2, 6, 7, 3, 4, 8).unbind(3)
    mask = mask_of((6, 7), (3, 3), (2, 2), (False, False))
    torch.testing.assert_close(layer(x), layer.proj(formula(*parts, mask, 8**-0.5).flatten(3)))


def test_errors() -> None:
    q = torch.zeros(1, 9, 2, 4)
    with pytest.raises(ValueError, match="na1d: stride: expected 1, got 2"):
        natten.na1d(q, q, q, 3, 2)
    with pytest.raises(ValueError, match=r"na2d: query: expected 5 dimensions, got \[1, 9, 2, 4\]"):
        natten.na2d(q, q, q, 3)
    with pytest.raises(ValueError, match="na1d: return_lse: expected False"):
        natten.na1d(q, q, q, 3, return_lse=True)
    with pytest.raises(
        RuntimeError, match=r"expected at least kernel_size . dilation = 12 positions in dimension 1, got 9"
    ):
        natten.na1d(q, q, q, 3, dilation=4)
    with pytest.raises(ValueError, match=r"na1d_qk: kernel_size . dilation: expected at most 2, got 3"):
        ours.natten1dqk(q, q, 3, 1)


@pytest.fixture
def _installed() -> Iterator[None]:
    before = set(sys.modules)
    polyop.compat.install("natten")
    yield
    for name in set(sys.modules) - before:
        if name.split(".")[0] == "natten" or "dinat" in name:
            del sys.modules[name]


@pytest.mark.usefixtures("_installed")
def test_transformers_finds_it() -> None:
    """Its DiNAT takes the functions from natten. (Version 5.23 exchanges height and width instead of moving the heads
    to the front, so that its layer itself fails.)"""
    pytest.importorskip("transformers")
    from transformers.models.dinat import modeling_dinat
    from transformers.utils import is_natten_available

    assert is_natten_available()
    assert modeling_dinat.natten2dqkrpb is ours.natten2dqkrpb
    assert modeling_dinat.natten2dav is ours.natten2dav


def test_a_layer_of_nat() -> None:
    """As DiNAT's layer calls the functions, with the heads in front, compared with the formula."""
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, 3, 9, 8, 4) for _ in range(3))
    rpb = torch.randn(3, 5, 5)
    scores = ours.natten2dqkrpb(query / 2, key, rpb, 3, 2)
    found = ours.natten2dav(scores.softmax(-1), value, 3, 2)
    mask = mask_of((9, 8), (3, 3), (2, 2), (False, False))
    rows, columns = torch.arange(72) // 8, torch.arange(72) % 8
    distances = [(at[None] - at[:, None]).div(2, rounding_mode="floor").clamp(-2, 2) + 2 for at in (rows, columns)]
    products = query.flatten(2, 3) / 2 @ key.flatten(2, 3).transpose(2, 3) + rpb[:, distances[0], distances[1]]
    expected = products.masked_fill(~mask, -torch.inf).softmax(3) @ value.flatten(2, 3)
    torch.testing.assert_close(found.flatten(2, 3), expected)
