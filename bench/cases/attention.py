# SPDX-License-Identifier: Apache-2.0
"""Attention and deformable attention."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from harness import Case, Contest, bytes_of, in_openvino, normal, session, with_torch


def attend_by_grids(
    value: torch.Tensor, shapes: np.ndarray, locations: torch.Tensor, weights: torch.Tensor
) -> torch.Tensor:
    """Deformable attention of one image with one grid_sample per level: [1, M, Q, D]."""
    heads, size, queries = *value.shape[2:], locations.shape[1]
    grids, samples = 2 * locations - 1, []
    for i, part in enumerate(value.split([int(a) for a in shapes.prod(1)], 1)):
        h, w = (int(e) for e in shapes[i])
        image = part.flatten(2).transpose(1, 2).reshape(heads, size, h, w)
        grid = grids[:, :, :, i].transpose(1, 2).flatten(0, 1)
        samples.append(F.grid_sample(image, grid, "bilinear", "zeros", align_corners=False))
    factor = weights.transpose(1, 2).reshape(heads, 1, queries, -1)
    return (torch.stack(samples, -2).flatten(-2) * factor).sum(-1).view(1, heads, size, queries).transpose(2, 3)


def flash_deform_attn() -> Case:
    def make(threads: int) -> Contest:
        shapes = np.array([[100, 100], [50, 50], [25, 25], [13, 13]], np.int64)
        starts = np.concatenate([[0], np.cumsum(shapes.prod(1))[:-1]]).astype(np.int64)
        value = normal(0, 1, int(shapes.prod(1).sum()), 8, 32)
        locations = np.random.default_rng(7).uniform(0, 1, (1, 900, 8, 32)).astype(np.float32)
        rows = np.concatenate([locations, normal(8, 1, 900, 8, 16)], -1)
        ours = session(
            "polyop::FlashDeformAttn", {"value": value, "shapes": shapes, "starts": starts, "rows": rows}, threads,
            attributes={"points": 4},
        )  # fmt: skip
        tv, tr = torch.from_numpy(value), torch.from_numpy(rows)

        def formulation() -> torch.Tensor:
            weights = tr[..., 32:].softmax(-1).view(1, 900, 8, 4, 4)
            summed = attend_by_grids(tv, shapes, tr[..., :32].reshape(1, 900, 8, 4, 4, 2), weights)
            return summed.transpose(1, 2).reshape(1, 900, 256)

        return Contest(ours, {"torch formulation": with_torch(formulation)}, bytes_of(value, rows) + 900 * 1024,
                       tolerance=1e-3)  # fmt: skip

    return Case("flash_deform_attn", "4 levels, 8 heads x 32, 900 queries", make)


def ms_deform_attn(queries: int | None, near: bool = False) -> Case:
    """`near`: every pixel is a query whose samples lie a few pixels around it, as in an encoder; otherwise samples lie
    anywhere.
    """

    def make(threads: int) -> Contest:
        shapes = np.array([[100, 100], [50, 50], [25, 25], [13, 13]], np.int64)
        starts = np.concatenate([[0], np.cumsum(shapes.prod(1))[:-1]]).astype(np.int64)
        total = int(shapes.prod(1).sum())
        q = queries or total
        rng = np.random.default_rng(7)
        value = normal(0, 1, total, 8, 32)
        locations = rng.uniform(0, 1, (1, q, 8, 4, 4, 2)).astype(np.float32)
        if near:
            own = [(np.stack(np.meshgrid(np.arange(w), np.arange(h)), -1) + 0.5) / (w, h) for h, w in shapes]
            middle = np.concatenate([m.reshape(-1, 2) for m in own]).reshape(1, q, 1, 1, 1, 2)
            from_there = 2 * rng.standard_normal(locations.shape) / shapes[:, ::-1].reshape(1, 1, 1, 4, 1, 2)
            locations = (middle + from_there).astype(np.float32)
        weights = (
            torch.from_numpy(rng.standard_normal((1, q, 8, 16))).softmax(-1).reshape(1, q, 8, 4, 4).float().numpy()
        )
        ours = session(
            "mmdeploy::MMCVMultiScaleDeformableAttention",
            {"value": value, "shapes": shapes, "starts": starts, "locations": locations, "weights": weights}, threads,
        )  # fmt: skip
        tv, tl, tw = (torch.from_numpy(t) for t in (value, locations, weights))

        def formulation() -> torch.Tensor:
            return attend_by_grids(tv, shapes, tl, tw).transpose(1, 2).reshape(1, q, 256)

        return Contest(
            ours,
            {"torch formulation": with_torch(formulation)},
            bytes_of(value, locations, weights) + q * 1024,
            tolerance=1e-3,
        )

    where = ", samples near" if near else ""
    return Case("ms_deform_attn", f"4 levels, 8 heads x 32, {queries or 'all'} queries{where}", make)


def ms_deform_attn_of_offsets() -> Case:
    """BEVFormer's attention to one camera: four reference points per pillar, eight points per level."""

    def make(threads: int) -> Contest:
        shapes = np.array([[58, 100], [29, 50], [15, 25], [8, 13]], np.int32)
        total, q, rng = int(shapes.prod(1).sum()), 10_000, np.random.default_rng(8)
        value, logits = normal(0, 1, total, 8, 32), normal(1, 1, q, 8, 32)
        references = rng.uniform(0, 1, (1, q, 1, 8)).astype(np.float32)
        offsets = 3 * normal(2, 1, q, 8, 64)
        feeds = {"value": value, "shapes": shapes, "references": references, "offsets": offsets, "logits": logits}
        ours = session("polyop::MultiScaleDeformableAttnTRT", feeds, threads)
        tv, tr, to, tw = (torch.from_numpy(t) for t in (value, references, offsets, logits))
        sizes = torch.from_numpy(shapes).flip(1).reshape(1, 1, 1, 4, 1, 2)

        def formulation() -> torch.Tensor:
            centre = tr.view(1, q, 1, 1, 1, 4, 2)
            at = (centre + to.view(1, q, 8, 4, 2, 4, 2) / sizes[..., None, :]).flatten(4, 5)
            weights = tw.softmax(-1).view(1, q, 8, 4, 8)
            return attend_by_grids(tv, shapes, at, weights).transpose(1, 2)

        moved = bytes_of(value, references, offsets, logits) + q * 1024
        return Contest(ours, {"torch formulation": with_torch(formulation)}, moved, tolerance=1e-3)

    return Case("ms_deform_attn_of_offsets", "4 levels, 8 heads x 32, 10,000 queries x 8 points", make)


