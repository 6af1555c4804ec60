# SPDX-License-Identifier: Apache-2.0
"""The functions behind `mmcv.ops.get_compiler_version` and `get_compiling_cuda_version`."""

from __future__ import annotations

import torch

from polyop.compat.mmcv_ext._registry import provides


@provides()
def get_compiler_version() -> str:
    from polyop import __version__

    return f"polyop {__version__}"


@provides()
def get_compiling_cuda_version() -> str:
    return torch.version.cuda or "not available"
