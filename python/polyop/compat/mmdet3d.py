# SPDX-License-Identifier: Apache-2.0
"""Pillar and voxel detectors of mmdet3d 1.4 as ONNX files, without MMDeploy.

from polyop.compat.mmdet3d import PillarNetwork, export

export(PillarNetwork(model), (voxels, num_points, coors), "pillars.onnx")

VoxelNetwork is for detectors with sparse convolutions.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from polyop.compat.mmdet import tensors
from polyop.exporting import Exported
from polyop.exporting import export as export_checked

__all__ = ["PillarNetwork", "VoxelNetwork", "encode", "export"]

_NAMES = ["voxels", "num_points", "coors"]
_TRACED = {"mmcv", "mmdet3d", "mmengine", "torch"}
_PARTS = ("voxel_encoder", "middle_encoder", "backbone", "neck", "bbox_head")


class PillarNetwork(nn.Module):
    """The network of PointPillars or CenterPoint without box decoding, for one point cloud: pillars -> a flat tuple.

    voxels [V, points, features], num_points [V] and coors [V, 4] (0, z, y, x) are the results of mmdet3d's data
    preprocessor, or of polyop's HardVoxelize with a column of zeros before its coors.
    """

    _encoders = ("PillarFeatureNet", "PointPillarsScatter")

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.training = model.training
        prefix = "pts_" if getattr(model, "pts_voxel_encoder", None) is not None else ""
        self.parts = nn.ModuleDict({name: getattr(model, prefix + name) for name in _PARTS})
        for part, expected in zip(_PARTS[:2], self._encoders, strict=True):
            if (given := type(self.parts[part]).__name__) != expected:
                raise NotImplementedError(f"{part}: expected {expected}, got {given}")

    def forward(self, voxels: Tensor, num_points: Tensor, coors: Tensor) -> tuple[Tensor, ...]:
        result = self._encode(voxels, num_points, coors)
        result = self.parts["middle_encoder"](result, coors, batch_size=1)
        for name in ("backbone", "neck", "bbox_head"):
            result = self.parts[name](result)
        return tuple(tensors(result))

    def _encode(self, voxels: Tensor, num_points: Tensor, coors: Tensor) -> Tensor:
        return encode(self.parts["voxel_encoder"], voxels, num_points, coors)


class VoxelNetwork(PillarNetwork):
    """The network of SECOND, or of CenterPoint with voxels, without box decoding.

    With polyop as MMCV's compiled module, sparse convolutions become the nodes autoware::GetIndicePairs and
    autoware::IndiceConv.
    """

    _encoders = ("HardSimpleVFE", "SparseEncoder")

    def __init__(self, model: nn.Module) -> None:
        super().__init__(model)
        foreign = {type(m).__module__.split(".")[0] for m in self.parts["middle_encoder"].modules()} - _TRACED
        if foreign:
            raise NotImplementedError(
                f"middle_encoder: expected layers of MMCV, got {', '.join(sorted(foreign))}: mmdet3d uses MMCV's if spconv is "
                "not installed"
            )

    def _encode(self, voxels: Tensor, num_points: Tensor, coors: Tensor) -> Tensor:
        return self.parts["voxel_encoder"](voxels, num_points, coors)


def encode(encoder: Any, voxels: Tensor, num_points: Tensor, coors: Tensor) -> Tensor:
    """PillarFeatureNet's forward(), which writes into its input in "legacy" mode: points are replaced by their
    positions in the pillar. A trace would not contain this write."""
    points = voxels[..., :3]
    columns = [voxels]
    if encoder._with_cluster_center:
        columns.append(points - points.sum(1, keepdim=True) / num_points.to(voxels).view(-1, 1, 1))
    if encoder._with_voxel_center:
        size = voxels.new_tensor([encoder.vx, encoder.vy, encoder.vz])
        offset = voxels.new_tensor([encoder.x_offset, encoder.y_offset, encoder.z_offset])
        position = points - (coors[:, [3, 2, 1]].to(voxels) * size + offset)[:, None]
        columns.append(position)
        if encoder.legacy:
            points = position
            columns[0] = torch.cat([position, voxels[..., 3:]], -1)
    if encoder._with_distance:
        columns.append(points.norm(dim=2, keepdim=True))
    there = torch.arange(voxels.shape[1], device=voxels.device) < num_points[:, None]
    result = torch.cat(columns, -1) * there[..., None].to(voxels)
    for layer in encoder.pfn_layers:
        result = layer(result, num_points)
    return result.squeeze(1)


def export(network: PillarNetwork, pillars: Sequence[Tensor], path: str | Path, **given: Any) -> Exported:
    """`polyop.export` of a network; the file accepts any number of pillars or voxels. `given` are its arguments."""
    options = {
        "exporter": "torchscript",
        "opset_version": 17,
        "input_names": _NAMES,
        "dynamic": {name: {0: "pillars"} for name in _NAMES},
    }
    with torch.no_grad():
        return export_checked(network, pillars, path, **{**options, **given})
