# SPDX-License-Identifier: Apache-2.0
"""examples/faces: MTCNN as one file, compared with facenet-pytorch, whose suppression is replaced by one in NumPy."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import onnxruntime as ort
import pytest
import torch
from skimage import data

import polyop
from tests.support.processes import ROOT

EXAMPLE = ROOT / "examples" / "faces"
PACKAGE = ROOT / ".deps" / "faces"
MODULES = ("cascade", "facenet", "main")


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    """Yields the example's modules. Other examples have modules of these names, and torchvision is missing again."""
    assert (PACKAGE / "facenet_pytorch").is_dir(), f"{PACKAGE} is missing: run tools/setup.sh"
    monkeypatch.syspath_prepend(str(EXAMPLE))
    before = dict(sys.modules)
    for name in MODULES:
        sys.modules.pop(name, None)
    yield {name: import_module(name) for name in MODULES}
    for name in set(sys.modules) - set(before):
        if name.partition(".")[0] in ("torchvision", "facenet_pytorch"):
            del sys.modules[name]
    for name in MODULES:
        sys.modules.pop(name, None)
        if name in before:
            sys.modules[name] = before[name]


def suppress(boxes: torch.Tensor, scores: torch.Tensor, images: torch.Tensor, threshold: float) -> torch.Tensor:
    """Suppresses the boxes of one photo, as torchvision does."""
    corners, kept = boxes.numpy().astype(np.float64), []
    area = np.prod(corners[:, 2:] - corners[:, :2], 1)
    open_ = np.argsort(-scores.numpy(), kind="stable")
    while len(open_):
        best, open_ = open_[0], open_[1:]
        kept.append(best)
        near, far = (
            f(corners[best, s], corners[open_][:, s]) for f, s in ((np.maximum, slice(2)), (np.minimum, slice(2, 4)))
        )
        shared = np.prod(np.maximum(far - near, 0), 1)
        open_ = open_[shared <= threshold * (area[best] + area[open_] - shared)]
    return torch.tensor(np.array(kept, np.int64))


def photos() -> dict[str, np.ndarray]:
    """Returns photos of one size: one face; several faces of two sizes, one of them rotated; and none."""
    one = data.astronaut()
    several = np.zeros_like(one)
    small = one[:256, 96:352]
    several[:256, :256], several[:256, 256:], several[256:, :256] = small, small[:, ::-1], small // 2
    several[300:428, 300:428] = small[::2, ::2]
    return {"one": one, "several": several, "none": np.zeros_like(one)}


def test_equals_the_package(example: dict[str, ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    networks = example["facenet"].load().MTCNN(keep_all=True)
    monkeypatch.setattr(sys.modules["facenet_pytorch.models.utils.detect_face"], "batched_nms", suppress)
    cascade = example["cascade"].Cascade(networks.pnet, networks.rnet, networks.onet).eval()
    file = tmp_path / "mtcnn.onnx"
    example["main"].export(cascade, photos()["one"], file)
    counts = {}
    for session in (polyop.session(file), ort.InferenceSession(file)):
        for name, photo in photos().items():
            _, boxes, scores, labels, points = session.run(None, {"photo": photo[None]})
            counts[name] = len(boxes)
            assert labels.tolist() == [0] * len(boxes)
            if name == "none":  # the package cannot: it concatenates no crops
                continue
            expected, expected_points = example["facenet"].detect(networks, photo)
            np.testing.assert_allclose(boxes, expected[:, :4], atol=1e-2)
            np.testing.assert_allclose(scores, expected[:, 4], atol=1e-4)
            np.testing.assert_allclose(points, expected_points, atol=1e-2)
    assert (counts["one"], counts["none"]) == (1, 0)
    assert counts["several"] >= 3


def test_suppression_relative_to_the_smaller_box(example: dict[str, ModuleType]) -> None:
    """A chain: the second box is suppressed by the first one, and therefore does not suppress the third one."""
    boxes = torch.tensor([[0.0, 0, 99, 99], [5, 5, 50, 150], [5, 99, 50, 149], [200, 0, 220, 20]])
    boxes[1, 3] = 120
    scores = torch.tensor([0.9, 0.8, 0.7, 0.95])
    assert example["cascade"].nested_nms(boxes, scores, 0.7).tolist() == [3, 0, 2]
    assert example["cascade"].nested_nms(boxes[1:], scores[1:], 0.4).tolist() == [2, 0]
