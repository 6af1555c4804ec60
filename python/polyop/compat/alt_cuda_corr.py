# SPDX-License-Identifier: Apache-2.0
"""`alt_cuda_corr`, the compiled part of RAFT: correlations with the pixels around the current flow, without the volume
of all pairs."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

import polyop.functional  # noqa: F401 - registers the operators
from polyop.compat._lookup import blend, spread, window

__all__ = ["backward", "forward"]

_ops = torch.ops.polyop
_MAX_PRODUCTS = 1 << 24  # elements of a volume that exist at once
_GEMM_GAIN = 16  # a product of all pairs costs about as much as a gathered one divided by this


def _check(function: str, fmap1: Tensor, fmap2: Tensor, coords: Tensor, radius: int) -> None:
    name = f"alt_cuda_corr.{function}"
    if fmap1.dim() != 4:
        raise ValueError(f"{name}: fmap1: expected shape [B, H, W, C], got {list(fmap1.shape)}")
    b, h, w, c = fmap1.shape
    if fmap2.dim() != 4 or (fmap2.shape[0], fmap2.shape[3]) != (b, c):
        raise ValueError(f"{name}: fmap2: expected shape [{b}, H2, W2, {c}], got {list(fmap2.shape)}")
    if coords.dim() != 5 or (coords.shape[0], *coords.shape[2:]) != (b, h, w, 2):
        raise ValueError(f"{name}: coords: expected shape [{b}, N, {h}, {w}, 2], got {list(coords.shape)}")
    if radius < 0:
        raise ValueError(f"{name}: radius: expected at least 0, got {radius}")


def _windows(fmap2: Tensor, coords: Tensor, radius: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Returns the indices of the pixels [B, N, H, W, K, K] (y, x), whether they are inside, and the fractions."""
    height, width = fmap2.shape[1:3]
    x, x_inside, x_fraction = window(coords[..., 0], radius, width)
    y, y_inside, y_fraction = window(coords[..., 1], radius, height)
    index = y[..., :, None] * width + x[..., None, :]
    return index, y_inside[..., :, None] & x_inside[..., None, :], x_fraction, y_fraction


def _multiplies_all_pairs(pixels: int, positions: int) -> bool:
    return pixels <= _GEMM_GAIN * positions


