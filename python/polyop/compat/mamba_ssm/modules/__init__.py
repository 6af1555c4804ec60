# SPDX-License-Identifier: Apache-2.0
"""The layers of mamba_ssm.modules."""

from polyop.compat.mamba_ssm.modules import mamba2, mamba_simple

__all__ = ["mamba2", "mamba_simple"]
