# SPDX-License-Identifier: Apache-2.0
"""Trains SRCNN on a few photos in some minutes on a CPU, and evaluates it on an unseen photo.

python models/srcnn/train.py [--steps 8000] [--out srcnn.npz]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
import torch.nn.functional as F
from images import HELD_OUT, SCALES, TRAINING, enlarge, load, psnr, reduce
from model import WEIGHTS, Layers, save_weights
from rich.console import Console
from rich.progress import track
from rich.table import Table

PATCH = 64
BATCH = 12


def pairs() -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Returns (bicubic enlargement, original) of every training photo at every scale."""
    found = []
    for name in TRAINING:
        original = load(name)
        for scale in SCALES:
            pair = enlarge(reduce(original, scale), scale), original
            found.append(tuple(map(torch.from_numpy, pair)))
    return found


def batch(data: list[tuple[torch.Tensor, torch.Tensor]], rng: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns random patches, some of them mirrored or rotated."""
    blurred, sharp = [], []
    for _ in range(BATCH):
        pair = data[int(torch.randint(len(data), (1,), generator=rng))]
        top, left = (int(torch.randint(extent - PATCH + 1, (1,), generator=rng)) for extent in pair[0].shape[-2:])
        flip, turn = (int(torch.randint(2, (1,), generator=rng)) for _ in range(2))
        for image, into in zip(pair, (blurred, sharp), strict=True):
            patch = image[..., top : top + PATCH, left : left + PATCH]
            patch = patch.flip(-1) if flip else patch
            into.append(patch.transpose(-1, -2) if turn else patch)
    return torch.cat(blurred), torch.cat(sharp)


def train(steps: int) -> Layers:
    torch.manual_seed(0)
    rng = torch.Generator().manual_seed(0)
    layers = Layers()
    layers.start_as_identity()
    optimizer = torch.optim.Adam(layers.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-3, total_steps=steps)
    data = pairs()
    inside = (..., slice(6, -6), slice(6, -6))  # the part that the convolutions' zero padding does not reach
    for _ in track(range(steps), "Training SRCNN"):
        blurred, sharp = batch(data, rng)
        loss = F.mse_loss(layers(blurred)[inside], sharp[inside])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return layers.eval()


def judge(layers: Layers) -> Table:
    table = Table(title=f"PSNR on {HELD_OUT}, which was not trained on (luminance, dB)")
    for column in ("scale", "bicubic", "SRCNN", "gain"):
        table.add_column(column, justify="right")
    original = load(HELD_OUT)
    for scale in SCALES:
        bicubic = enlarge(reduce(original, scale), scale)
        with torch.no_grad():
            sharpened = layers(torch.from_numpy(bicubic)).numpy()
        border = round(scale) + 6
        a, b = psnr(bicubic, original, border), psnr(sharpened, original, border)
        table.add_row(f"{scale:g}", f"{a:.2f}", f"{b:.2f}", f"{b - a:+.2f}")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=8000, help="optimizer steps (8000 take about ten minutes)")
    parser.add_argument("--out", type=Path, default=WEIGHTS, help="where the weights go")
    arguments = parser.parse_args()
    layers = train(arguments.steps)
    save_weights(layers, arguments.out)
    Console().print(judge(layers))


if __name__ == "__main__":
    main()
