# SPDX-License-Identifier: Apache-2.0
"""What a layer keeps between the tokens of a generated text."""

from __future__ import annotations

import math
from typing import Any, cast

import torch
from torch import Tensor, nn

__all__ = ["WithStates", "delta_bias"]


def delta_bias(count: int, smallest: float, largest: float, floor: float, factory: dict[str, Any]) -> Tensor:
    """Returns biases whose softplus is distributed log-uniformly between two sizes of steps, and at least `floor`."""
    span = math.log(largest) - math.log(smallest)
    steps = torch.exp(torch.rand(count, **factory) * span + math.log(smallest)).clamp(min=floor)
    return steps + torch.log(-torch.expm1(-steps))


class WithStates(nn.Module):
    """A layer with the state of its convolution and of its scan."""

    layer_idx: int | None

    def allocate_inference_cache(
        self, batch_size: int, max_seqlen: int, dtype: torch.dtype | None = None, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Returns both states for the start of a text."""
        raise NotImplementedError

    def _states(self, inference_params: Any, batch: int) -> tuple[Tensor, Tensor]:
        if self.layer_idx is None:
            raise ValueError(f"{type(self).__name__}: layer_idx: expected a number, because inference_params are given")
        known = inference_params.key_value_memory_dict
        if self.layer_idx not in known:
            known[self.layer_idx] = self.allocate_inference_cache(batch, 0)
        return cast(tuple[Tensor, Tensor], known[self.layer_idx])

    @staticmethod
    def _keep(state: Tensor, x: Tensor) -> None:
        """Writes the last columns of x [N, C, L] into the convolution's state [N, C, K]. Missing ones are 0."""
        state.copy_(nn.functional.pad(x, (state.shape[2] - x.shape[2], 0)))
