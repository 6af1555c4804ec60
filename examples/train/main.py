# SPDX-License-Identifier: Apache-2.0
"""Trains two small detectors on synthetic scenes with polyop's operators: a two-stage one (RoIAlign, NMS) and a
Deformable DETR. Exports each to one file with its suppression, and compares the mean average precision of all runtimes.

python examples/train/main.py [FOLDER] [--detector two-stage|deformable-detr] [--steps N] [--scenes N] [--threads N]

Writes the weights and the files of each detector, results.json and detections.png into FOLDER. Takes a few minutes on
two cores.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from torch import nn

from deformable_detr import DeformableDetr
from draw import draw
from evaluate import Scenes, evaluate, export, table
from polyop.attaching.precision import Detections
from train import train
from two_stage import TwoStageDetector

BATCH = 16
DRAWN = 7  # the scene of the image


@dataclass(frozen=True)
class Recipe:
    make: Callable[[], nn.Module]
    steps: int
    rate: float


RECIPES = {
    "two-stage": Recipe(TwoStageDetector, 600, 2e-3),
    "deformable-detr": Recipe(DeformableDetr, 800, 2e-3),
}


def run(name: str, steps: int, scenes: Scenes, folder: Path) -> tuple[nn.Module, dict[str, Any]]:
    """Trains, exports and evaluates a detector. Returns it and its results."""

    def report(text: str) -> None:
        print(f"{name}: {text}", flush=True)

    recipe = RECIPES[name]
    report(f"training on {steps} batches of {BATCH} scenes")
    detector, training = train(recipe.make, steps, BATCH, recipe.rate, report)
    first, last = training.ends()
    report(f"loss {first:.2f} -> {last:.2f} in {training.seconds:.0f} s")
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(detector.state_dict(), folder / "detector.pt")
    results = evaluate(export(detector, scenes, folder, report), scenes)
    Console(width=120).print(table(f"{name}: {len(scenes.truth)} scenes", results))
    return detector, {"loss": [first, last], "seconds": training.seconds, "results": [asdict(r) for r in results]}


def panels(name: str, detector: nn.Module, image: np.ndarray) -> list[tuple[str, np.ndarray, Detections]]:
    """Returns the detector's panels: its detections and, for the two-stage one, those before the last suppression."""
    images = torch.from_numpy(image)[None]
    found = []
    with torch.no_grad():
        if isinstance(detector, TwoStageDetector):
            boxes, scores = (t[0].numpy() for t in detector.candidates(images))
            candidates = Detections(boxes, scores.argmax(1), scores.max(1))
            found.append((f"{name}, before the last suppression", image, candidates))
        rows, labels = (t[0].numpy() for t in detector(images))
    used = labels >= 0
    return [*found, (name, image, Detections(rows[used, :4], labels[used], rows[used, 4]))]


def main(options: argparse.Namespace, folder: Path) -> None:
    torch.set_num_threads(options.threads or torch.get_num_threads())
    scenes = Scenes(options.scenes)
    results, drawn = {}, []
    for name in [options.detector] if options.detector else RECIPES:
        detector, results[name] = run(name, options.steps or RECIPES[name].steps, scenes, folder / name)
        drawn += panels(name, detector, scenes.batches[0][DRAWN])
    (folder / "results.json").write_text(json.dumps(results, indent=2) + "\n")
    draw(folder / "detections.png", drawn)
    print(f"image: {folder / 'detections.png'}")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, metavar="FOLDER")
    parser.add_argument("--detector", choices=RECIPES, help="only this one")
    parser.add_argument("--steps", type=int, default=0, help="batches to train on (default: enough for mAP 0.9)")
    parser.add_argument("--scenes", type=int, default=200, help="scenes to evaluate; at least 10")
    parser.add_argument("--threads", type=int, default=0, help="of training (default: all cores)")
    options = parser.parse_args()
    if options.scenes < 10 or options.steps < 0 or options.threads < 0:
        parser.error("expected --scenes of at least 10, and --steps and --threads of at least 0")
    return options


if __name__ == "__main__":
    arguments = parse()
    if arguments.folder:
        main(arguments, arguments.folder)
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(arguments, Path(temporary))
