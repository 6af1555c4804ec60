# SPDX-License-Identifier: Apache-2.0
"""The package causal_conv1d, with its names and arguments, on polyop's operator, also on the CPU.

`polyop.compat.install("causal_conv1d")` makes `import causal_conv1d` find it.
"""

from polyop.compat.causal_conv1d.causal_conv1d_interface import causal_conv1d_fn, causal_conv1d_update

__version__ = "1.6.1"  # whose functions these are

__all__ = ["__version__", "causal_conv1d_fn", "causal_conv1d_update"]
