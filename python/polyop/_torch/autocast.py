# SPDX-License-Identifier: Apache-2.0
"""The operators under `torch.autocast`: floating-point inputs become float32, as in torchvision and MMCV.

Boxes, coordinates and features may then have different types. The results are float32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from polyop._torch.operators import Operator

_KEYS = {"AutocastCPU": torch._C.DispatchKey.AutocastCPU, "AutocastCUDA": torch._C.DispatchKey.AutocastCUDA}


def _cast(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.float() if value.is_floating_point() and value.dtype != torch.float64 else value
    return [_cast(item) for item in value] if isinstance(value, list | tuple) else value


def register_autocast(operator: Operator) -> None:
    """Registers the operator's autocast rule. torch.library.register_autocast takes no operators with attributes."""
    overload = operator.overload

    def register(key: str) -> None:
        excluded = torch._C.DispatchKeySet(_KEYS[key])

        def call(*args: Any, **attributes: Any) -> Any:
            with torch._C._ExcludeDispatchKeyGuard(excluded):
                return overload(*_cast(args), **attributes)

        operator.register(call, key)

    for key in _KEYS:
        register(key)
