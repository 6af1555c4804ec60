# SPDX-License-Identifier: Apache-2.0
"""torchvision's detectors with random weights as ONNX files.

Uses only its Python part: its compiled operators (nms and roi_align) are polyop's here. The files have ONNX's
operators, which torchvision's own exporter writes.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from functools import cache
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor, nn

import polyop

ROOT = Path(__file__).resolve().parent.parent
_SCHEMAS = {
    "nms": "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms": "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "roi_align": "roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, "
    "int sampling_ratio, bool aligned) -> Tensor",
}


@cache
def torchvision() -> ModuleType:
    """Returns the module, which must be imported after its operators exist, and keeps the library that defines them."""
    library = torch.library.Library("torchvision", "DEF")
    for schema in _SCHEMAS.values():
        library.define(schema)
    library.impl("nms", lambda boxes, scores, threshold: polyop.nms(boxes, scores, threshold), "CPU")
    library.impl(
        "roi_align",
        lambda x, rois, scale, height, width, ratio, aligned: polyop.roi_align(
            x, rois, (height, width), scale, max(ratio, 0), aligned=aligned
        ),
        "CPU",
    )
    sys.path.insert(0, str(ROOT / ".deps" / "torchvision"))
    import torchvision as module

    module._polyop_library = library
    for name, part in list(sys.modules.items()):
        if name.startswith("torchvision") and hasattr(part, "_has_ops"):
            part._has_ops = _has_ops
    module.ops._register_onnx_ops._register_custom_op()
    return module


def _has_ops() -> bool:  # torch.jit reads it
    return True


class Detector(nn.Module):
    """One image in; its boxes, labels and scores (and masks) out."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, image: Tensor) -> tuple[Tensor, ...]:
        return tuple(self.model([image])[0].values())


def faster_rcnn(full: bool) -> nn.Module:
    return _rcnn("fasterrcnn_resnet50_fpn", full)


def mask_rcnn(full: bool) -> nn.Module:
    return _rcnn("maskrcnn_resnet50_fpn", full)


def _rcnn(name: str, full: bool) -> nn.Module:
    sizes = (
        {} if full else {"min_size": 64, "max_size": 128, "rpn_pre_nms_top_n_test": 50, "rpn_post_nms_top_n_test": 30}
    )
    make = getattr(torchvision().models.detection, name)
    return Detector(make(weights=None, weights_backbone=None, box_score_thresh=0.012, **sizes).eval())


MODELS = {"Faster R-CNN": faster_rcnn, "Mask R-CNN": mask_rcnn}


def export(name: str, path: Path, full: bool = False, seed: int = 0) -> dict[str, Tensor]:
    """Writes one of MODELS with the TorchScript exporter, as torchvision documents; returns the input."""
    torch.manual_seed(seed)
    model = MODELS[name](full)
    size = (800, 1216) if full else (64, 96)
    image = torch.rand(3, *size)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model, (image,), str(path), input_names=["image"], opset_version=16, dynamo=False, verbose=False
        )
    return {"image": image}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=list(MODELS))
    parser.add_argument("path", type=Path)
    parser.add_argument("--full", action="store_true", help="the usual size instead of a small one")
    options = parser.parse_args()
    export(options.name, options.path, full=options.full)


if __name__ == "__main__":
    main()
