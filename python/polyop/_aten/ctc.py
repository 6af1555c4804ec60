# SPDX-License-Identifier: Apache-2.0
"""Connectionist temporal classification: the sum over all alignments, a step of the sequence after the other."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional


def _tensor(lengths: Any, like: Tensor) -> Tensor:
    if isinstance(lengths, Tensor):
        return lengths.reshape(-1).to(torch.int64)
    return torch.tensor(lengths, dtype=torch.int64, device=like.device).reshape(-1)


def _rows(targets: Tensor, lengths: Tensor) -> Tensor:
    """Returns the targets as a row for each sequence; those of the others follow where a row is shorter."""
    if targets.dim() == 2:
        return targets
    starts = lengths.cumsum(0) - lengths
    at = starts.unsqueeze(1) + torch.arange(targets.shape[0], device=targets.device)
    return targets.index_select(0, at.clamp(max=targets.shape[0] - 1).reshape(-1)).reshape(at.shape)


def _log_sum(terms: Tensor) -> Tensor:
    """Returns log(sum(exp)) of the first dimension, also where all terms are log(0)."""
    high = terms.amax(0)
    high = torch.where(high == -torch.inf, torch.zeros_like(high), high)
    return torch.log(torch.exp(terms - high).sum(0)) + high


def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0,
    reduction: str = "mean", zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    """Computes torch.nn.functional.ctc_loss. The number of steps must be fixed."""
    batched = log_probs.dim() == 3
    steps = log_probs if batched else log_probs.unsqueeze(1)
    given, lengths = _tensor(input_lengths, targets), _tensor(target_lengths, targets)
    rows = _rows(targets, lengths).to(torch.int64)
    # The labels with a blank before, between and after them.
    labels = functional.pad(torch.stack([torch.full_like(rows, blank), rows], 2).flatten(1), [0, 1], value=blank)
    states = torch.arange(labels.shape[1], device=labels.device)
    # A label may follow the one before it without a blank, unless they are equal.
    may_skip = (labels != blank) & (states >= 2) & (labels != functional.pad(labels, [2, 0])[:, :-2])
    never = torch.full(labels.shape, -torch.inf, dtype=steps.dtype, device=steps.device)
    alpha = torch.where(states < 2, steps[0].gather(1, labels), never)
    for step in range(1, steps.shape[0]):
        before = functional.pad(alpha, [2, 0], value=-torch.inf)
        skipped = torch.where(may_skip, before[:, :-2], never)
        after = _log_sum(torch.stack([alpha, before[:, 1:-1], skipped])) + steps[step].gather(1, labels)
        alpha = torch.where((given > step).unsqueeze(1), after, alpha)
    last = (2 * lengths).unsqueeze(1)
    label = torch.where(last > 0, alpha.gather(1, (last - 1).clamp(min=0)), never[:, :1])
    loss = -_log_sum(torch.stack([alpha.gather(1, last), label])).squeeze(1)
    if zero_infinity:
        loss = torch.where(loss == torch.inf, torch.zeros_like(loss), loss)
    if reduction == "mean":
        return (loss / lengths.clamp(min=1).to(loss.dtype)).mean()
    if reduction == "sum":
        return loss.sum()
    return loss if batched else loss.squeeze(0)