def attention() -> Case:
    def make(threads: int) -> Contest:
        q, k, v = normal(0, 8, 900, 32), normal(1, 8, 900, 32), normal(2, 8, 900, 32)
        ours = session("mmdeploy::ScaledDotProductAttentionTRT", {"q": q, "k": k, "v": v}, threads, ["out", "weights"])
        tq, tk, tv = (torch.from_numpy(t) for t in (q, k, v))

        def formulation() -> tuple[torch.Tensor, torch.Tensor]:
            weights = torch.softmax(torch.bmm(tq, tk.transpose(1, 2)) / 32**0.5, -1)
            return torch.bmm(weights, tv), weights

        moved = bytes_of(q, k, v) + q.nbytes + 8 * 900 * 900 * 4
        return Contest(ours, {"torch bmm, softmax, bmm": with_torch(formulation)}, moved, 4 * 8 * 900 * 900 * 32)

    return Case("scaled_dot_product_attention", "8 x 900 queries, 900 keys, 32", make)


def qkv_attention() -> Case:
    def make(threads: int) -> Contest:
        q, k, v = normal(0, 8, 900, 32), normal(1, 8, 900, 32), normal(2, 8, 900, 32)
        ours = session("polyop::QKVTRT", {"q": q, "k": k, "v": v}, threads)
        tq, tk, tv = (torch.from_numpy(t) for t in (q, k, v))
        theirs = with_torch(lambda: F.scaled_dot_product_attention(tq, tk, tv))
        openvino = in_openvino("ScaledDotProductAttention", 13, [q[None], k[None], v[None]], threads, causal=False)
        rivals = {
            "torch scaled_dot_product_attention": theirs,
            "OpenVINO ScaledDotProductAttention": lambda: [openvino()[0][0]],
        }
        return Contest(ours, rivals, bytes_of(q, k, v) + q.nbytes, 4 * 8 * 900 * 900 * 32)

    return Case("qkv_attention", "8 x 900 queries, 900 keys, 32", make)


