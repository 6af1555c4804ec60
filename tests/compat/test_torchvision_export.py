"""torchvision's detectors, exported by PyTorch's dynamo exporter and compared with eager execution.

polyop.export compares the file's outputs in ONNX Runtime. The detectors are small and have random weights.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.processes import ROOT, environment, run

TORCHVISION = ROOT / ".deps" / "torchvision"  # its Python code; its compiled part needs CUDA

SETUP = """
import sys
import polyop, polyop.compat
polyop.compat.install("torchvision._C")
import torch
from torch import nn
from torchvision.models import detection
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.ops import MultiScaleRoIAlign, batched_nms, boxes

class Backbone(nn.Module):
    out_channels = 32

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 32, 8, 8), nn.Conv2d(32, 32, 2, 2)

    def forward(self, x):
        x = torch.relu(self.first(x))
        return {"0": x, "1": torch.relu(self.second(x))}

class OneImage(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, image):
        return self.model([image])[0]
"""

DETECTOR = """
torch.manual_seed(0)
pool = lambda size: MultiScaleRoIAlign(["0", "1"], size, 2)
given = dict(
    rpn_anchor_generator=AnchorGenerator(((16, 24, 32), (32, 48, 64)), ((0.5, 1.0, 2.0),) * 2),
    rpn_pre_nms_top_n_test=40, rpn_post_nms_top_n_test=15, box_detections_per_img=6, min_size=64, max_size=96,
    box_roi_pool=pool(3),
)
if sys.argv[1] == "MaskRCNN":
    given["mask_roi_pool"] = pool(6)
model = getattr(detection, sys.argv[1])(Backbone(), 4, **given).eval()
for parameter in model.parameters():
    if parameter.dim() > 1:  # scores that are no ties
        nn.init.normal_(parameter, std=parameter[0].numel() ** -0.5)
code = batched_nms.__code__
report = polyop.export(OneImage(model), torch.rand(3, 64, 88), sys.argv[2], exporter="dynamo", verbose=False)
assert batched_nms.__code__ is code  # torchvision's own again
print(report.exporter, [output.shape[0] for output in report.outputs])
"""

NMS = """
class Suppress(nn.Module):
    def forward(self, boxes, scores, classes):
        some = scores > 0.3
        return batched_nms(boxes[some], scores[some], classes[some], 0.5)

torch.manual_seed(0)
corner = torch.rand(300, 2) * 90
boxes = torch.cat([corner, corner + torch.rand(300, 2) * 40], 1)
scores, classes = torch.rand(300), torch.randint(5, (300,))
report = polyop.export(Suppress(), (boxes, scores, classes), sys.argv[1], exporter="dynamo", verbose=False)
import onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1])
for factor in (1.0, 0.9, 0.2):  # with the last one no box is left
    feeds = {"boxes": boxes.numpy(), "scores": (scores * factor).numpy(), "classes": classes.numpy()}
    (got,) = session.run(None, feeds)
    expected = Suppress()(boxes, scores * factor, classes)
    assert got.tolist() == expected.tolist(), factor
print(0 < report.outputs[0].shape[0] < 250, len(got))
"""


def child(code: str, *arguments: str | Path) -> str:
    return run(sys.executable, "-W", "ignore", "-c", SETUP + code, *arguments, env=environment(TORCHVISION))


@pytest.mark.slow  # one and a half minutes on a busy machine
@pytest.mark.parametrize(
    ("name", "outputs"), [("FasterRCNN", [6, 6, 6]), ("MaskRCNN", [6, 6, 6, 6])], ids=["FasterRCNN", "MaskRCNN"]
)
def test_detectors(name: str, outputs: list[int], tmp_path: Path) -> None:
    assert child(DETECTOR, name, tmp_path / "model.onnx").splitlines()[-1] == f"dynamo {outputs}"


def test_batched_nms(tmp_path: Path) -> None:
    assert child(NMS, tmp_path / "model.onnx").splitlines()[-1] == "True 0"
