# SPDX-License-Identifier: Apache-2.0
"""Sparse convolution as in spconv 1: pairs of rows for each position of a filter, and their products.

Pairs are [positions, 2, N], sorted by output for each position. polyop's operators use [2, positions, N]: results are
views of that, so that no pairs are copied in either direction.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from polyop.compat.mmcv_ext._registry import provides

_ops = torch.ops.polyop

# ---- pairs by torch, of any number of dimensions --------------------------------------------------


def _feeds(
    indices: Tensor, spatial: Sequence[int], position: Tensor, stride: Tensor, padding: Tensor, dilation: Tensor,
    transpose: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Returns the rows of indices [N, 1 + D] with an output for one position of the filter, and the outputs [P, 1 +
    D]."""
    shift = padding - position * dilation
    if transpose:
        target = indices[:, 1:] * stride - shift
        fits = torch.ones(len(indices), dtype=torch.bool, device=indices.device)
    else:
        target = indices[:, 1:] + shift
        fits = (target % stride == 0).all(1)
        target = torch.div(target, stride, rounding_mode="floor")
    fits &= ((target >= 0) & (target < torch.tensor(list(spatial), device=indices.device))).all(1)
    rows = torch.nonzero(fits).squeeze(1)
    return rows, torch.cat([indices[rows, :1], target[rows]], 1)


def _numbers(indices: Tensor, spatial: Sequence[int]) -> Tensor:
    number = indices[:, 0]
    for axis, size in enumerate(spatial):
        number = number * size + indices[:, axis + 1]
    return number


