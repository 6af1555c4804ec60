# SPDX-License-Identifier: Apache-2.0
"""facenet-pytorch's networks and its search for faces, from an installed package or from .deps/faces."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

import polyop

FOLDER = Path(__file__).resolve().parents[2] / ".deps" / "faces"
THRESHOLDS = [0.6, 0.7, 0.7]


def load() -> ModuleType:
    """Returns the module of MTCNN's networks. Where torchvision is missing, polyop's suppression takes its part: the
    package needs nothing else of torchvision to detect faces."""
    try:
        import torchvision  # noqa: F401
    except ImportError:
        names = ("torchvision", "torchvision.transforms", "torchvision.ops", "torchvision.ops.boxes")
        for name in names:
            sys.modules[name] = ModuleType(name)
        sys.modules["torchvision.transforms"].functional = None  # type: ignore[attr-defined]
        sys.modules["torchvision.ops.boxes"].batched_nms = _suppress  # type: ignore[attr-defined]
    if FOLDER.is_dir() and str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
    from facenet_pytorch.models import mtcnn

    return mtcnn


def _suppress(boxes: Tensor, scores: Tensor, images: Tensor, threshold: float) -> Tensor:
    """Suppresses the boxes of one photo."""
    return polyop.nms(boxes, scores, threshold)


def detect(networks: Any, photo: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the package's own results: the boxes and scores [K, 5], and the points [K, 5, 2]."""
    from facenet_pytorch.models.utils.detect_face import detect_face

    with torch.no_grad():
        boxes, points = detect_face(
            photo, 20, networks.pnet, networks.rnet, networks.onet, THRESHOLDS, 0.709, torch.device("cpu")
        )
    return boxes[0].astype(np.float32).reshape(-1, 5), points[0].astype(np.float32).reshape(-1, 5, 2)
