# SPDX-License-Identifier: Apache-2.0
"""Writes deformable attention as a kernel of Hugging Face's package `kernels`, which loads it from the folder.

    python -m polyop.compat.hub_kernels FOLDER

The folder has the layout of a kernel repository: `build/VARIANT/` with the functions and the layer of
`kernels-community/deformable-detr`, a copy of polyop's Python package, and its library for PyTorch. The variant is that
of PyTorch's stable interface, so one folder serves PyTorch 2.10 and newer. Requires an empty or missing folder.
"""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import sys
from pathlib import Path

import polyop
from polyop._base.libraries import library_file, require_library
from polyop.errors import PolyopError

__all__ = ["write"]

VARIANT = f"torch-stable-abi210-cpu-{platform.machine()}-linux"
METADATA = {
    "id": "_deformable_detr_cpu_polyop",
    "name": "deformable-detr",
    "version": 1,
    "license": "Apache-2.0",
    "python-depends": [],
    "backend": {"type": "cpu"},
}
INIT = '''"""Multi-scale deformable attention, its gradient and its layer, for the CPU, by polyop {version}."""

import importlib.util
import sys
from pathlib import Path

if importlib.util.find_spec("polyop") is None:
    sys.path.append(str(Path(__file__).resolve().parent / "packages"))

from polyop.compat.ms_deform_attn import ms_deform_attn_backward, ms_deform_attn_forward

from . import layers

__all__ = ["layers", "ms_deform_attn_backward", "ms_deform_attn_forward"]
'''
LAYERS = '''"""The layer that transformers replaces."""

from polyop.compat.transformers import MultiScaleDeformableAttention

__all__ = ["MultiScaleDeformableAttention"]
'''


def write(folder: str | Path) -> Path:
    """Writes the kernel into the folder and returns the path of the variant.

    Raises PolyopError if the folder has files or the system is not Linux, and MissingLibraryError if this package lacks
    its library for PyTorch.
    """
    folder = Path(folder)
    if sys.platform != "linux":
        raise PolyopError(f"hub_kernels: expected Linux, got {sys.platform}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise PolyopError(f"{folder}: expected an empty or missing folder")
    library = Path(require_library(library_file("polyop", "torch"), "PyTorch"))
    package = Path(polyop.__file__).resolve().parent
    variant = folder / "build" / VARIANT
    copy = variant / "packages" / "polyop"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__", "lib"))
    (copy / "lib").mkdir()
    shutil.copy(library.resolve(), copy / "lib" / library.name)
    shutil.copytree(
        library.parent / "formulas", copy / "lib" / "formulas", ignore=shutil.ignore_patterns("__pycache__")
    )
    (variant / "metadata.json").write_text(json.dumps(METADATA, indent=2) + "\n", encoding="utf-8")
    (variant / "layers.py").write_text(LAYERS, encoding="utf-8")
    (variant / "__init__.py").write_text(INIT.format(version=polyop.__version__), encoding="utf-8")
    return variant


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m polyop.compat.hub_kernels",
        description="Writes deformable attention as a kernel that Hugging Face's package kernels loads.",
    )
    parser.add_argument("folder", metavar="FOLDER", help="an empty or missing folder")
    try:
        print(write(parser.parse_args().folder))
    except (PolyopError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
