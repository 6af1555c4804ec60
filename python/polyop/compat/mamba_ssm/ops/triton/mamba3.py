# SPDX-License-Identifier: Apache-2.0
"""Functions of Mamba 3, which need Triton. They exist so that mamba_ssm 2.3, which imports them, loads without it."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["apply_rotary_qk_inference_fwd", "mamba3_siso_combined"]


def mamba3_siso_combined(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises an error."""
    raise NotImplementedError("mamba3_siso_combined: expected Triton and a GPU: polyop has no operators of Mamba 3")


def apply_rotary_qk_inference_fwd(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises an error."""
    raise NotImplementedError(
        "apply_rotary_qk_inference_fwd: expected Triton and a GPU: polyop has no operators of Mamba 3"
    )
