# SPDX-License-Identifier: Apache-2.0
"""Detectors of mmdet 3 as ONNX files, without MMDeploy.

    from polyop.compat.mmdet import Detector, export

    export(Detector(model, (800, 1216)), torch.rand(1, 3, 800, 1216), "detector.onnx")

The detector's own code is traced as it runs in PyTorch. The trace fixes the size of the images and a batch of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from polyop._aten.patches import replaced
from polyop.exporting import Exported, ExportError
from polyop.exporting import export as export_checked

__all__ = ["Detector", "Network", "export", "exporting", "tensors"]


class Network(nn.Module):
    """The network of a model without postprocessing (`mode="tensor"`): images [N, 3, H, W] -> a flat tuple."""

    def __init__(self, model: nn.Module, size: tuple[int, int]) -> None:
        """`size`: height and width of the images, already normalized and padded."""
        super().__init__()
        self.model, self.size = model, size
        self.training = model.training

    def samples(self, count: int) -> list[Any]:
        from mmdet.structures import DetDataSample

        shapes = dict.fromkeys(("img_shape", "ori_shape", "pad_shape", "batch_input_shape"), self.size)
        return [DetDataSample(metainfo={**shapes, "scale_factor": (1.0, 1.0), "img_id": i}) for i in range(count)]

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        return tuple(tensors(self.model(images, self.samples(len(images)), mode="tensor")))


class Detector(Network):
    """A detector with postprocessing: an image [1, 3, H, W] -> boxes [K, 4] in pixels, scores [K] and labels [K]."""

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        (sample,) = self.model.predict(images, self.samples(1), rescale=False)
        found = sample.pred_instances
        return found.bboxes, found.scores, found.labels


def tensors(part: Any) -> Iterator[Tensor]:
    """Returns the tensors of nested lists, tuples and dictionaries, in order."""
    if isinstance(part, Tensor):
        yield part
    elif isinstance(part, Mapping):
        yield from tensors(list(part.values()))
    elif isinstance(part, list | tuple):
        for one in part:
            yield from tensors(one)


def _split(split: Callable[..., Any], tensor: Tensor, sizes: int | Sequence[int], dim: int = 0) -> Any:
    """Does nothing for one part: mmdet splits results by the number of boxes per image, which a trace would fix."""
    return (tensor,) if isinstance(sizes, list | tuple) and len(sizes) == 1 else split(tensor, sizes, dim)


def _pool_all_levels(
    plain: Callable[..., Tensor],
    extractor: Any,
    feats: Sequence[Tensor],
    rois: Tensor,
    roi_scale_factor: float | None = None,
) -> Tensor:
    """Pools all levels with one operator: mmdet skips levels without boxes, which a trace would fix."""
    layers = extractor.roi_layers
    first = layers[0]
    if len(feats) == 1:
        return plain(extractor, feats, rois, roi_scale_factor)
    if {type(layer).__name__ for layer in layers} != {"RoIAlign"}:
        raise NotImplementedError(
            f"expected RoIAlign layers, got {type(first).__name__}: its trace would fix the levels that have boxes"
        )
    height, width = first.output_size
    return torch.ops.polyop.multi_level_roi_align(
        rois.type_as(feats[0]), list(feats[: len(layers)]), output_height=height, output_width=width,
        sampling_ratio=first.sampling_ratio, pool_mode=first.pool_mode, aligned=int(first.aligned),
        roi_scale_factor=roi_scale_factor or 0.0, finest_scale=extractor.finest_scale,
        featmap_strides=[1 / layer.spatial_scale for layer in layers],
    )  # fmt: skip


def _filter_always(plain: Callable[..., Any], head: Any, results: Any, cfg: Any, *args: Any, **given: Any) -> Any:
    """Always filters small boxes: mmdet only does so if there are some, which a trace would fix."""
    from mmdet.structures.bbox import get_box_wh

    min_size = cfg.get("min_bbox_size", -1)
    if min_size >= 0:
        width, height = get_box_wh(results.bboxes)
        results = results[(width > min_size) & (height > min_size)]
        cfg = type(cfg)({**cfg, "min_bbox_size": -1})
    return plain(head, results, cfg, *args, **given)


@contextmanager
def exporting() -> Iterator[None]:
    """Makes mmdet traceable in a `with` block, by removing decisions that depend on the traced image.

    mmdet also tests whether it is exported, and then calls functions of its version 2 only: the test returns False
    here.
    """
    import mmdet.models  # noqa: F401 (replaced only applies to imported modules)

    changes: dict[str, Callable[..., Any]] = {
        "torch:Tensor.split": _split,
        "torch.onnx:is_in_onnx_export": lambda _: False,
        "mmdet.models.roi_heads.roi_extractors:SingleRoIExtractor.forward": _pool_all_levels,
        "mmdet.models.dense_heads.base_dense_head:BaseDenseHead._bbox_post_process": _filter_always,
        "mmdet.models.dense_heads:RPNHead._bbox_post_process": _filter_always,
    }
    with replaced(changes):
        yield


def export(network: Network, images: Tensor, path: str | Path, **given: Any) -> Exported:
    """`polyop.export` of a network: writes the file, runs it in ONNX Runtime, and compares with PyTorch.

    `given` are its arguments. The exporter is TorchScript's, because MMCV's operators have symbolic functions.
    """
    names = ["boxes", "scores", "labels"] if isinstance(network, Detector) else None
    options = {"exporter": "torchscript", "opset_version": 17, "input_names": ["images"], "output_names": names}
    with torch.no_grad(), exporting():
        if isinstance(network, Detector) and not len(network(images)[0]):
            raise ExportError("expected an image with detections, got none: the trace would lack their postprocessing")
        return export_checked(network, images, path, **{**options, **given})