def neighborhood() -> Case:
    """A layer of NAT: 56 x 56 tokens, windows of 7 x 7; the rival attends to all tokens with a mask."""

    def make(threads: int) -> Contest:
        q, k, v = (normal(seed, 1, 56, 56, 4, 32) for seed in range(3))
        ours = session(
            "polyop::NeighborhoodAttention", {"q": q, "k": k, "v": v}, threads, attributes={"kernel_size": [7]}
        )
        tq, tk, tv = (torch.from_numpy(t).flatten(1, 2).transpose(1, 2) for t in (q, k, v))
        first = (torch.arange(56) - 3).clamp(0, 49)
        axis = (torch.arange(56) >= first[:, None]) & (torch.arange(56) < first[:, None] + 7)
        mask = (axis[:, None, :, None] & axis[None, :, None]).reshape(3136, 3136)

        def formulation() -> torch.Tensor:
            result = F.scaled_dot_product_attention(tq, tk, tv, attn_mask=mask)
            return result.transpose(1, 2).unflatten(1, (56, 56)).contiguous()

        return Contest(
            ours, {"torch scaled_dot_product_attention, masked": with_torch(formulation)}, bytes_of(q, k, v) + q.nbytes
        )

    return Case("neighborhood_attention", "56x56 tokens, 4 heads x 32, windows 7x7", make)


def selective_scan() -> Case:
    """A layer of Mamba-130M over 1,024 tokens; the rival is a loop over the tokens."""

    def make(threads: int) -> Contest:
        dim, length, states = 1536, 1024, 16
        u, delta, z = (normal(seed, 1, dim, length) for seed in range(3))
        a = -np.tile(np.arange(1, states + 1, dtype=np.float32), (dim, 1))
        b, c = (normal(seed, 1, 1, states, length) for seed in (3, 4))
        feeds = {"u": u, "delta": delta - 3, "A": a, "B": b, "C": c, "D": normal(5, dim), "z": z}
        ours = session(
            "polyop::SelectiveScan", feeds, threads, ["output", "last_state"], attributes={"delta_softplus": 1}
        )
        t = {name: torch.from_numpy(array) for name, array in feeds.items()}

        def formulation() -> tuple[torch.Tensor, torch.Tensor]:
            steps = F.softplus(t["delta"])
            decay = torch.exp(steps[..., None] * t["A"][:, None])
            added = (steps * t["u"])[..., None] * t["B"][0].transpose(1, 2)
            h, outputs = torch.zeros(1, dim, states), []
            for step in range(length):
                h = decay[:, :, step] * h + added[:, :, step]
                outputs.append(h @ t["C"][0, 0, :, step])
            return (torch.stack(outputs, 2) + t["D"][:, None] * t["u"]) * F.silu(t["z"]), h

        return Contest(
            ours, {"torch, step by step": with_torch(formulation)}, bytes_of(u, delta, z) + u.nbytes, tolerance=1e-3
        )

    return Case("selective_scan", "1,024 tokens, 1,536 channels, 16 states", make)


def causal_conv1d() -> Case:
    def make(threads: int) -> Contest:
        x, weight, bias = normal(0, 1, 1536, 1024), normal(1, 1536, 4), normal(2, 1536)
        ours = session(
            "polyop::CausalConv1d",
            {"x": x, "w": weight, "b": bias},
            threads,
            ["output", "final_state"],
            attributes={"activation": "silu"},
        )
        tx, tw, tb = (torch.from_numpy(t) for t in (x, weight, bias))
        theirs = with_torch(
            lambda: (
                F.silu(F.conv1d(tx, tw[:, None], tb, padding=3, groups=1536)[..., :1024]),
                tx[..., -3:].contiguous(),
            )
        )
        return Contest(ours, {"torch conv1d, silu": theirs}, 2 * bytes_of(x))

    return Case("causal_conv1d", "1,024 tokens, 1,536 channels, 4 taps", make)


def inverse() -> Case:
    def make(threads: int) -> Contest:
        x = normal(0, 10_000, 4, 4) + 4 * np.eye(4, dtype=np.float32)
        ours = session("polyop::InverseTRT", {"x": x}, threads)
        tx = torch.from_numpy(x)
        rivals = {
            "torch linalg.inv": with_torch(lambda: torch.linalg.inv(tx)),
            "OpenVINO Inverse": in_openvino("Inverse", 14, [x], threads, adjoint=False),
        }
        return Contest(ours, rivals, 2 * bytes_of(x), tolerance=1e-2)

    return Case("inverse", "10,000 matrices of 4x4", make)


CASES = [
    ms_deform_attn(900),
    ms_deform_attn(None),
    ms_deform_attn(None, near=True),
    ms_deform_attn_of_offsets(),
    flash_deform_attn(),
    attention(),
    qkv_attention(),
    neighborhood(),
    selective_scan(),
    causal_conv1d(),
    inverse(),
]
