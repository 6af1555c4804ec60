# SPDX-License-Identifier: Apache-2.0
"""Exports Deformable DETR and RT-DETR of Hugging Face transformers, with random weights, with and without polyop's
deformable attention. Runs them in ONNX Runtime or OpenVINO, compares the results with PyTorch's, and times them.

python examples/real_models/main.py [--runtime onnxruntime|openvino] [--size 640] [--layers 3] [--threads 2]
                                    [--rounds 15]
"""

from __future__ import annotations

import argparse
import copy
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from rich import box
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from transformers import (
    DeformableDetrConfig,
    DeformableDetrForObjectDetection,
    ResNetConfig,
    RTDetrConfig,
    RTDetrForObjectDetection,
    RTDetrResNetConfig,
)

import polyop
from polyop.compat.transformers import use_polyop

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from runtimes import Model, in_onnxruntime, in_openvino

DEPTHS, WIDTHS = [2, 2, 2, 2], [64, 128, 256, 512]  # ResNet-18


class Detector(nn.Module):
    """Image in, logits and boxes out."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, pixel_values: Tensor) -> tuple[Tensor, Tensor]:
        result = self.model(pixel_values=pixel_values)
        return result.logits, result.pred_boxes


def deformable_detr(layers: int, queries: int = 300) -> Detector:
    backbone = ResNetConfig(
        depths=DEPTHS,
        hidden_sizes=WIDTHS,
        layer_type="basic",
        embedding_size=64,
        out_features=["stage2", "stage3", "stage4"],
    )
    config = DeformableDetrConfig(
        backbone_config=backbone, use_timm_backbone=False, use_pretrained_backbone=False, backbone=None,
        num_queries=queries, encoder_layers=layers, decoder_layers=layers, num_feature_levels=4,
    )  # fmt: skip
    return Detector(DeformableDetrForObjectDetection(config).eval())


def rt_detr(layers: int, queries: int = 100) -> Detector:
    backbone = RTDetrResNetConfig(
        depths=DEPTHS,
        hidden_sizes=WIDTHS,
        layer_type="basic",
        embedding_size=64,
        out_features=["stage2", "stage3", "stage4"],
    )
    config = RTDetrConfig(
        backbone_config=backbone,
        encoder_in_channels=WIDTHS[1:],
        num_queries=queries,
        decoder_layers=layers,
        use_pretrained_backbone=False,
        backbone=None,
    )
    return Detector(RTDetrForObjectDetection(config).eval())


def enliven(detector: Detector, image: Tensor) -> None:
    """Initializes random weights that preserve the scale of signals, and normalization statistics that match them."""
    for layer in detector.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight)
        elif isinstance(layer, nn.Linear):
            nn.init.xavier_normal_(layer.weight)
        elif isinstance(layer, nn.BatchNorm2d):
            layer.momentum = None  # running statistics are plain averages
            layer.train()
    with torch.no_grad():
        for _ in range(2):
            detector(image)
    detector.eval()


def chooses_clearly(detector: Detector, image: Tensor) -> bool:
    """Returns whether the scores of RT-DETR's queries, the best positions of an image, differ by more than rounding.
    Otherwise their order, and all results, would differ between runtimes."""
    with torch.no_grad():
        result = detector.model.model(pixel_values=image)
    scores = getattr(result, "enc_outputs_class", None)
    if scores is None or not isinstance(detector.model, RTDetrForObjectDetection):
        return True
    best = scores.amax(-1).topk(result.last_hidden_state.shape[1] + 1).values
    return bool((best[:, :-1] - best[:, 1:]).min() > 1e-4)


def make_one(make: Callable[[int], Detector], layers: int, image: Tensor) -> Detector:
    for seed in range(100):
        torch.manual_seed(seed)
        detector = make(layers)
        enliven(detector, image)
        if chooses_clearly(detector, image):
            return detector
    raise SystemExit("no seed gives a model whose choice of queries is clear")


MODELS = {"Deformable DETR": deformable_detr, "RT-DETR": rt_detr}
RUNTIMES = {"onnxruntime": in_onnxruntime, "openvino": in_openvino}
RTOL, ATOL = 1e-2, 2e-3


def export(detector: Detector, image: Tensor, folder: Path, name: str, rival: bool) -> list[Path]:
    """Writes a file with polyop's nodes and, with `rival`, one of standard nodes. Compares both with PyTorch."""
    stem = name.lower().replace(" ", "_")
    ours = copy.deepcopy(detector)
    use_polyop(ours.model)
    exported = [(ours, folder / f"{stem}_polyop.onnx"), (detector, folder / f"{stem}_standard.onnx")][
        : 2 if rival else 1
    ]
    for model, path in exported:
        polyop.export(
            model, image, path, exporter="dynamo", input_names=["pixels"], output_names=["logits", "boxes"],
            rtol=RTOL, atol=ATOL,
        )  # fmt: skip
    return [path for _, path in exported]


def compare(detector: Detector, image: Tensor, models: list[Model]) -> float:
    """Returns the largest difference from PyTorch. Raises AssertionError if it exceeds the tolerance."""
    with torch.no_grad():
        expected = [t.numpy() for t in detector(image)]
    largest = 0.0
    for model in models:
        for got, want in zip(model({"pixels": image.numpy()}), expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=RTOL, atol=ATOL)
            largest = max(largest, float(np.abs(got - want).max()))
    return largest


def interleaved(models: list[Model], feeds: dict[str, np.ndarray], rounds: int) -> list[list[float]]:
    """Returns the milliseconds of each model's runs, interleaved, after a warm-up."""
    times: list[list[float]] = [[] for _ in models]
    for i in range(rounds + 1):
        for of_model, model in zip(times, models, strict=True):
            model(feeds)
            start = time.perf_counter()
            model(feeds)
            if i:
                of_model.append((time.perf_counter() - start) * 1e3)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runtime", choices=RUNTIMES, default="onnxruntime")
    parser.add_argument("--size", type=int, default=640, help="height and width of the image")
    parser.add_argument(
        "--layers", type=int, default=3, help="layers of the encoder (if it has deformable ones) and of the decoder"
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15, help="rounds of timing; 0: only compare with PyTorch")
    options = parser.parse_args()
    torch.manual_seed(0)
    image = torch.rand(1, 3, options.size, options.size)
    table = Table(
        "model", "with polyop, min / median ms", "standard nodes, min / median ms", "times as fast", box=box.SIMPLE
    )
    with tempfile.TemporaryDirectory() as folder:
        for name, make in MODELS.items():
            detector = make_one(make, options.layers, image)
            paths = export(detector, image, Path(folder), name, rival=options.rounds > 0)
            models = [RUNTIMES[options.runtime](path, options.threads) for path in paths]
            print(f"{name} in {options.runtime}: PyTorch's numbers to {compare(detector, image, models):.1e}")
            if not options.rounds:
                continue
            times = interleaved(models, {"pixels": image.numpy()}, options.rounds)
            ours, theirs = (f"{min(t):.1f} / {np.median(t):.1f}" for t in times)
            table.add_row(name, ours, theirs, f"{np.median(times[1]) / np.median(times[0]):.2f}")
    if options.rounds:
        Console(width=120).print(table)


if __name__ == "__main__":
    main()
