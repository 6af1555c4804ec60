# SPDX-License-Identifier: Apache-2.0
"""The package pyg_lib, with its names and arguments, on polyop's searches and PyTorch's operators.

`polyop.compat.install("pyg_lib")` makes `import pyg_lib` find it, and registers torch.ops.pyg. PyTorch Geometric 2.8
and newer call both. `pyg_lib.partition` (METIS) is missing: PyTorch Geometric says so where it needs it.
"""

from polyop.compat.pyg_lib import library, ops, sampler
from polyop.compat.pyg_lib.library import cuda_version

__version__ = "0.9.0"  # whose functions these are

__all__ = ["__version__", "cuda_version", "ops", "sampler"]

library.register()
