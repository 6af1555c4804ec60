# SPDX-License-Identifier: Apache-2.0
"""Convolutions that sample at offsets, or skip pixels."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from harness import Case, Contest, bytes_of, in_openvino, normal, session, with_torch

from cases.regions import in_torch


def deform_conv(modulated: bool) -> Case:
    def make(threads: int) -> Contest:
        rng = np.random.default_rng(6)
        x, weight = normal(0, 1, 256, 64, 64), normal(1, 256, 256, 3, 3) / 48
        offset = rng.normal(0, 1.5, (1, 18, 64, 64)).astype(np.float32)
        mask = rng.random((1, 9, 64, 64)).astype(np.float32) if modulated else np.ones((1, 9, 64, 64), np.float32)
        attributes = {"stride": [1, 1], "padding": [1, 1], "dilation": [1, 1], "groups": 1, "deform_groups": 1}
        if modulated:
            ours = session(
                "mmcv::MMCVModulatedDeformConv2d",
                {"x": x, "o": offset, "m": mask, "w": weight},
                threads,
                attributes=attributes,
            )
        else:
            ours = session("mmcv::MMCVDeformConv2d", {"x": x, "o": offset, "w": weight}, threads, attributes=attributes)
        built_in = session(
            "DeformConv", {"x": x, "w": weight, "o": offset, "b": None, "m": mask if modulated else None}, threads, opset=19,
            attributes={"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "offset_group": 1},
        )  # fmt: skip
        convolution = session("Conv", {"x": x, "w": weight}, threads, attributes={"pads": [1, 1, 1, 1]})
        openvino = in_openvino(
            "DeformableConvolution", 8, [x, offset, weight, mask], threads, strides=[1, 1], pads_begin=[1, 1],
            pads_end=[1, 1], dilations=[1, 1], auto_pad="explicit", group=1, deformable_group=1, bilinear_interpolation_pad=True,
        )  # fmt: skip
        return Contest(
            ours,
            {"ONNX Runtime DeformConv": built_in, "OpenVINO DeformableConvolution": openvino},
            tolerance=1e-3,
            yardstick=("ONNX Runtime Conv", convolution),
        )

    return Case("modulated_deform_conv2d" if modulated else "deform_conv2d", "256x64x64, 256 filters 3x3", make)


def dcn(version: int) -> Case:
    """A block of InternImage-T's second stage, or of one with more channels."""
    size, groups, depth = (56, 8, 16) if version == 3 else (28, 16, 32)

    def make(threads: int) -> Contest:
        x = normal(0, 1, size, size, groups * depth)
        offset = np.random.default_rng(6).normal(0, 1.5, (1, size, size, groups, 18)).astype(np.float32)
        mask = np.random.default_rng(7).random((1, size, size, groups, 9)).astype(np.float32)
        named = (("kernel", 3), ("stride", 1), ("pad", 1), ("dilation", 1))
        attributes = {f"{name}_{axis}": v for name, v in named for axis in "hw"}
        attributes |= {"group": groups, "group_channels": depth, "offset_scale": 1.0, "remove_center": 0}
        flat = (1, size, size, -1)
        if version == 3:
            feeds = {"x": x, "o": offset.reshape(flat), "m": mask.reshape(flat)}
            ours = session("mmdeploy::TRTDCNv3", feeds, threads, attributes=attributes)
        else:
            feeds = {"x": x, "om": np.concatenate([offset, mask], -1).reshape(flat)}  # already a multiple of 8
            ours = session("polyop::DCNv4", feeds, threads, attributes=attributes)
        tx, to, tm = (torch.from_numpy(t) for t in (x, offset, mask))
        steps = torch.arange(size)
        taps = torch.arange(3) - 1
        column = steps[:, None] + taps.repeat_interleave(3)  # column by column
        row = steps[:, None] + taps.repeat(3)

        def formulation() -> torch.Tensor:
            at = to.view(1, size, size, groups, 9, 2)
            position = torch.stack([at[..., 0] + column[None, :, None], at[..., 1] + row[:, None, None]], -1)
            grid = ((2 * position + 1) / size - 1)[0].permute(2, 0, 1, 3, 4).reshape(groups, size * size, 9, 2)
            images = tx[0].view(size, size, groups, depth).permute(2, 3, 0, 1)
            sampled = F.grid_sample(images, grid, "bilinear", "zeros", align_corners=False)
            weighted = sampled * tm[0].permute(2, 0, 1, 3).reshape(groups, 1, size * size, 9)
            return weighted.sum(-1).view(groups * depth, size, size).permute(1, 2, 0)[None].contiguous()

        return Contest(ours, {"torch formulation": with_torch(formulation)}, 2 * bytes_of(x) + bytes_of(offset, mask),
                       tolerance=1e-3)  # fmt: skip

    return Case(f"dcn_v{version}", f"{size}x{size}, {groups} groups x {depth}, 3x3", make)


