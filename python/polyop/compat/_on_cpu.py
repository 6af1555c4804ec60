# SPDX-License-Identifier: Apache-2.0
"""Lets Python code that allocates by `torch.cuda.FloatTensor` and `.cuda()` run on the CPU: that of OpenPCDet,
PointRCNN and Point Transformer."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from polyop._base.after_import import after_import

__all__ = ["watch"]


class _Namespace:
    """A module with some attributes replaced."""

    def __init__(self, module: Any, **replaced: Any) -> None:
        self.__dict__.update(replaced)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def _allocate_on_cpu(module: ModuleType) -> None:
    cuda = _Namespace(torch.cuda, FloatTensor=torch.FloatTensor, IntTensor=torch.IntTensor)
    module.torch = _Namespace(torch, cuda=cuda)  # type: ignore[attr-defined]


def _suppress_on_cpu(module: ModuleType) -> None:
    _allocate_on_cpu(module)
    for name in ("nms_gpu", "nms_normal_gpu"):
        setattr(module, name, _suppression(getattr(module.iou3d_nms_cuda, name)))  # type: ignore[attr-defined]


def _suppression(kernel: Callable[[Tensor, Tensor, float], int]) -> Callable[..., tuple[Tensor, None]]:
    def suppress(
        boxes: Tensor, scores: Tensor, thresh: float, pre_maxsize: int | None = None, **_: Any
    ) -> tuple[Tensor, None]:
        order = scores.sort(0, descending=True)[1][:pre_maxsize]
        keep = torch.empty(len(order), dtype=torch.int64)
        count = kernel(boxes[order].contiguous(), keep, thresh)
        return order[keep[:count]].contiguous(), None

    return suppress


_CHANGES: dict[str, Callable[[ModuleType], None]] = {
    "pcdet.ops.iou3d_nms.iou3d_nms_utils": _suppress_on_cpu,
    "pcdet.ops.pointnet2.pointnet2_batch.pointnet2_utils": _allocate_on_cpu,
    "pcdet.ops.pointnet2.pointnet2_stack.pointnet2_utils": _allocate_on_cpu,
    "pcdet.ops.pointnet2.pointnet2_stack.voxel_query_utils": _allocate_on_cpu,
    "*.pointnet2.pointnet2_utils": _allocate_on_cpu,
    "*.pointops.functions.pointops": _allocate_on_cpu,
}


def watch() -> None:
    """Changes the modules when they are imported, unless there is a GPU."""
    if not torch.cuda.is_available():
        after_import(_CHANGES)
