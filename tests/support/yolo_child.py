# SPDX-License-Identifier: Apache-2.0
"""Writes the end of a YOLO model as Ultralytics' exporter does with `nms=True`, a file for each of VARIANTS.

python -m tests.support.yolo_child FOLDER
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.support.processes import ROOT

CLASSES, CANDIDATES, ROWS = 3, 126, 20
VARIANTS = {
    "plain": {},
    "agnostic": {"agnostic": True},
    "masks": {"extra": 2},
    "two images": {"images": 2},
}


class End(nn.Module):
    """Rows of boxes (corners), scores and `extra` numbers in; detections [images, ROWS, 6 + extra] out."""

    def __init__(self, vision: ModuleType, agnostic: bool = False, extra: int = 0, images: int = 1) -> None:
        super().__init__()
        self.nms, self.agnostic, self.extra, self.images = vision.ops.nms, agnostic, extra, images

    def forward(self, rows: Tensor) -> Tensor:
        boxes, scores, extras = rows.transpose(-1, -2).split([4, CLASSES, self.extra], dim=2)
        scores, classes = scores.max(dim=-1)
        out = torch.zeros(self.images, ROWS, 6 + self.extra)
        for i in range(self.images):
            chosen = scores[i] > 0.3
            box, score, label, extra = (values[i][chosen] for values in (boxes, scores, classes, extras))
            compared = box / torch.tensor([64.0, 96.0]).max() / CLASSES
            if not self.agnostic:
                compared = compared + label.view(-1, 1).expand(label.shape[0], 4) / CLASSES
            keep = self.nms(compared, score, 0.5)[:ROWS]
            found = [box[keep], score[keep].view(-1, 1), label[keep].view(-1, 1).to(out.dtype), extra[keep]]
            joined = torch.cat(found if self.extra else found[:3], dim=-1)
            out[i] = functional.pad(joined, (0, 0, 0, ROWS - joined.shape[0]))
        return out


def given(images: int = 1, extra: int = 0) -> Tensor:
    drawn = torch.rand(images, 4 + CLASSES + extra, CANDIDATES, generator=torch.Generator().manual_seed(0))
    corner = drawn[:, :2] * 60
    return torch.cat([corner, corner + 5 + drawn[:, 2:4] * 30, drawn[:, 4:]], 1)


def main(folder: Path) -> None:
    sys.path.insert(0, str(ROOT / "bench"))
    from torchvision_models import torchvision

    for name, options in VARIANTS.items():
        rows = given(options.get("images", 1), options.get("extra", 0))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                End(torchvision(), **options), (rows,), str(folder / f"{name}.onnx"), dynamo=False, opset_version=17,
                input_names=["rows"], output_names=["detections"], verbose=False,
            )  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]))
