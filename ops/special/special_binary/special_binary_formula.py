# SPDX-License-Identifier: Apache-2.0
"""The functions in torch, and the elementary ones in ONNX by tracing torch's."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop._aten import elementary, special
from polyop.formulas import Call, NoBodyError

_SERIES = {
    "igamma": torch.special.gammainc,
    "igammac": torch.special.gammaincc,
    "zeta": torch.special.zeta,
    "hermite_h": torch.special.hermite_polynomial_h,
    "hermite_he": torch.special.hermite_polynomial_he,
    "laguerre": torch.special.laguerre_polynomial_l,
    "legendre": torch.special.legendre_polynomial_p,
}
_ELEMENTARY = (
    elementary.hypot_formula, elementary.nextafter_formula, elementary.copysign_formula, torch.fmod,
    elementary.logaddexp_formula, elementary.xlogy_formula, elementary.atan2_formula,
    *(special.chebyshev_formula(kind) for kind in "tuvw"),
)  # fmt: skip


def formula(a: Tensor, b: Tensor, *, function: str, variant: int) -> Tensor:
    return _ELEMENTARY[variant](a, b) if function == "elementary" else _SERIES[function](a, b)


def body(call: Call, *, function: str, variant: int) -> str | None:
    if function != "elementary":
        raise NoBodyError("series whose number of terms depends on the elements have no exact form in ONNX")
    return "y = Mod <fmod = 1> (a, b)" if variant == 3 else None


def example(call: Call, *, function: str, variant: int) -> tuple[Tensor, Tensor]:
    return torch.full([2] * call.rank(0), 0.5), torch.full([2] * call.rank(0), 0.25)