def _parts(rows: int, pixels: int) -> Iterator[slice]:
    step = max(1, _MAX_PRODUCTS // max(pixels, 1))
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


def _lookups(fmap1: Tensor, coords: Tensor) -> list[Tensor]:
    """Returns the positions [B, 2, H * W, 1] of each lookup."""
    coords = coords.to(torch.float64 if fmap1.dtype == torch.float64 else torch.float32)
    return [of_lookup.flatten(1, 2).transpose(1, 2).unsqueeze(3) for of_lookup in coords.unbind(1)]


def forward(fmap1: Tensor, fmap2: Tensor, coords: Tensor, radius: int) -> tuple[Tensor]:
    """fmap1 [B, H, W, C], fmap2 [B, H2, W2, C], coords [B, N, H, W, 2] as (x, y) -> a tuple of one tensor [B, N, (2 *
    radius + 1)^2, H, W], where y varies fastest."""
    _check("forward", fmap1, fmap2, coords, radius)
    b, h, w, _ = fmap1.shape
    flat1, flat2 = fmap1.flatten(1, 2), fmap2.flatten(1, 2)  # [B, pixels, C]
    if _multiplies_all_pairs(flat2.shape[1], coords.shape[1] * (2 * radius + 2) ** 2):
        lookups, found = _lookups(fmap1, coords), []
        for rows in _parts(h * w, b * flat2.shape[1]):
            volume = (flat1[:, rows] @ flat2.transpose(1, 2)).unflatten(2, fmap2.shape[1:3]).unsqueeze(2)
            samples = [_ops.correlation_lookup(volume, at[:, :, rows], radius=[radius, radius]) for at in lookups]
            found.append(torch.stack(samples, 1))  # [B, N, windows, rows, 1]
        return (torch.cat(found, 3).unflatten(3, (h, w)).squeeze(5),)
    return (_gathered(fmap1, fmap2, coords, radius),)


def _gathered(fmap1: Tensor, fmap2: Tensor, coords: Tensor, radius: int) -> Tensor:
    """Multiplies only the pixels in the windows."""
    index, inside, x_fraction, y_fraction = _windows(fmap2, coords, radius)
    b, n, h, w, k, _ = index.shape
    flat1, flat2 = fmap1.flatten(1, 2), fmap2.flatten(1, 2)
    flat = index.permute(0, 2, 3, 1, 4, 5).reshape(b, h * w, n * k * k)
    sample = torch.arange(b, device=index.device)[:, None]
    products = torch.stack([(flat1 * flat2[sample, flat[..., i]]).sum(2) for i in range(flat.shape[2])], 2)
    products = products.view(b, h, w, n, k, k).permute(0, 3, 1, 2, 4, 5)
    products = torch.where(inside, products, 0)
    products = blend(products, y_fraction[..., None, None].to(products.dtype), 4)
    products = blend(products, x_fraction[..., None, None].to(products.dtype), 5)
    return products.permute(0, 1, 5, 4, 2, 3).flatten(2, 3).contiguous()


def backward(
    fmap1: Tensor, fmap2: Tensor, coords: Tensor, corr_grad: Tensor, radius: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the gradients of fmap1 and fmap2, and zeros for coords, as the original does."""
    _check("backward", fmap1, fmap2, coords, radius)
    flat1, flat2 = fmap1.flatten(1, 2), fmap2.flatten(1, 2)
    if _multiplies_all_pairs(flat2.shape[1], coords.shape[1] * (2 * radius + 2) ** 2):
        grads, lookups = corr_grad.to(fmap1.dtype).flatten(3, 4).unsqueeze(4), _lookups(fmap1, coords)
        grad1, grad2 = torch.zeros_like(flat1), torch.zeros_like(flat2)
        for rows in _parts(flat1.shape[1], fmap1.shape[0] * flat2.shape[1]):
            volume = flat1.new_empty(fmap1.shape[0], rows.stop - rows.start, 1, *fmap2.shape[1:3])  # its shape alone
            pairs = sum(
                _ops.correlation_lookup_backward(grads[:, i, :, rows], volume, at[:, :, rows], radius=[radius, radius])
                for i, at in enumerate(lookups)
            )
            pairs = pairs.flatten(2)
            grad1[:, rows] = pairs @ flat2
            grad2 += pairs.transpose(1, 2) @ flat1[:, rows]
    else:
        grad1, grad2 = _spread_gradients(fmap1, fmap2, coords, corr_grad, radius)
    return grad1.view_as(fmap1), grad2.view_as(fmap2), torch.zeros_like(coords)


def _spread_gradients(
    fmap1: Tensor, fmap2: Tensor, coords: Tensor, corr_grad: Tensor, radius: int
) -> tuple[Tensor, Tensor]:
    """The gradients of `_gathered`."""
    index, inside, x_fraction, y_fraction = _windows(fmap2, coords, radius)
    b, n, h, w, k, _ = index.shape
    grad = corr_grad.unflatten(2, (k - 1, k - 1)).permute(0, 1, 4, 5, 3, 2)  # [B, N, H, W, y, x]
    grad = spread(grad, x_fraction[..., None, None].to(grad.dtype), 5)
    grad = torch.where(inside, spread(grad, y_fraction[..., None, None].to(grad.dtype), 4), 0).to(fmap1.dtype)
    grad = grad.permute(0, 2, 3, 1, 4, 5).reshape(b, h * w, n * k * k)
    flat = index.permute(0, 2, 3, 1, 4, 5).reshape(b, h * w, n * k * k)
    flat1, flat2 = fmap1.flatten(1, 2), fmap2.flatten(1, 2)
    grad1, grad2 = torch.zeros_like(flat1), torch.zeros_like(flat2)
    for i in range(flat.shape[2]):
        at = flat[..., i, None].expand_as(flat1)
        grad1 += grad[..., i, None] * flat2.gather(1, at)
        grad2.scatter_add_(1, at, grad[..., i, None] * flat1)
    return grad1, grad2
