# SPDX-License-Identifier: Apache-2.0
"""Functions of mamba_ssm.ops.triton."""

from polyop.compat.mamba_ssm.ops.triton import layer_norm, layernorm_gated, selective_state_update, ssd_combined

__all__ = ["layer_norm", "layernorm_gated", "selective_state_update", "ssd_combined"]
