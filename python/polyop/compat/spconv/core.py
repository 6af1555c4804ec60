# SPDX-License-Identifier: Apache-2.0
"""`spconv.core`: names of algorithms, which select no other code here."""

from __future__ import annotations

from enum import Enum

__all__ = ["AlgoHint", "ConvAlgo"]


class ConvAlgo(Enum):
    """Results do not depend on it, but for maximum pooling: Native never returns less than 0."""

    Native = 0
    MaskImplicitGemm = 1
    MaskSplitImplicitGemm = 2


class AlgoHint(Enum):
    NoHint = 0
    Fowrard = 1  # as spconv spells it
    BackwardInput = 2
    BackwardWeight = 4
