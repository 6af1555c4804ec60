# SPDX-License-Identifier: Apache-2.0
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


def sees(extent: int, kernel: int, dilation: int, causal: bool, stride: int = 1) -> Tensor:
    """Returns which positions of an axis each position attends to, found one by one."""
    mask = torch.zeros(extent, extent, dtype=torch.bool)
    for query in range(extent):
        group = [i for i in range(extent) if (i - query) % dilation == 0]
        at = group.index(query)
        sharing = range(at // stride * stride, (at // stride + 1) * stride)
        if causal:
            last = min(sharing[-1], len(group) - 1)
            chosen = group[max(0, last - kernel + 1) : at + 1]
        else:
            middle = min(sharing[stride // 2], len(group) - 1)
            first = min(max(middle - kernel // 2, 0), len(group) - kernel)
            chosen = group[first : first + kernel]
        mask[query, chosen] = True
    return mask


def mask_of(*of_axes: Sequence[int]) -> Tensor:
    """The arguments of `sees`, for each axis."""
    result = torch.ones(1, 1, dtype=torch.bool)
    for arguments in zip(*of_axes, strict=True):
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


@pytest.mark.parametrize(("extents", "kernel", "dilation", "causal"), CASES)
def test_additional_keys(
    extents: tuple[int, ...], kernel: tuple[int, ...], dilation: tuple[int, ...], causal: tuple[bool, ...]
) -> None:
    """Each query also sees all additional keys."""
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, *extents, 3, 8, dtype=torch.double) for _ in range(3))
    keys, values = (torch.randn(2, 5, 3, 8, dtype=torch.double) for _ in range(2))
    flat = [t.flatten(1, -3).transpose(1, 2) for t in (query, key, value)]
    near = (flat[0] @ flat[1].mT * 0.5).masked_fill(~mask_of(extents, kernel, dilation, causal), -torch.inf)
    products = torch.cat([near, flat[0] @ keys.transpose(1, 2).mT * 0.5], 3)
    expected = products.softmax(3) @ torch.cat([flat[2], values.transpose(1, 2)], 2)
    attend = getattr(natten, f"na{len(extents)}d")
    options = {"dilation": dilation, "is_causal": causal, "scale": 0.5}
    found, lse = attend(
        query, key, value, kernel, additional_keys=keys, additional_values=values, return_lse=True, **options
    )
    torch.testing.assert_close(found.flatten(1, -3).transpose(1, 2), expected)
    torch.testing.assert_close(lse.flatten(1, -2).mT.double(), products.logsumexp(3), rtol=1e-5, atol=1e-5)
    parts = [
        attend(query, key, value, kernel, return_lse=True, **options),
        natten.attention(query.flatten(1, -3), keys, values, scale=0.5, return_lse=True),
    ]
    outputs, sums = (
        [t.reshape(2, -1, *t.shape[end:]) for t in given]
        for given, end in zip(zip(*parts, strict=True), (-2, -1), strict=True)
    )
    torch.testing.assert_close(natten.merge_attentions(outputs, sums), found.flatten(1, -3), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("extents", "kernel", "dilation", "causal", "stride"),
    [
        ((11,), (4,), (1,), (False,), (2,)),
        ((11,), (5,), (2,), (True,), (3,)),
        ((9, 10), (3, 4), (2, 1), (False, True), (3, 4)),
        ((4, 5, 6), (3, 2, 3), (1, 2, 1), (True, False, False), (2, 1, 3)),
    ],
)
def test_strides(
    extents: tuple[int, ...],
    kernel: tuple[int, ...],
    dilation: tuple[int, ...],
    causal: tuple[bool, ...],
    stride: tuple[int, ...],
) -> None:
    torch.manual_seed(0)
    tensors = [torch.randn(2, *extents, 3, 4) for _ in range(3)]
    attend = getattr(natten, f"na{len(extents)}d")
    expected = formula(*tensors, mask_of(extents, kernel, dilation, causal, stride), 0.5)
    torch.testing.assert_close(attend(*tensors, kernel, stride, dilation, causal), expected)


def test_strides_of_a_layer_with_dropout() -> None:
    layer = natten.NeighborhoodAttention1D(12, 3, 5, 3, attn_drop=1e-9)
    x = torch.randn(2, 11, 12)
    torch.testing.assert_close(layer.train()(x), layer.eval()(x))


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_older_layers_pad_small_inputs(axes: int) -> None:
    torch.manual_seed(0)
    layer = getattr(natten, f"NeighborhoodAttention{axes}D")(dim=12, num_heads=3, kernel_size=3, dilation=2, bias=True)
    x = torch.randn(2, *(4, 7, 5)[:axes], 12)
    padded = torch.nn.functional.pad(x, [0, 0, *[0, 1, 0, 0, 0, 2][6 - 2 * axes :]])
    torch.testing.assert_close(layer(x), layer(padded)[(slice(None), *(slice(n) for n in x.shape[1:-1]))])


def test_gradients_of_the_halves() -> None:
    """Forward and backward, with additional keys and biases."""
    torch.manual_seed(0)
    query, key, more = (torch.randn(1, 2, *size, 3, dtype=torch.double) for size in ((4, 5), (4, 5), (2,)))
    rpb, attn = torch.randn(2, 5, 5, dtype=torch.double), torch.randn(1, 2, 4, 5, 11, dtype=torch.double)
    for function, given in (
        (lambda q, k, m, r: ours.na2d_qk(q, k, 3, 1, m, rpb=r), (query, key, more, rpb)),
        (lambda a, v, m: ours.na2d_av(a, v, 3, 1, m), (attn, key, more)),
    ):
        leaves = tuple(t.clone().requires_grad_() for t in given)
        assert torch.autograd.gradcheck(function, leaves, check_forward_ad=True, fast_mode=True)


def test_nested_tensors_and_older_arguments() -> None:
    torch.manual_seed(0)
    queries, keys, more = (
        [torch.randn(2, *size, 3) for size in sizes] for sizes in (((4, 5), (6, 3)), ((4, 5), (6, 3)), ((2,), (1,)))
    )
    nested = [torch.nested.nested_tensor(t) for t in (queries, keys, more)]
    products = ours.na2d_qk(*nested[:2], 3, 1, nested[2])
    sums = ours.na2d_av(products, nested[1], 3, 1, nested[2])
    for i, (found, total) in enumerate(zip(products.unbind(), sums.unbind(), strict=True)):
        single = ours.na2d_qk(queries[i][None], keys[i][None], 3, 1, more[i][None])
        torch.testing.assert_close(found[None], single)
        torch.testing.assert_close(total[None], ours.na2d_av(single, keys[i][None], 3, 1, more[i][None]))
    batches = torch.nested.nested_tensor([t[None] for t in queries])
    torch.testing.assert_close(
        ours.na2d_qk(batches, batches, 3).unbind()[1], ours.na2d_qk(queries[1][None], queries[1][None], 3)
    )
    with pytest.raises(ValueError, match="na2d: expected all tensors nested, or none"):
        ours.na2d_qk(nested[0], keys[0], 3)
    volume, rpb = torch.randn(1, 2, 4, 6, 6, 3), torch.randn(2, 5, 9, 9)
    expected = ours.na3d_qk(volume, volume, (3, 5, 5), (1, 1, 1), rpb=rpb)
    assert torch.equal(ours.natten3dqkrpb(volume, volume, rpb, 3, 5, 1, 1), expected)
    assert torch.equal(
        ours.na3d_qk_with_bias(volume, volume, rpb, kernel_size_d=3, kernel_size=5, dilation_d=1), expected
    )
    assert torch.equal(
        ours.neighborhood_attention_generic(volume, volume, volume, 2),
        natten.na3d(volume, volume, volume, 2),
    )


@pytest.mark.parametrize("options", [{"dim": 12, "rel_pos_bias": True}, {"embed_dim": 12}, {"dim": 12, "bias": True}])
def test_layers_of_older_versions(options: dict[str, object]) -> None:
    torch.manual_seed(0)
    layer = natten.NeighborhoodAttention2D(num_heads=3, kernel_size=3, dilation=2, attn_drop=0.5, **options)
    assert ("rpb" in dict(layer.named_parameters())) == (len(options) == 2)
    x = torch.randn(2, 6, 7, 12)
    query, key, value = (t.movedim(-2, 1) for t in layer.qkv(x).reshape(2, 6, 7, 3, 3, 4).unbind(3))
    weights = ours.na2d_qk(query / 2, key, 3, 2, rpb=layer.rpb).softmax(-1)
    expected = layer.proj(ours.na2d_av(weights, value, 3, 2).movedim(1, -2).flatten(-2))
    torch.testing.assert_close(layer.eval()(x), expected)
    dropped = layer.train()(x)
    assert not torch.allclose(dropped, expected)
    assert dropped.isfinite().all()
    with pytest.raises(
        ValueError, match="NeighborhoodAttention2D: embed_dim: expected a multiple of num_heads = 5, got 12"
    ):
        natten.NeighborhoodAttention2D(12, 5, 3)


def test_switches() -> None:
    natten.use_fused_na(True)
    assert natten.is_fna_enabled()
    natten.use_fna(False)
    assert not natten.is_fused_na_enabled()
    natten.disable_tf32()
    assert natten.has_half() and not natten.has_gemm()  # noqa: PT018


def test_errors() -> None:
    q = torch.zeros(1, 9, 2, 4)
    with pytest.raises(ValueError, match="na1d: stride: expected numbers from 1 to kernel_size = 3, got 4"):
        natten.na1d(q, q, q, 3, 4)
    with pytest.raises(ValueError, match=r"na2d: query: expected 5 dimensions, got \[1, 9, 2, 4\]"):
        natten.na2d(q, q, q, 3)
    with pytest.raises(ValueError, match="na1d: expected both additional_keys and additional_values, or neither"):
        natten.na1d(q, q, q, 3, additional_keys=q)
    with pytest.raises(ValueError, match="na1d_qk: rpb: expected None for a causal axis"):
        natten.na1d(q, q, q, 3, is_causal=True, rpb=torch.zeros(2, 5))
    with pytest.raises(ValueError, match="na1d_av: attn: expected 3 weights, got"):
        ours.natten1dav(torch.zeros(1, 2, 9, 5), torch.zeros(1, 2, 9, 4), 3)
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
