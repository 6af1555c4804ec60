"""Detectors of mmdet 3 as ONNX files, without MMDeploy.

    from polyop.compat.mmdet import Detector, export

    export(Detector(model, (800, 1216)), torch.rand(1, 3, 800, 1216), "detector.onnx")

A detector's own code is traced, as it runs in PyTorch. What stays as it is then: the size of the pictures, and that there is
one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn

from polyop.exporting import Exported, ExportError
from polyop.exporting import export as export_checked

__all__ = ["Detector", "Network", "export", "exporting", "tensors"]


class Network(nn.Module):
    """What a model computes of images [N, 3, H, W] before anything is found in them: `mode="tensor"`, in a flat tuple."""

    def __init__(self, model: nn.Module, size: tuple[int, int]) -> None:
        """`size`: height and width of the pictures, already normalised and padded."""
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
    """What a model finds in one picture [1, 3, H, W]: boxes [K, 4] in its pixels, scores [K] and labels [K]."""

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        (sample,) = self.model.predict(images, self.samples(1), rescale=False)
        found = sample.pred_instances
        return found.bboxes, found.scores, found.labels


def tensors(part: Any) -> Iterator[Tensor]:
    """Of nested lists, tuples and dictionaries, in their order."""
    if isinstance(part, Tensor):
        yield part
    elif isinstance(part, Mapping):
        yield from tensors(list(part.values()))
    elif isinstance(part, list | tuple):
        for one in part:
            yield from tensors(one)


def _split_unless_whole(split: Callable[..., tuple[Tensor, ...]]) -> Callable[..., tuple[Tensor, ...]]:
    """mmdet splits what it found by the number of each picture's boxes; of one picture that is all, whatever their number."""

    def of(self: Tensor, sizes: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
        return (self,) if isinstance(sizes, list | tuple) and len(sizes) == 1 else split(self, sizes, dim)

    return of


def _pool_all_levels(plain: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """mmdet leaves out levels without a box, and a trace would leave them out for ever: pooled as one operator instead."""

    def forward(self: Any, feats: Sequence[Tensor], rois: Tensor, roi_scale_factor: float | None = None) -> Tensor:
        layers = self.roi_layers
        first = layers[0]
        if len(feats) == 1:
            return plain(self, feats, rois, roi_scale_factor)
        if {type(layer).__name__ for layer in layers} != {"RoIAlign"}:
            raise NotImplementedError(
                f"a trace of {type(first).__name__} would hold for the levels that have boxes now"
            )
        height, width = first.output_size
        return torch.ops.polyop.multi_level_roi_align(
            rois.type_as(feats[0]), list(feats[: len(layers)]), output_height=height, output_width=width,
            sampling_ratio=first.sampling_ratio, pool_mode=first.pool_mode, aligned=int(first.aligned),
            roi_scale_factor=roi_scale_factor or 0.0, finest_scale=self.finest_scale,
            featmap_strides=[1 / layer.spatial_scale for layer in layers],
        )  # fmt: skip

    return forward


def _filter_always(plain: Callable[..., Any]) -> Callable[..., Any]:
    """mmdet takes small boxes out if there are some, and a trace would take them out always or never."""

    def post_process(self: Any, results: Any, cfg: Any, *args: Any, **given: Any) -> Any:
        from mmdet.structures.bbox import get_box_wh

        least = cfg.get("min_bbox_size", -1)
        if least >= 0:
            width, height = get_box_wh(results.bboxes)
            results = results[(width > least) & (height > least)]
            cfg = type(cfg)({**cfg, "min_bbox_size": -1})
        return plain(self, results, cfg, *args, **given)

    return post_process


@contextmanager
def exporting() -> Iterator[None]:
    """While it lasts, mmdet can be traced: what it would decide by the picture that is traced is no longer decided.

    It also asks whether it is exported, and then calls what only its version 2 had: it is told that it is not.
    """
    from mmdet.models.dense_heads import RPNHead
    from mmdet.models.dense_heads.base_dense_head import BaseDenseHead
    from mmdet.models.roi_heads.roi_extractors import SingleRoIExtractor

    changes = [
        (Tensor, "split", _split_unless_whole),
        (SingleRoIExtractor, "forward", _pool_all_levels),
        (BaseDenseHead, "_bbox_post_process", _filter_always),
        (RPNHead, "_bbox_post_process", _filter_always),
    ]
    with ExitStack() as stack:
        stack.enter_context(mock.patch("torch.onnx.is_in_onnx_export", return_value=False))
        for owner, name, change in changes:
            stack.enter_context(mock.patch.object(owner, name, change(getattr(owner, name))))
        yield


def export(network: Network, images: Tensor, path: str | Path, **given: Any) -> Exported:
    """`polyop.export` of a network: writes the file, runs it in ONNX Runtime, and compares with PyTorch.

    `given` are its arguments. MMCV's operators have symbolic functions, so the exporter is TorchScript's.
    """
    names = ["boxes", "scores", "labels"] if isinstance(network, Detector) else None
    options = {"exporter": "torchscript", "opset_version": 17, "input_names": ["images"], "output_names": names}
    with torch.no_grad(), exporting():
        if isinstance(network, Detector) and not len(network(images)[0]):
            raise ExportError("the model finds nothing in this picture, and what it does not do is not written")
        return export_checked(network, images, path, **{**options, **given})
