# SPDX-License-Identifier: Apache-2.0
"""The package cumm: its arrays, which spconv's voxel generators take."""

from __future__ import annotations

from polyop.compat.cumm import tensorview

__all__ = ["tensorview"]
