# SPDX-License-Identifier: Apache-2.0
"""polyop.compat.torchvision: torchvision's Python code with polyop's operators, in a process without torchvision's own.

The kernels themselves are compared with torchvision's in tests/accelerating and tests/operators.
"""

from __future__ import annotations

import sys

from tests.support.processes import ROOT, environment, run

TORCHVISION = ROOT / ".deps" / "torchvision"  # its Python code; its compiled part needs CUDA

OPERATORS = """
import polyop.compat
assert "torchvision._C" in polyop.compat.install("torchvision._C")
import torch, torchvision
from torch.autograd import gradcheck
from torchvision import ops

torch.manual_seed(0)
x = torch.rand(2, 8, 5, 6, dtype=torch.float64, requires_grad=True)
rois = torch.tensor([[0, 1.3, 2.1, 4.6, 4.2], [1, 0.2, 0.4, 5.7, 4.9]], dtype=torch.float64)
assert gradcheck(lambda t: ops.roi_align(t, rois, (2, 2), 0.9, 2), x)
assert gradcheck(lambda t: ops.ps_roi_align(t, rois, (2, 2), 0.9, 2), x)
assert gradcheck(lambda t: ops.roi_pool(t, rois, (2, 2), 0.9), x)
assert gradcheck(lambda t: ops.ps_roi_pool(t, rois, (2, 2), 0.9), x)

full = ops.roi_align(x, rois, (2, 2), 0.9, 2, aligned=True)
own = ops.ps_roi_align(x, rois, (2, 2), 0.9, 2)
for c in range(2):
    for i in range(2):
        for j in range(2):
            assert torch.equal(own[:, c, i, j], full[:, c * 4 + i * 2 + j, i, j])

pooled = ops.ps_roi_pool(x, torch.tensor([[0.0, 1, 0, 5, 4]], dtype=torch.float64), (2, 2))
assert torch.allclose(pooled[0, 1, 0, 1], x[0, 5, 0:2, 3:5].mean())  # bins of 2 x 2 pixels

weight = torch.rand(4, 8, 3, 3, dtype=torch.float64, requires_grad=True)
offset = torch.rand(2, 18, 3, 4, dtype=torch.float64)
mask = torch.rand(2, 9, 3, 4, dtype=torch.float64)
layer = lambda t, w: ops.deform_conv2d(t, offset, w, mask=mask)
assert gradcheck(layer, (x, weight))
zero = torch.zeros_like(offset)
plain = torch.nn.functional.conv2d(x, weight)
assert torch.allclose(ops.deform_conv2d(x, zero, weight), plain)

boxes = torch.tensor([[0.0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30]])
scores = torch.tensor([0.8, 0.9, 0.7])
assert ops.nms(boxes, scores, 0.5).tolist() == [1, 2]
assert torch.compile(ops.nms, fullgraph=True, backend="eager")(boxes, scores, 0.5).tolist() == [1, 2]
rotated = torch.tensor([[5.0, 5, 4, 2, 90]])
upright = torch.tensor([[5.0, 5, 2, 4, 0], [5, 5, 4, 2, 0]])
assert torch.allclose(ops.box_iou(rotated, upright, fmt="cxcywhr"), torch.tensor([[1.0, 4 / 12]]), atol=1e-5)
quantized = lambda t, scale: torch.quantize_per_tensor(t.float(), scale, 0, torch.quint8)
pooled = ops.roi_align(quantized(x * 10, 0.1), quantized(rois, 1.0), 2, 0.9, 2).dequantize()
assert torch.allclose(pooled, ops.roi_align(x.detach() * 10, rois.round(), 2, 0.9, 2).float(), atol=0.11)
with torch.autocast("cpu", torch.bfloat16):
    assert ops.roi_align(x.float(), rois.float(), 2).dtype == torch.float32
print("equal", torchvision.extension._has_ops())
"""

DETECTOR = """
import polyop.compat
polyop.compat.install()
import torch, torchvision

torch.manual_seed(0)
make = torchvision.models.detection.fasterrcnn_mobilenet_v3_large_320_fpn
model = make(weights=None, weights_backbone=None, num_classes=3)
images = [torch.rand(3, 120, 160), torch.rand(3, 100, 140)]
targets = [{"boxes": torch.tensor([[10.0, 10, 60, 70]]), "labels": torch.tensor([1])} for _ in images]
losses = model(images, targets)
sum(losses.values()).backward()
assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)
model.eval()
with torch.no_grad():
    found = model(images)
print(sorted(losses), len(found), sorted(found[0]))
"""


def test_operators() -> None:
    assert run(sys.executable, "-W", "ignore", "-c", OPERATORS, env=environment(TORCHVISION)) == "equal True\n"


def test_a_detector_trains_and_detects() -> None:
    losses = ["loss_box_reg", "loss_classifier", "loss_objectness", "loss_rpn_box_reg"]
    said = run(sys.executable, "-W", "ignore", "-c", DETECTOR, env=environment(TORCHVISION))
    assert said.strip() == f"{losses} 2 ['boxes', 'labels', 'scores']"
