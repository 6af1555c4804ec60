# SPDX-License-Identifier: Apache-2.0
"""`spconv.pytorch.ops`: sizes of results. Its kernels are polyop's operators: get_indice_pairs, implicit_gemm."""

from __future__ import annotations

from collections.abc import Sequence

from polyop.compat.spconv.core import ConvAlgo

__all__ = ["ConvAlgo", "get_conv_output_size", "get_deconv_output_size"]


def get_conv_output_size(
    input_size: Sequence[int],
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> list[int]:
    """A kernel size of -1 covers the whole dimension."""
    parts = zip(input_size, kernel_size, stride, padding, dilation, strict=True)
    return [1 if k == -1 else (n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in parts]


def get_deconv_output_size(
    input_size: Sequence[int],
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    output_padding: Sequence[int],
) -> list[int]:
    del dilation
    parts = zip(input_size, kernel_size, stride, padding, output_padding, strict=True)
    return [(n - 1) * s - 2 * p + k + extra for n, k, s, p, extra in parts]
