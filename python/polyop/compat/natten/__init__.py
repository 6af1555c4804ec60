"""The package natten: neighborhood attention, with its names and arguments, also on the CPU.

`polyop.compat.install("natten")` makes `import natten` find it.
"""

from polyop.compat.natten.functional import na1d, na2d, na3d
from polyop.compat.natten.modules import NeighborhoodAttention1D, NeighborhoodAttention2D, NeighborhoodAttention3D

__version__ = "0.21.0"  # whose functions these are, with the separate ones of 0.17 and before

__all__ = [
    "NeighborhoodAttention1D", "NeighborhoodAttention2D", "NeighborhoodAttention3D", "__version__", "na1d", "na2d", "na3d",
]  # fmt: skip
