# SPDX-License-Identifier: Apache-2.0
"""The package natten: neighborhood attention, with its names and arguments, also on the CPU.

`polyop.compat.install("natten")` makes `import natten` find it.
"""

from polyop.compat.natten import context, functional, modules
from polyop.compat.natten.context import *  # noqa: F403 - the switches of 0.15 to 0.21
from polyop.compat.natten.functional import attention, merge_attentions, na1d, na2d, na3d
from polyop.compat.natten.modules import NeighborhoodAttention1D, NeighborhoodAttention2D, NeighborhoodAttention3D

__version__ = "0.21.0"  # whose functions these are, with the separate ones of 0.17 and before

__all__ = [
    "NeighborhoodAttention1D", "NeighborhoodAttention2D", "NeighborhoodAttention3D", "__version__", "attention",
    "context", "functional", "merge_attentions", "modules", "na1d", "na2d", "na3d",
]  # fmt: skip
