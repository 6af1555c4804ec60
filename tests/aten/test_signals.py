# SPDX-License-Identifier: Apache-2.0
"""Windows, phases and spectra of signals."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

import polyop
from tests.support.exported_calls import check, exported, normal
from tests.support.pytorch_cases import Call


def _windows(x: torch.Tensor) -> Any:
    named = [getattr(torch, f"{name}_window") for name in ("hann", "hamming", "blackman", "bartlett", "kaiser")]
    windows = [window(size, periodic) for window in named for size in (1, 9) for periodic in (True, False)]
    windows += [torch.kaiser_window(9, True, beta=3.0, dtype=torch.float64), torch.hamming_window(9, True, 0.6)]
    windows += [torch.hamming_window(9, True, alpha=0.6, beta=0.3, dtype=torch.float16)]
    return *windows, *(x.unfold(-1, 9, 4) * window(9) for window in named)


def test_windows_of_a_constant_length() -> None:
    check(_windows, normal(2, 32), others=[(normal(1, 50),)], dynamic=[(0, 1)], rtol=1e-7, atol=0)


def test_a_phase_is_summed_in_double() -> None:
    """As PyTorch sums it: in float32 the phase is wrong by 0.1 after a second, and noise after ten."""
    run = exported(lambda x: torch.sin(2 * torch.pi * (x / 16000).cumsum(1)), torch.rand(1, 1600), dynamic=[(1,)])
    frequency = torch.full((1, 160_000), 220.5)
    exact = torch.sin(2 * torch.pi * (frequency / 16000).double().cumsum(1))
    np.testing.assert_allclose(run(frequency)[0], exact.numpy(), 0, 0.01)


def _counted(x: torch.Tensor, mask: torch.Tensor) -> Any:
    ones = torch.ones_like(x).cumsum(1), (1 - mask[:, None].float()).cumsum(2)
    return mask.cumsum(1, dtype=torch.float32), (~mask).float().unsqueeze(1).cumsum(2), *ones


def test_integers_are_summed_in_single() -> None:
    """Their sums are exact, and TensorRT has no float64."""
    x, mask = normal(2, 5), normal(2, 5) > 0
    with polyop.translations():
        program = torch.onnx.export(Call(_counted, ((x, mask), {})), (x, mask), dynamo=True, verbose=False)
    assert program is not None
    sums = [node for node in program.model.graph if node.op_type == "CumSum"]
    assert sums
    assert {node.inputs[0].dtype.name for node in sums} == {"FLOAT"}


def _frequencies(x: torch.Tensor) -> Any:
    n = x.shape[0]
    named = (torch.fft.fftfreq, torch.fft.rfftfreq)
    return [f(n, d, dtype=dtype) for f in named for d in (1.0, 1 / 16000) for dtype in (None, torch.float64)]


def test_frequencies_of_a_dynamic_length() -> None:
    others = [(normal(size),) for size in (1, 2, 15, 400)]
    check(_frequencies, normal(8), others=others, dynamic=[(0,)], rtol=1e-6, atol=0)
