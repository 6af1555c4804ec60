# SPDX-License-Identifier: Apache-2.0
"""Exports a trained detector, with its suppression, and evaluates the files in every runtime."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import numpy as np
import onnxruntime as ort
import torch
from rich import box
from rich.table import Table
from torch import nn

import polyop
import polyop.portable
from deformable_detr import DeformableDetr, sample_by_grid
from polyop.attaching.precision import Detections, ious, mean_average_precision
from scenes import batch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from runtimes import Model, in_onnxruntime, in_openvino

BATCH = 10


@dataclass
class Result:
    runtime: str
    precision: float  # mean average precision at IoU 0.5
    agreement: float  # fraction of PyTorch's detections and of the runtime's that the other one has, too
    milliseconds: float  # of a scene; the median of batches


class Scenes:
    """Scenes that were not used in training."""

    def __init__(self, count: int) -> None:
        images, targets = batch(range(count))
        self.batches = [part.numpy() for part in images.split(BATCH)]
        self.truth = [
            Detections(boxes[labels >= 0].numpy(), labels[labels >= 0].numpy(), np.ones(int((labels >= 0).sum())))
            for boxes, labels in zip(targets.boxes, targets.labels, strict=True)
        ]

    def detect(self, model: Model) -> tuple[list[Detections], float]:
        """Returns the detections in each scene and the median milliseconds of a scene."""
        found, times = [], []
        model({"images": self.batches[0]})  # not timed: the first run allocates memory
        for images in self.batches:
            start = time.perf_counter()
            rows, labels = model({"images": images})
            times.append((time.perf_counter() - start) / len(images) * 1e3)
            found += [Detections(r[n >= 0, :4], n[n >= 0], r[n >= 0, 4]) for r, n in zip(rows, labels, strict=True)]
        return found, float(np.median(times))


def export(detector: nn.Module, scenes: Scenes, folder: Path, report: Callable[[str], None]) -> dict[str, Model]:
    """Writes the detector's files into the folder. Returns a model for each runtime; the first is PyTorch."""
    images = torch.from_numpy(scenes.batches[0][:2])
    file, portable, standard, optimized, half = (
        folder / name for name in ("detector.onnx", "portable.onnx", "standard.onnx", "optimized.onnx", "half.xml")
    )
    write(detector, images, file, report)
    polyop.portable.convert_file(file, portable)
    if isinstance(detector, DeformableDetr):
        with patch.object(polyop.functional, "ms_deform_attn", sample_by_grid):
            write(detector, images, standard, report)
        polyop.portable.convert_file(standard, standard, inlined=True)
    else:
        polyop.portable.convert_file(file, standard, inlined=True)
    replaced = polyop.optimize(standard, optimized, inputs={"images": images.numpy()}, all=True).replaced
    report(f"{optimized.name}: polyop optimize replaced {', '.join(f'{n} {name}' for name, n in replaced.items())}")
    subprocess.run(
        [sys.executable, "-m", "polyop", "convert", file, "-o", half, "--to", "openvino", "--fp16"],
        check=True,
        stdout=subprocess.DEVNULL,
    )

    def in_pytorch(feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
        with torch.no_grad():
            return [t.numpy() for t in detector(torch.from_numpy(feeds["images"]))]

    return {
        "PyTorch": in_pytorch,
        "ONNX Runtime": in_onnxruntime(file),
        "ONNX Runtime, portable file, without polyop": _run(ort.InferenceSession(portable, _quiet())),
        "ONNX Runtime, standard nodes, polyop optimize": in_onnxruntime(optimized),
        "ONNX Runtime, standard nodes, accelerator": _run(polyop.session(standard, accelerate=True, options=_quiet())),
        "OpenVINO": in_openvino(file),
        "OpenVINO, polyop convert --fp16": in_openvino(half),
    }


def write(detector: nn.Module, images: torch.Tensor, file: Path, report: Callable[[str], None]) -> None:
    written = polyop.export(
        detector, images, file, input_names=["images"], output_names=["detections", "labels"],
        dynamic={"images": {0: "batch"}}, atol=1e-2, verbose=False,
    )  # fmt: skip
    report(written.summary())


def _quiet() -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.log_severity_level = 3
    return options


def _run(session: ort.InferenceSession) -> Model:
    return lambda feeds: session.run(None, feeds)


def evaluate(models: dict[str, Model], scenes: Scenes) -> list[Result]:
    results: list[Result] = []
    reference: list[Detections] = []
    for runtime, model in models.items():
        found, milliseconds = scenes.detect(model)
        reference = reference or found
        precision = mean_average_precision(scenes.truth, found)
        results.append(Result(runtime, precision, agreement(reference, found), milliseconds))
    return results


def agreement(expected: list[Detections], found: list[Detections]) -> float:
    """Returns the fraction of the detections of both that the other one has, too: of the same class, with an IoU of at
    least 0.9 and a score that differs by less than 0.02. Returns 0 if there are none."""
    same = total = 0
    for one, other in [*zip(expected, found, strict=True), *zip(found, expected, strict=True)]:
        equal = (ious(one.boxes, other.boxes) >= 0.9) & (one.labels[:, None] == other.labels)
        equal &= np.abs(one.scores[:, None] - other.scores) < 0.02
        same, total = same + int(equal.any(1).sum()), total + len(equal)
    return same / max(total, 1)


def table(title: str, results: list[Result]) -> Table:
    found = Table("runtime", "mAP at IoU 0.5", "agrees with PyTorch", "ms a scene", title=title, box=box.SIMPLE)
    for r in results:
        found.add_row(r.runtime, f"{r.precision:.3f}", f"{r.agreement:.1%}", f"{r.milliseconds:.2f}")
    return found