def masked_conv2d(share: float) -> Case:
    def make(threads: int) -> Contest:
        x, weight, bias = normal(0, 1, 256, 100, 152), normal(1, 256, 256, 3, 3) / 48, normal(2, 256)
        mask = np.random.default_rng(3).random((1, 100, 152)) < share
        ours = session("mmcv::MMCVMaskedConv2d", {"x": x, "m": mask, "w": weight, "b": bias}, threads,
                       attributes={"stride": 1, "padding": 1})  # fmt: skip
        convolution = session("Conv", {"x": x, "w": weight, "b": bias}, threads, attributes={"pads": [1, 1, 1, 1]})
        theirs = in_torch("masked_conv2d", x, mask, weight, bias, stride=[1], padding=[1])
        return Contest(ours, {"torch formulation": theirs}, tolerance=1e-3,
                       yardstick=("ONNX Runtime Conv of all pixels", convolution))  # fmt: skip

    return Case("masked_conv2d", f"256x100x152, 256 filters 3x3, {share:.0%} of the pixels", make)


def correlation() -> Case:
    """FlowNet's correlation: 441 displacements of up to 20 pixels."""

    def make(threads: int) -> Contest:
        a, b = normal(0, 1, 256, 48, 64), normal(1, 1, 256, 48, 64)
        ours = session("polyop::Correlation", {"a": a, "b": b}, threads,
                       attributes={"max_displacement": 10, "dilation_patch": [2, 2]})  # fmt: skip
        first, around = torch.from_numpy(a), F.pad(torch.from_numpy(b), (20, 20, 20, 20))

        def formulation() -> torch.Tensor:
            steps = range(0, 41, 2)
            rows = [(first * around[:, :, y : y + 48, x : x + 64]).sum(1) for y in steps for x in steps]
            return torch.stack(rows, 1).view(1, 21, 21, 48, 64)

        return Contest(ours, {"torch formulation": with_torch(formulation)}, bytes_of(a, b) + 441 * 48 * 64 * 4,
                       2.0 * 441 * 256 * 48 * 64, tolerance=2e-3)  # fmt: skip

    return Case("correlation", "256x48x64, 441 displacements", make)


def correlation_lookup() -> Case:
    """RAFT's lookup at 1/8 of 440 x 1024 pixels, in one level of the pyramid."""

    def make(threads: int) -> Contest:
        height, width, radius = 55, 128, 4
        volume = normal(0, 1, height, width, height, width)
        flow = np.stack(np.meshgrid(np.arange(width), np.arange(height)))[None] + normal(1, 1, 2, height, width) * 5
        coords = flow.astype(np.float32)
        ours = session("polyop::CorrelationLookup", {"volume": volume, "coords": coords}, threads)
        maps = torch.from_numpy(volume).view(-1, 1, height, width)
        steps = torch.arange(-radius, radius + 1).float()
        window = torch.stack(torch.meshgrid(steps, steps, indexing="ij"), 2)  # RAFT's order: rows vary fastest

        def formulation() -> torch.Tensor:
            at = torch.from_numpy(coords).permute(0, 2, 3, 1).reshape(-1, 1, 1, 2) + window
            grid = 2 * at / torch.tensor([width - 1, height - 1]) - 1
            samples = F.grid_sample(maps, grid, align_corners=True)
            return samples.view(1, height, width, -1).permute(0, 3, 1, 2).contiguous()

        return Contest(ours, {"torch grid_sample": with_torch(formulation)}, tolerance=1e-3)

    return Case("correlation_lookup", "55x128 pixels, maps of 55x128, radius 4", make)


CASES = [
    deform_conv(modulated=True),
    deform_conv(modulated=False),
    dcn(3),
    dcn(4),
    masked_conv2d(0.05),
    correlation(),
    correlation_lookup(),
]
