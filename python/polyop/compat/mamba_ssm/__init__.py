"""The functions of the package mamba_ssm that Mamba's layers call, with their names and arguments, also on the CPU.

`polyop.compat.install("mamba_ssm")` makes `import mamba_ssm` find it. Its layers and models are not here.
"""

from polyop.compat.mamba_ssm import ops
from polyop.compat.mamba_ssm.ops.selective_scan_interface import mamba_inner_fn, selective_scan_fn
from polyop.compat.mamba_ssm.ops.triton.selective_state_update import selective_state_update

__version__ = "1.2.2"  # below 2: transformers then does not expect the functions of Mamba 2

__all__ = ["__version__", "mamba_inner_fn", "ops", "selective_scan_fn", "selective_state_update"]
