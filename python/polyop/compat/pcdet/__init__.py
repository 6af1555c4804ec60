# SPDX-License-Identifier: Apache-2.0
"""The compiled parts of OpenPCDet, `pcdet.ops.*`, argument for argument: functions write into outputs that the caller
allocates. A box is (x, y, z, dx, dy, dz, heading) with its centre at (x, y, z).

On a machine without CUDA, OpenPCDet's own Python code would still allocate on the GPU. `watch` makes it use the CPU.
"""

from __future__ import annotations

from polyop.compat._on_cpu import watch

__all__ = ["watch"]
