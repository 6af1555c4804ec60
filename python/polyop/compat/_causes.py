# SPDX-License-Identifier: Apache-2.0
"""Why the compiled part of a package does not load: the versions of PyTorch, CUDA, Python and glibc, in words."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Callable
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import PackageNotFoundError, packages_distributions, requires, version
from importlib.util import find_spec
from pathlib import Path
from runpy import run_path
from typing import Any

__all__ = ["cause", "version_of"]

_TORCH_SYMBOL = re.compile(r"c10|N2at|torch|THP|caffe2")
_EXTENSION = re.compile(r"\.(?:cpython-(\d)(\d+)\w*-[\w-]+|cp(\d)(\d+)-[\w-]+)\.(?:so|pyd)$")


def version_of(module: str) -> str | None:
    """Returns the version of the distribution that a module is from, without importing it, or None."""
    name = _distribution(module)
    return version(name) if name else None


def cause(module: str, error: str) -> str | None:
    """Returns the reason that the message of a failed import has, or None if the message is all that is known."""
    for pattern, explain in _RULES:
        if (match := re.search(pattern, error)) is not None:
            return explain(module, match)
    return None


def _distribution(module: str) -> str | None:
    top = module.partition(".")[0]
    names = packages_distributions().get(top, [])
    if names:
        return names[0]
    try:
        version(top)
    except PackageNotFoundError:
        return None
    return top


def _torch_version() -> str:
    return str(_torch().get("__version__", "not installed"))


def _torch() -> dict[str, Any]:
    """Returns the contents of torch/version.py. Importing torch takes seconds."""
    spec = find_spec("torch")
    folder = next(iter(spec.submodule_search_locations or ()), None) if spec is not None else None
    file = Path(folder) / "version.py" if folder else None
    return run_path(str(file)) if file is not None and file.is_file() else {}


def _built_for_torch(module: str) -> str:
    """Returns the PyTorch that the distribution names, in its requirements or in its version ("2.1.2+pt25cu121")."""
    name = _distribution(module)
    if name is None:
        return "another PyTorch"
    for requirement in requires(name) or ():
        if (match := re.match(r"torch\s*\(?==\s*([\d.]+)", requirement)) is not None:
            return f"PyTorch {match[1]}"
    if (match := re.search(r"\+pt(\d)(\d+)", version(name))) is not None:
        return f"PyTorch {match[1]}.{match[2]}"
    return "another PyTorch"


def _glibc(_: str, match: re.Match[str]) -> str:
    return f"was built for glibc {match[1]} or newer, and this system has {platform.libc_ver()[1] or 'another libc'}"


def _cxx(_: str, match: re.Match[str]) -> str:
    return f"was built with a newer C++ library: it needs {match[1]}"


def _cuda(module: str, match: re.Match[str]) -> str:
    cuda = _torch().get("cuda")
    here = f"CUDA {cuda}" if cuda else "no CUDA"
    number = f" {match[2]}" if match[2] else ""
    return f"was built for CUDA{number}, and PyTorch {_torch_version()} here has {here}"


def _symbol(module: str, match: re.Match[str]) -> str:
    if match[1].startswith(("Py", "_Py")):
        return f"was built for another Python than {platform.python_version()}"
    if _TORCH_SYMBOL.search(match[1]):
        return f"was built for {_built_for_torch(module)}, and this is {_torch_version()}"
    return f"a library that it links to lacks {match[1]}"


def _no_operators(module: str, _: re.Match[str]) -> str:
    return f"was built for {_built_for_torch(module)}, and this is {_torch_version()}"


def _missing_module(module: str, match: re.Match[str]) -> str | None:
    missing = match[1]
    if missing != module and not module.startswith(f"{missing}."):
        return f"needs the package '{missing}', which is not installed"
    if "." not in module:
        return "is not installed"
    parent, _, name = module.rpartition(".")
    try:
        spec = find_spec(parent)
    except (ImportError, ValueError):
        spec = None
    loadable = {name + suffix for suffix in EXTENSION_SUFFIXES}
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        for file in sorted(Path(folder).glob(f"{name}.*")):
            tag = _EXTENSION.search(file.name)
            if tag is None or file.name in loadable:
                continue
            major, minor = (tag[1], tag[2]) if tag[1] else (tag[3], tag[4])
            if (int(major), int(minor)) == sys.version_info[:2]:
                return f"was built for another system: {file.name}"
            return f"was built for Python {major}.{minor}, and this is {platform.python_version()}"
    return "was not compiled"


def _processor(_: str, match: re.Match[str]) -> str:
    return f"was built for another processor than {platform.machine()}"


_RULES: tuple[tuple[str, Callable[[str, re.Match[str]], str | None]], ...] = (
    (r"version `GLIBC_([\d.]+)' not found", _glibc),
    (r"version `((?:GLIBCXX|CXXABI)_[\d.]+)' not found", _cxx),
    (r"(libcu\w+|libnv\w+|libcaffe2_nvrtc|lib(?:torch|c10)_cuda\w*)\.so(?:\.(\d+))?[.\d]*: cannot open", _cuda),
    (r"undefined symbol: (\w+)", _symbol),
    (r"Couldn't load custom C\+\+ ops|operator torchvision::nms does not exist", _no_operators),
    (r"No module named '([\w.]+)'", _missing_module),
    (r"cannot import name '\w+' from '([\w.]+)'", _missing_module),
    (r"invalid ELF header|wrong ELF class|Exec format error", _processor),
)
