# SPDX-License-Identifier: Apache-2.0
"""The package spconv 2.3: sparse convolutions by polyop.sparse, on every device that polyop has kernels for."""

from __future__ import annotations

from polyop.compat.spconv import constants
from polyop.compat.spconv.core import AlgoHint, ConvAlgo

__version__ = "2.3.8"
SPCONV_VERSION_NUMBERS = [2, 3, 8]

__all__ = ["SPCONV_VERSION_NUMBERS", "AlgoHint", "ConvAlgo", "constants"]
