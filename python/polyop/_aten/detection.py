# SPDX-License-Identifier: Apache-2.0
"""torchvision's functions of detectors that stop an export while PyTorch captures the program.

They depend in Python on the number of boxes, which is only known when the model runs. During the capture every
reference to them calls the functions below. Results are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch._higher_order_ops.scan import scan_op

from polyop._aten.patches import replaced

_CUBIC = -0.75  # of PyTorch's bicubic interpolation


_library = torch.library.Library("polyop_export", "FRAGMENT")
_library.define("nms_by_class(Tensor boxes, Tensor scores, Tensor idxs, float iou_threshold) -> Tensor")


@torch.library.impl(_library, "nms_by_class", "CompositeExplicitAutograd")
def _nms_by_class(boxes: Tensor, scores: Tensor, idxs: Tensor, iou_threshold: float) -> Tensor:
    kept = [torch.zeros([0], dtype=torch.int64, device=boxes.device)]
    for number in torch.unique(idxs):
        of_class = torch.where(idxs == number)[0]
        kept.append(of_class[torch.ops.torchvision.nms(boxes[of_class], scores[of_class], iou_threshold)])
    found = torch.cat(kept)
    return found[scores[found].sort(descending=True, stable=True)[1]]


@torch.library.register_fake("polyop_export::nms_by_class")
def _fake_nms(boxes: Tensor, scores: Tensor, idxs: Tensor, iou_threshold: float) -> Tensor:
    return boxes.new_empty([torch.library.get_ctx().new_dynamic_size()], dtype=torch.int64)


def batched_nms(boxes: Tensor, scores: Tensor, idxs: Tensor, iou_threshold: float) -> Tensor:
    """Suppresses the boxes of each class with their own coordinates: polyop/_torch/onnx_translations.py writes it.

    For up to 1,000 boxes torchvision moves those of each class to a separate area, which rounds them.
    """
    return torch.ops.polyop_export.nms_by_class.default(boxes, scores, idxs, iou_threshold)


def multiscale_roi_align(
    features: Sequence[Tensor],
    boxes: Sequence[Tensor],
    output_size: Sequence[int],
    sampling_ratio: int,
    scales: Sequence[float],
    mapper: Callable[[Sequence[Tensor]], Tensor],
) -> Tensor:
    """Pools each box from the feature map of its level."""
    images = [torch.full_like(of_image[:, :1], float(number)) for number, of_image in enumerate(boxes)]
    rois = torch.cat([torch.cat(images), torch.cat(list(boxes))], 1)
    height, width = output_size

    def pool(feature: Tensor, rois: Tensor, scale: float) -> Tensor:
        return torch.ops.torchvision.roi_align(feature, rois, scale, height, width, sampling_ratio, False)

    if len(features) == 1:
        return pool(features[0], rois, scales[0])
    levels = mapper(boxes)
    result = features[0].new_zeros((rois.shape[0], features[0].shape[1], height, width))
    for level, (feature, scale) in enumerate(zip(features, scales, strict=True)):
        index = torch.where(levels == level)[0]
        result = result.index_put((index,), pool(feature, rois[index], scale).to(result.dtype))
    return result


def paste_masks_in_image(masks: Tensor, boxes: Tensor, img_shape: Sequence[Any], padding: int = 1) -> Tensor:
    """Resizes the masks [N, 1, M, M] to their boxes, all at once: products with the weights of rows and columns."""
    size = masks.shape[-1] + 2 * padding
    centre, half = (boxes[:, :2] + boxes[:, 2:]) * 0.5, (boxes[:, 2:] - boxes[:, :2]) * 0.5
    half = half * (size / masks.shape[-1])
    first, last = (centre - half).to(torch.int64), (centre + half).to(torch.int64)
    extent = (last - first + 1).clamp(min=1)
    padded = torch.nn.functional.pad(masks, (padding,) * 4)
    rows, columns = (
        _weights(first[:, axis], extent[:, axis], img_shape[1 - axis], size).to(masks.dtype) for axis in (1, 0)
    )
    return rows.unsqueeze(1) @ padded @ columns.unsqueeze(1).mT


def _weights(first: Tensor, extent: Tensor, pixels: Any, size: int) -> Tensor:
    """Returns the weights of linear interpolation [N, pixels, size], which are 0 outside of the boxes."""
    position = torch.arange(pixels, device=first.device) - first.unsqueeze(1)
    inside = (position >= 0) & (position < extent.unsqueeze(1))
    source = ((position + 0.5) * (size / extent.unsqueeze(1)) - 0.5).clamp(0, size - 1)
    distance = (source.unsqueeze(2) - torch.arange(size, device=first.device)).abs()
    return (1 - distance).clamp(min=0) * inside.unsqueeze(2)


def heatmaps_to_keypoints(maps: Tensor, rois: Tensor) -> tuple[Tensor, Tensor]:
    """Resizes the maps [K, N, M, M] to their boxes and returns the maximum's position [K, N, 3] and value [K, N].

    A scan over the boxes: each step has products with the weights of rows and columns for the largest box. A box of no
    interest is added, because ONNX Runtime ends the process for a Scan of no steps.
    """
    maps, rois = _with_one_more(maps), _with_one_more(rois)
    extents = (rois[:, 2:] - rois[:, :2]).clamp(min=1)
    pixels = extents.ceil().to(torch.int64)
    weights = [_cubic_weights(pixels[:, axis], maps.shape[-1 - axis]).to(maps.dtype) for axis in (0, 1)]

    def step(carried: Tensor, of_box: Tensor, columns: Tensor, rows: Tensor) -> list[Tensor]:
        resized = rows @ of_box @ columns.mT
        best, row = resized.max(2)  # the first of equal ones
        score, y = best.max(1)
        return [carried.clone(), score, row.gather(1, y.unsqueeze(1)).squeeze(1), y]

    _, scores, x, y = scan_op(step, [maps.new_zeros(1)], [maps, *weights], [])
    position = torch.stack([x, y], 2)[:-1]
    position = torch.minimum(position, pixels[:-1].unsqueeze(1) - 1)  # positions beyond the box repeat the last one
    scale = (extents / pixels)[:-1].unsqueeze(1)
    position = (position.to(torch.float32) + 0.5) * scale + rois[:-1, :2].unsqueeze(1)
    return torch.cat([position, torch.ones_like(position[..., :1])], 2), scores[:-1]


def _with_one_more(rows: Tensor) -> Tensor:
    return torch.cat([rows, rows.new_zeros((1, *rows.shape[1:]))])


def _cubic_weights(extent: Tensor, size: int) -> Tensor:
    """Returns the weights of cubic interpolation [N, pixels, size] for the pixels of the largest extent."""
    pixels = extent.max().item()
    torch._check(pixels >= 1)
    pixel = torch.minimum(torch.arange(pixels, device=extent.device), extent.unsqueeze(1) - 1)
    source = (pixel + 0.5) * (size / extent.unsqueeze(1)) - 0.5
    first = source.floor()
    result = torch.zeros((), device=extent.device)
    for tap in (-1, 0, 1, 2):
        d = (source - first - tap).abs()
        a = _CUBIC
        weight = ((a + 2) * d - (a + 3)) * d * d + 1 if tap in (0, 1) else ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
        at = (first + tap).clamp(0, size - 1).unsqueeze(2) == torch.arange(size, device=extent.device)
        result = result + torch.where(at, weight.unsqueeze(2), 0.0)
    return result


def _ours(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that is called with torchvision's before the arguments."""
    return lambda of_torchvision, *args, **given: function(*args, **given)


@contextmanager
def detectors_without_counts() -> Iterator[None]:
    """In a `with` block, torchvision's functions are those above."""
    functions: dict[str, Callable[..., Any]] = {
        "torchvision.ops.boxes:batched_nms": batched_nms,
        "torchvision.ops.poolers:_multiscale_roi_align": multiscale_roi_align,
        "torchvision.models.detection.roi_heads:paste_masks_in_image": paste_masks_in_image,
        "torchvision.models.detection.roi_heads:heatmaps_to_keypoints": heatmaps_to_keypoints,
    }
    with replaced({name: _ours(function) for name, function in functions.items()}):
        yield
