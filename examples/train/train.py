# SPDX-License-Identifier: Apache-2.0
"""Trains a detector on scenes that are rendered as it goes: no scene is used twice."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from scenes import batch

FIRST_TRAINING_SEED = 1_000_000  # scenes of smaller seeds are for evaluation
REPORTS = 10


@dataclass
class Training:
    losses: list[float]  # of each step
    seconds: float

    def ends(self) -> tuple[float, float]:
        """Returns the mean losses of the first and of the last tenth."""
        count = max(len(self.losses) // 10, 1)
        return sum(self.losses[:count]) / count, sum(self.losses[-count:]) / count


def train(
    make: Callable[[], nn.Module], steps: int, batch_size: int, rate: float, report: Callable[[str], None]
) -> tuple[nn.Module, Training]:
    """Returns the trained detector in evaluation mode."""
    torch.manual_seed(0)
    detector = make().train()
    optimizer = torch.optim.AdamW(detector.parameters(), lr=rate, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, steps, pct_start=0.1)
    losses, start = [], time.perf_counter()
    for step in range(steps):
        first = FIRST_TRAINING_SEED + step * batch_size
        loss = detector.loss(*batch(range(first, first + batch_size)))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(detector.parameters(), 5.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        if (step + 1) % max(steps // REPORTS, 1) == 0:
            report(f"step {step + 1} of {steps}, loss {losses[-1]:.2f}, {time.perf_counter() - start:.0f} s")
    return detector.eval(), Training(losses, time.perf_counter() - start)
