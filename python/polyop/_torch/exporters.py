# SPDX-License-Identifier: Apache-2.0
"""Registers polyop's operators with PyTorch's ONNX exporters when torch.onnx is first imported.

The exporters take a second to import, and most programs export nothing.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module

from polyop._base.after_import import after_import

_EXPORTERS = "torch.onnx"


def tell_exporters() -> None:
    """Registers the operators with the exporters: now if they are imported, else when they are."""
    if _EXPORTERS in sys.modules:
        import_module("polyop._torch.onnx_operators")
    else:
        after_import({_EXPORTERS: _register})


def _register(_: object) -> None:
    # Operators that do not load raise their error where they are used, and not where a program imports torch.onnx.
    with suppress(ImportError, OSError):
        import_module("polyop._torch.onnx_operators")
