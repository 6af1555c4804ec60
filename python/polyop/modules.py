# SPDX-License-Identifier: Apache-2.0
"""Layers for the functions of polyop.functional, with the parameters of torchvision's and MMCV's layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from polyop import functional

__all__ = [
    "CARAFEPack",
    "CornerPool",
    "DeformConv2d",
    "DeformConv2dPack",
    "ModulatedDeformConv2d",
    "ModulatedDeformConv2dPack",
    "MultiScaleDeformableAttention",
    "PSAMask",
    "RoIAlign",
    "RoIAlignRotated",
    "RoIAwarePool3d",
    "RoIPointPool3d",
]


class _Pooling(nn.Module):
    """The base class of layers without weights; prints their arguments."""

    def extra_repr(self) -> str:
        arguments = {k: v for k, v in vars(self).items() if k != "training" and not k.startswith("_")}
        return ", ".join(f"{name}={value}" for name, value in arguments.items())


class RoIAlign(_Pooling):
    """`torchvision.ops.RoIAlign`: forward(input [N, C, H, W], rois [R, 5]) -> [R, C, h, w]."""

    def __init__(
        self,
        output_size: int | Sequence[int],
        spatial_scale: float = 1.0,
        sampling_ratio: int = -1,
        aligned: bool = False,
        mode: str = "avg",
    ) -> None:
        super().__init__()
        self.output_size, self.spatial_scale, self.sampling_ratio = output_size, spatial_scale, sampling_ratio
        self.aligned, self.mode = aligned, mode

    def forward(self, input: Tensor, rois: Tensor) -> Tensor:
        return functional.roi_align(
            input, rois, self.output_size, self.spatial_scale, self.sampling_ratio, self.aligned, self.mode
        )


class RoIAlignRotated(_Pooling):
    """`mmcv.ops.RoIAlignRotated`: forward(input [N, C, H, W], rois [R, 6]) -> [R, C, h, w]."""

    def __init__(
        self,
        output_size: int | Sequence[int],
        spatial_scale: float,
        sampling_ratio: int = 0,
        aligned: bool = True,
        clockwise: bool = False,
    ) -> None:
        super().__init__()
        self.output_size, self.spatial_scale, self.sampling_ratio = output_size, spatial_scale, sampling_ratio
        self.aligned, self.clockwise = aligned, clockwise

    def forward(self, input: Tensor, rois: Tensor) -> Tensor:
        return functional.roi_align_rotated(
            input, rois, self.output_size, self.spatial_scale, self.sampling_ratio, self.aligned, self.clockwise
        )


class PSAMask(_Pooling):
    """`mmcv.ops.PSAMask`: forward(masks [N, mh * mw, H, W]) -> [N, H * W, H, W]."""

    def __init__(self, psa_type: str, mask_size: int | Sequence[int]) -> None:
        super().__init__()
        if psa_type not in ("collect", "distribute"):
            raise ValueError(f"psa_type: expected 'collect' or 'distribute', got '{psa_type}'")
        self.psa_type, self.mask_size = psa_type, mask_size

    def forward(self, input: Tensor) -> Tensor:
        return functional.psa_mask(input, self.psa_type, self.mask_size)


class CARAFEPack(nn.Module):
    """`mmcv.ops.CARAFEPack`: upsamples features with `carafe`, whose kernels it predicts from the features."""

    def __init__(
        self,
        channels: int,
        scale_factor: int,
        up_kernel: int = 5,
        up_group: int = 1,
        encoder_kernel: int = 3,
        encoder_dilation: int = 1,
        compressed_channels: int = 64,
    ) -> None:
        super().__init__()
        self.channels, self.scale_factor, self.up_kernel, self.up_group = channels, scale_factor, up_kernel, up_group
        self.channel_compressor = nn.Conv2d(channels, compressed_channels, 1)
        self.content_encoder = nn.Conv2d(
            compressed_channels,
            up_kernel * up_kernel * up_group * scale_factor * scale_factor,
            encoder_kernel,
            padding=(encoder_kernel - 1) * encoder_dilation // 2,
            dilation=encoder_dilation,
        )
        self.init_weights()

    def init_weights(self) -> None:
        """Initializes the weights so that kernels are nearly uniform."""
        nn.init.xavier_uniform_(self.channel_compressor.weight)
        nn.init.normal_(self.content_encoder.weight, std=0.001)
        for layer in (self.channel_compressor, self.content_encoder):
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)

    def kernel_normalizer(self, mask: Tensor) -> Tensor:
        """Logits [N, k * k * g * s * s, H, W] -> kernels [N, k * k * g, s * H, s * W] that sum to 1."""
        mask = nn.functional.pixel_shuffle(mask, self.scale_factor)
        return mask.unflatten(1, (self.up_group, self.up_kernel * self.up_kernel)).softmax(2).flatten(1, 2)

    def feature_reassemble(self, x: Tensor, mask: Tensor) -> Tensor:
        return functional.carafe(x, mask, self.up_kernel, self.up_group, self.scale_factor)

    def forward(self, x: Tensor) -> Tensor:
        mask = self.content_encoder(self.channel_compressor(x))
        return self.feature_reassemble(x, self.kernel_normalizer(mask))


class CornerPool(_Pooling):
    """`mmcv.ops.CornerPool`: the maximum from each pixel to an edge; mode "top", "bottom", "left" or "right"."""

    def __init__(self, mode: str) -> None:
        super().__init__()
        self.mode = mode

    def forward(self, x: Tensor) -> Tensor:
        return functional.corner_pool(x, self.mode)


class RoIPointPool3d(_Pooling):
    """`mmcv.ops.RoIPointPool3d`: forward(points [B, N, 3], features [B, N, C], boxes [B, M, 7])."""

    def __init__(self, num_sampled_points: int = 512) -> None:
        super().__init__()
        self.num_sampled_points = num_sampled_points

    def forward(self, points: Tensor, point_features: Tensor, boxes3d: Tensor) -> tuple[Tensor, Tensor]:
        return functional.roipoint_pool3d(points, point_features, boxes3d, self.num_sampled_points)


class RoIAwarePool3d(_Pooling):
    """`mmcv.ops.RoIAwarePool3d`: forward(rois [R, 7], points [N, 3], features [N, C]) -> [R, x, y, z, C]."""

    def __init__(self, out_size: int | Sequence[int], max_pts_per_voxel: int = 128, mode: str = "max") -> None:
        super().__init__()
        self.out_size, self.max_pts_per_voxel, self.mode = out_size, max_pts_per_voxel, mode

    def forward(self, rois: Tensor, pts: Tensor, pts_feature: Tensor) -> Tensor:
        return functional.roiaware_pool3d(rois, pts, pts_feature, self.out_size, self.max_pts_per_voxel, self.mode)


def _pair(value: int | Sequence[int]) -> list[int]:
    return [value, value] if isinstance(value, int) else list(value)


class _DeformConv(nn.Module):
    """The parameters of both versions of deformable convolution."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int],
        padding: int | Sequence[int],
        dilation: int | Sequence[int],
        groups: int,
        deform_groups: int,
        bias: bool,
    ) -> None:
        super().__init__()
        for name, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
            if channels % groups:
                raise ValueError(f"{name}: expected a multiple of groups ({groups}), got {channels}")
        self.in_channels, self.out_channels, self.groups, self.deform_groups = (
            in_channels,
            out_channels,
            groups,
            deform_groups,
        )
        self.kernel_size, self.stride, self.padding, self.dilation = map(
            _pair, (kernel_size, stride, padding, dilation)
        )
        self.weight = nn.Parameter(torch.empty(out_channels, in_channels // groups, *self.kernel_size))
        self.bias = nn.Parameter(torch.zeros(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = 1 / math.sqrt(self.in_channels * math.prod(self.kernel_size))
        nn.init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    @property
    def taps(self) -> int:
        """The number of sampled positions per output pixel, over all groups of offsets."""
        return self.deform_groups * math.prod(self.kernel_size)

    def _offsets(self, values: int) -> nn.Conv2d:
        """Returns the convolution that predicts `values` numbers per tap, initialized to 0."""
        sizes: Any = (self.kernel_size, self.stride, self.padding, self.dilation)
        result = nn.Conv2d(self.in_channels, values * self.taps, *sizes)
        nn.init.zeros_(result.weight)
        if result.bias is not None:
            nn.init.zeros_(result.bias)
        return result

    def extra_repr(self) -> str:
        return (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"padding={self.padding}, dilation={self.dilation}, groups={self.groups}, "
            f"deform_groups={self.deform_groups}, bias={self.bias is not None}"
        )


class DeformConv2d(_DeformConv):
    """`mmcv.ops.DeformConv2d`, version 1: forward(x, offset [N, 2 * deform_groups * kh * kw, oh, ow]); no bias.

    An input smaller than the kernel is padded with zeros, and the result is cropped, except in exported models.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        deform_groups: int = 1,
        bias: bool = False,
    ) -> None:
        if bias:
            raise ValueError("bias: expected False, got True: use ModulatedDeformConv2d")
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, deform_groups, bias=False
        )

    def reset_parameters(self) -> None:
        nn.init.kaiming_uniform_(self.weight, nonlinearity="relu")

    def forward(self, x: Tensor, offset: Tensor) -> Tensor:
        if torch.compiler.is_exporting() or torch.jit.is_tracing():  # the file is for all sizes
            return self._convolve(x, offset)
        height, width = (max(k - n, 0) for k, n in zip(self.kernel_size, x.shape[2:], strict=True))
        if not height and not width:
            return self._convolve(x, offset)
        out = self._convolve(*(nn.functional.pad(t, (0, width, 0, height)) for t in (x, offset)))
        return out[:, :, : out.shape[2] - height, : out.shape[3] - width].contiguous()

    def _convolve(self, x: Tensor, offset: Tensor) -> Tensor:
        return functional.deform_conv2d(
            x, offset, self.weight, self.stride, self.padding, self.dilation, self.groups, self.deform_groups
        )


class DeformConv2dPack(DeformConv2d):
    """DeformConv2d that predicts its offsets with a convolution of its input: forward(x)."""

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__(*args, **given)
        self.conv_offset = self._offsets(2)

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return super().forward(x, self.conv_offset(x))


class ModulatedDeformConv2d(_DeformConv):
    """`mmcv.ops.ModulatedDeformConv2d`, version 2: forward(x, offset, mask [N, deform_groups * kh * kw, oh, ow])."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        deform_groups: int = 1,
        bias: bool = True,
    ) -> None:
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, deform_groups, bias)

    def forward(self, x: Tensor, offset: Tensor, mask: Tensor) -> Tensor:
        return functional.modulated_deform_conv2d(
            x, offset, mask, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups,
            self.deform_groups,
        )  # fmt: skip


class ModulatedDeformConv2dPack(ModulatedDeformConv2d):
    """ModulatedDeformConv2d that predicts offsets and mask with a convolution of its input: forward(x)."""

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__(*args, **given)
        self.conv_offset = self._offsets(3)

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
        offset, mask = self.conv_offset(x).split([2 * self.taps, self.taps], dim=1)
        return super().forward(x, offset, mask.sigmoid())


class MultiScaleDeformableAttention(nn.Module):
    """Deformable attention over the levels of a pyramid (Zhu et al., Deformable DETR), like
    `mmcv.ops.MultiScaleDeformableAttention`.

    forward(query [Q, N, E], value [S, N, E], reference_points [N, Q, L, 2 or 4] in 0 … 1, spatial_shapes [L, 2],
    level_start_index [L]) -> [Q, N, E]; with batch_first, N is the first dimension. The result is added to
    `identity`, the query by default.
    """

    def __init__(
        self,
        embed_dims: int = 256,
        num_heads: int = 8,
        num_levels: int = 4,
        num_points: int = 4,
        dropout: float = 0.1,
        batch_first: bool = False,
    ) -> None:
        super().__init__()
        if embed_dims % num_heads:
            raise ValueError(f"embed_dims: expected a multiple of num_heads ({num_heads}), got {embed_dims}")
        self.embed_dims, self.num_heads, self.num_levels, self.num_points = (
            embed_dims,
            num_heads,
            num_levels,
            num_points,
        )
        self.batch_first = batch_first
        self.dropout = nn.Dropout(dropout)
        self.sampling_offsets = nn.Linear(embed_dims, num_heads * num_levels * num_points * 2)
        self.attention_weights = nn.Linear(embed_dims, num_heads * num_levels * num_points)
        self.value_proj = nn.Linear(embed_dims, embed_dims)
        self.output_proj = nn.Linear(embed_dims, embed_dims)
        self.init_weights()

    def init_weights(self) -> None:
        """Initializes the offsets: heads point in different directions, and each point is one step further."""
        nn.init.zeros_(self.sampling_offsets.weight)
        angle = torch.arange(self.num_heads) * (2 * math.pi / self.num_heads)
        direction = torch.stack([angle.cos(), angle.sin()], -1)
        direction = direction / direction.abs().amax(-1, keepdim=True)
        steps = torch.arange(1, self.num_points + 1)
        bias = direction[:, None, None] * steps[:, None]  # [heads, 1, points, 2]
        with torch.no_grad():
            self.sampling_offsets.bias.copy_(bias.expand(-1, self.num_levels, -1, -1).reshape(-1))
        nn.init.zeros_(self.attention_weights.weight)
        nn.init.zeros_(self.attention_weights.bias)
        for layer in (self.value_proj, self.output_proj):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        identity: Tensor | None = None,
        query_pos: Tensor | None = None,
        key_padding_mask: Tensor | None = None,
        reference_points: Tensor | None = None,
        spatial_shapes: Tensor | None = None,
        level_start_index: Tensor | None = None,
        **_: object,
    ) -> Tensor:
        del key  # attention samples positions, not keys
        if reference_points is None or spatial_shapes is None or level_start_index is None:
            raise ValueError("expected reference_points, spatial_shapes and level_start_index, got None")
        value = query if value is None else value
        identity = query if identity is None else identity
        query = query if query_pos is None else query + query_pos
        if not self.batch_first:
            query, value = query.transpose(0, 1), value.transpose(0, 1)
        batch, queries = query.shape[:2]
        value = self.value_proj(value)
        if key_padding_mask is not None:
            value = value.masked_fill(key_padding_mask[..., None], 0.0)
        value = value.view(batch, value.shape[1], self.num_heads, self.embed_dims // self.num_heads)
        heads = (batch, queries, self.num_heads, self.num_levels, self.num_points)
        offsets = self.sampling_offsets(query).view(*heads, 2)
        weights = self.attention_weights(query).view(*heads[:3], -1).softmax(-1).view(heads)
        centre = reference_points[:, :, None, :, None, :2]
        if reference_points.shape[-1] == 2:
            locations = centre + offsets / spatial_shapes.flip(-1)[:, None]
        elif reference_points.shape[-1] == 4:
            locations = centre + offsets / self.num_points * reference_points[:, :, None, :, None, 2:] * 0.5
        else:
            raise ValueError(f"reference_points: expected a last dimension of 2 or 4, got {reference_points.shape[-1]}")
        sampled = functional.ms_deform_attn(value, spatial_shapes, level_start_index, locations, weights)
        output = self.output_proj(sampled)
        return self.dropout(output if self.batch_first else output.transpose(0, 1)) + identity
