# SPDX-License-Identifier: Apache-2.0
"""The package mamba_ssm: the functions that Mamba's layers call and the layers, with their names and arguments, also on
the CPU.

`polyop.compat.install("mamba_ssm")` makes `import mamba_ssm` find it, if mamba_ssm is not installed. An installed one
keeps its own layers and models, and finds only the functions that need CUDA or Triton here: `install`.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import warnings
from collections.abc import Callable, Iterable

from polyop.compat.mamba_ssm import ops
from polyop.compat.mamba_ssm.modules.mamba2 import Mamba2
from polyop.compat.mamba_ssm.modules.mamba_simple import Mamba
from polyop.compat.mamba_ssm.ops.selective_scan_interface import mamba_inner_fn, selective_scan_fn
from polyop.compat.mamba_ssm.ops.triton.selective_state_update import selective_state_update

__version__ = "1.2.2"  # below 2: transformers then does not expect the functions of Mamba 2

__all__ = [
    "Mamba", "Mamba2", "__version__", "install", "mamba_inner_fn", "ops", "selective_scan_fn",
    "selective_state_update",
]  # fmt: skip

_OURS = "polyop.compat.mamba_ssm"
_FUNCTIONS = (
    "ops.selective_scan_interface",
    "ops.triton.layer_norm",
    "ops.triton.layernorm_gated",
    "ops.triton.selective_state_update",
    "ops.triton.ssd_combined",
)
_KERNELS = {
    **{name: name for name in _FUNCTIONS},
    "ops.triton.mamba3.mamba3_siso_combined": "ops.triton.mamba3",
    "ops.triton.mamba3.mamba3_mimo_rotary_step": "ops.triton.mamba3",
}
"""Modules of an installed mamba_ssm that need CUDA or Triton, and those here that replace them."""
_WHOLE = ("modules", "modules.mamba2", "modules.mamba_simple", "ops", "ops.triton", *_FUNCTIONS)


def __getattr__(name: str) -> object:
    if name in ("Mamba3", "MambaLMHeadModel"):
        raise ImportError(
            f"polyop's mamba_ssm has no {name}: install mamba_ssm's own Python code without its CUDA extension "
            "(MAMBA_SKIP_CUDA_BUILD=TRUE pip install --no-deps --no-build-isolation mamba-ssm), which polyop completes"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _register(parts: Iterable[str]) -> None:
    for part in parts:
        sys.modules[f"mamba_ssm.{part}"] = importlib.import_module(f"{_OURS}.{_KERNELS.get(part, part)}")


def _forget() -> None:
    for name in [name for name in sys.modules if name == "mamba_ssm" or name.startswith("mamba_ssm.")]:
        del sys.modules[name]


def _complete() -> None:
    """Imports the installed mamba_ssm with polyop's functions in place of those that need CUDA or Triton."""
    _forget()
    _register(_KERNELS)
    importlib.import_module("mamba_ssm")
    for part in _KERNELS:
        parent, _, name = f"mamba_ssm.{part}".rpartition(".")
        if parent in sys.modules:
            setattr(sys.modules[parent], name, sys.modules[f"mamba_ssm.{part}"])


def install(install_also: Callable[[str], object]) -> None:
    """Makes `import mamba_ssm` find the installed package, completed, or this one if there is none.

    install_also: installs a module that the package imports.

    If the installed package's Python code does not load either, this one replaces it, and a warning says why.
    """
    own = sys.modules.pop("mamba_ssm", None)
    is_ours = own is not None and own.__name__ == _OURS
    if not is_ours and importlib.util.find_spec("mamba_ssm") is not None:
        for name in ("selective_scan_cuda", "causal_conv1d", "causal_conv1d_cuda"):  # which it imports
            install_also(name)
        try:
            _complete()
            return
        except (ImportError, OSError, RuntimeError, AttributeError) as error:
            warnings.warn(
                f"mamba_ssm: polyop replaces the installed package, without its models, because that does not load: {error}",
                stacklevel=2,
            )
    _forget()
    sys.modules["mamba_ssm"] = importlib.import_module(_OURS)
    _register(_WHOLE)
