"""Functions of mamba_ssm.ops.triton."""

from polyop.compat.mamba_ssm.ops.triton import selective_state_update

__all__ = ["selective_state_update"]
