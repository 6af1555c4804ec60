# SPDX-License-Identifier: Apache-2.0
"""Functions of mamba_ssm.ops."""

from polyop.compat.mamba_ssm.ops import selective_scan_interface, triton

__all__ = ["selective_scan_interface", "triton"]