def _indice_pairs(
    indices: Tensor,
    outSpatialShape: Sequence[int],
    kernelSize: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    sub_manifold: bool,
    transpose: bool,
) -> list[Tensor]:
    """Returns (outputs [O, 1 + D], pairs [positions, 2, N] padded with -1, number of pairs [positions]). Outputs are
    sorted by coordinates; those of a submanifold convolution are its inputs."""
    dimensions, long, device = len(kernelSize), indices.long(), indices.device
    if sub_manifold:
        stride, padding, transpose = [1] * dimensions, [k // 2 for k in kernelSize], False
    window = [torch.tensor(list(v), device=device) for v in (stride, padding, dilation)]
    positions = torch.cartesian_prod(*(torch.arange(k, device=device) for k in kernelSize)).view(-1, dimensions)
    fed = [_feeds(long, outSpatialShape, position, *window, transpose) for position in positions]
    numbers = [_numbers(outputs, outSpatialShape) for _, outputs in fed]

    if sub_manifold:
        known, order = _numbers(long, outSpatialShape).sort(stable=True)
        outputs = indices
    else:
        known, order = torch.cat(numbers).unique(), None
        rest, axes = known, []
        for size in reversed(outSpatialShape):
            axes.insert(0, rest % size)
            rest = rest // size
        outputs = torch.stack([rest, *axes], 1).to(indices.dtype)

    pairs = torch.full((len(positions), 2, len(indices)), -1, dtype=torch.int32, device=device)
    counts = torch.zeros(len(positions), dtype=torch.int32, device=device)
    for n, ((rows, _), number) in enumerate(zip(fed, numbers, strict=True)):
        at = torch.searchsorted(known, number).clamp(max=max(len(known) - 1, 0))
        if order is not None:
            there = known[at] == number
            rows, at = rows[there], order[at[there]]
        counts[n] = len(rows)
        pairs[n, 0, : len(rows)] = rows.int()
        pairs[n, 1, : len(rows)] = at.int()
    return [outputs, pairs, counts]


# ---- by polyop's operator, of two and three dimensions: 2-D is 3-D on a grid of depth 1 -----------


def _in_three(values: Sequence[int], filler: int) -> list[int]:
    return [filler] * (3 - len(values)) + list(values)


def _in_space(indices: Tensor) -> Tensor:
    if indices.shape[1] == 4:
        return indices
    return torch.cat([indices[:, :1], torch.zeros_like(indices[:, :1]), indices[:, 1:]], 1)


def _is_centred(kernelSize: Sequence[int], dilation: Sequence[int]) -> bool:
    """Returns True if MMCV's submanifold convolution is symmetric: its padding is half a filter for any dilation."""
    return all(k % 2 == 1 and (d == 1 or k == 1) for k, d in zip(kernelSize, dilation, strict=True))


def _forward(
    indices: Tensor,
    batchSize: int,
    outSpatialShape: Sequence[int],
    spatialShape: Sequence[int],
    kernelSize: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    outPadding: Sequence[int],
    _subM: int,
    _transpose: int,
) -> list[Tensor]:
    window = (kernelSize, stride, padding, dilation)
    if _subM and not _is_centred(kernelSize, dilation):
        return _indice_pairs(indices, outSpatialShape, *window, bool(_subM), bool(_transpose))
    outputs, pairs, counts, _ = _ops.get_indice_pairs(
        _in_space(indices).contiguous(), batch_size=batchSize, spatial_shape=_in_three(spatialShape, 1),
        ksize=_in_three(kernelSize, 1), stride=_in_three(stride, 1), padding=_in_three(padding, 0),
        dilation=_in_three(dilation, 1), out_padding=_in_three(outPadding, 0), subm=int(_subM),
        transpose=int(_transpose),
    )  # fmt: skip
    if _subM:  # the operator omits the counts after the centre, which equal those before it
        before = counts[: counts.shape[0] // 2]
        counts = torch.cat([before, counts.new_ones(1) * indices.shape[0], before.flip(0)])
    if len(kernelSize) == 2:
        outputs = torch.cat([outputs[:, :1], outputs[:, 2:]], 1)
    return [outputs, pairs.transpose(0, 1), counts]


@provides()
def get_indice_pairs_4d_forward(
    indices: Tensor,
    batchSize: int,
    outSpatialShape: Sequence[int],
    spatialShape: Sequence[int],
    kernelSize: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    outPadding: Sequence[int],
    _subM: int,
    _transpose: int,
) -> list[Tensor]:
    del batchSize, spatialShape, outPadding
    window = (kernelSize, stride, padding, dilation)
    return _indice_pairs(indices, outSpatialShape, *window, bool(_subM), bool(_transpose))


def _backward(
    indices: Tensor,
    gridOut: Tensor,
    batchSize: int,
    outSpatialShape: Sequence[int],
    spatialShape: Sequence[int],
    kernelSize: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    outPadding: Sequence[int],
    _subM: int,
    _transpose: int,
) -> list[Tensor]:
    """Like `_forward`, with memory for a table of all voxels, which is ignored."""
    del gridOut
    window = (kernelSize, stride, padding, dilation, outPadding)
    return _forward(indices, batchSize, outSpatialShape, spatialShape, *window, _subM, _transpose)


for _name, _function in (
    *((f"get_indice_pairs_{n}d_forward", _forward) for n in (2, 3)),
    *((f"get_indice_pairs_{n}d_backward", _backward) for n in (2, 3)),
):
    provides("get_indice_pairs")(_function, _name)


# ---- products --------------------------------------------------------------------------------------


@provides("indice_conv")
def indice_conv_forward(
    features: Tensor,
    filters: Tensor,
    indicePairs: Tensor,
    indiceNum: Tensor,
    numActOut: int,
    _inverse: int,
    _subM: int,
) -> Tensor:
    """features [N, C], filters [positions…, C, K] -> [numActOut, K]."""
    del _subM  # all counts are known
    pairs = indicePairs.transpose(0, 1)
    if _inverse:
        pairs = pairs.flip(0)
    weights = filters.flatten(0, -3).permute(2, 0, 1)[:, :, None, None]
    number = torch.as_tensor(numActOut, dtype=pairs.dtype, device=pairs.device)
    return _ops.indice_conv(
        features.contiguous(), weights.contiguous(), pairs.contiguous(), indiceNum.contiguous(), number, is_subm=0
    )


@provides("indice_conv")
def fused_indice_conv_forward(
    features: Tensor,
    filters: Tensor,
    bias: Tensor,
    indicePairs: Tensor,
    indiceNum: Tensor,
    numActOut: int,
    _inverse: int,
    _subM: int,
) -> Tensor:
    return indice_conv_forward(features, filters, indicePairs, indiceNum, numActOut, _inverse, _subM).add_(bias)


def _pairs_of(indicePairs: Tensor, indiceNum: Tensor, inverse: bool) -> list[tuple[Tensor, Tensor]]:
    """Yields (rows of the input, rows of the output) for each position of a filter."""
    ends = (1, 0) if inverse else (0, 1)
    return [
        (indicePairs[n, ends[0], :count].long(), indicePairs[n, ends[1], :count].long())
        for n, count in enumerate(indiceNum.tolist())
    ]


@provides()
def indice_conv_backward(
    features: Tensor,
    filters: Tensor,
    outGrad: Tensor,
    indicePairs: Tensor,
    indiceNum: Tensor,
    _inverse: int,
    _subM: int,
) -> list[Tensor]:
    del _subM
    weights = filters.flatten(0, -3)
    of_features, of_weights = torch.zeros_like(features), torch.zeros_like(weights)
    for n, (rows, fed) in enumerate(_pairs_of(indicePairs, indiceNum, bool(_inverse))):
        if len(rows):
            grad = outGrad[fed]
            of_features.index_add_(0, rows, grad @ weights[n].T)
            of_weights[n] = features[rows].T @ grad
    return [of_features, of_weights.view_as(filters)]


@provides()
def indice_maxpool_forward(features: Tensor, indicePairs: Tensor, indiceNum: Tensor, numAct: int) -> Tensor:
    """The maximum of the rows of an output and 0, as in spconv."""
    out = features.new_zeros(numAct, features.shape[1])
    for rows, fed in _pairs_of(indicePairs, indiceNum, False):
        out.scatter_reduce_(0, fed[:, None].expand(-1, out.shape[1]), features[rows], "amax")
    return out


@provides()
def indice_maxpool_backward(
    features: Tensor, outFeatures: Tensor, outGrad: Tensor, indicePairs: Tensor, indiceNum: Tensor
) -> Tensor:
    """Every row with the maximum gets the gradient."""
    grad = torch.zeros_like(features)
    for rows, fed in _pairs_of(indicePairs, indiceNum, False):
        grad.index_add_(0, rows, torch.where(features[rows] == outFeatures[fed], outGrad[fed], 0))
    return grad
