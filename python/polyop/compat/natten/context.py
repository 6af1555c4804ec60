# SPDX-License-Identifier: Apache-2.0
"""Switches of natten's kernels, which have no effect here, and what natten can do."""

from __future__ import annotations

from collections.abc import Callable

import torch

_ON = {
    "fused_na": False,
    "gemm_na": True,
    "kv_parallelism_in_fused_na": False,
    "tf32_in_gemm_na": False,
    "tiled_na": True,
}


def _switch(name: str) -> tuple[Callable[..., None], Callable[[], bool]]:
    def use(mode: bool = True, **options: object) -> None:
        del options
        _ON[name] = mode

    def is_enabled() -> bool:
        return _ON[name]

    return use, is_enabled


use_fused_na, is_fused_na_enabled = use_fna, is_fna_enabled = _switch("fused_na")
use_gemm_na, is_gemm_na_enabled = _switch("gemm_na")
use_kv_parallelism_in_fused_na, is_kv_parallelism_in_fused_na_enabled = _switch("kv_parallelism_in_fused_na")
use_tf32_in_gemm_na, is_tf32_in_gemm_na_enabled = _switch("tf32_in_gemm_na")
use_tiled_na, is_tiled_na_enabled = _switch("tiled_na")


def enable_tf32() -> None:
    use_tf32_in_gemm_na(True)


def disable_tf32() -> None:
    use_tf32_in_gemm_na(False)


def enable_gemm_na() -> None:
    use_gemm_na(True)


def disable_gemm_na() -> None:
    use_gemm_na(False)


def enable_tiled_na() -> None:
    use_tiled_na(True)


def disable_tiled_na() -> None:
    use_tiled_na(False)


def use_deterministic_algorithms(mode: bool = True) -> None:
    """Sets PyTorch's switch, which covers what these functions call."""
    torch.use_deterministic_algorithms(mode)


def are_deterministic_algorithms_enabled() -> bool:
    return torch.are_deterministic_algorithms_enabled()


def has_cuda() -> bool:
    return torch.cuda.is_available()


def has_half(device_index: object = None) -> bool:
    del device_index
    return True


has_bfloat = has_fna = has_fused_na = has_half


def has_gemm(device_index: object = None) -> bool:
    """natten's kernels by matrix products, which are not here."""
    del device_index
    return False


has_tf32_gemm = has_fp32_gemm = has_fp64_gemm = has_gemm

__all__ = [name for name in globals() if name.startswith(("are_", "disable_", "enable_", "has_", "is_", "use_"))]
