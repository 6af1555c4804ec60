"""Functions of mamba_ssm.ops.triton."""

from polyop.compat.mamba_ssm.ops.triton import selective_state_update, ssd_combined

__all__ = ["selective_state_update", "ssd_combined"]
