# SPDX-License-Identifier: Apache-2.0
"""polyop as `mmcv._ext`, the compiled module that MMCV 2's `mmcv/ops/*.py` imports and the wheel `mmcv-lite` lacks.

`install()` installs it; `import polyop.compat.mmcv` calls that. MMCV's Python code is unchanged, except for a few
functions that require a CUDA device or bypass the compiled module on a CPU: `_guards`.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

from polyop.compat.mmcv_ext import (  # noqa: F401 - each takes its functions in
    _guards,
    boxes,
    deform,
    features,
    info,
    losses,
    points,
    rois,
    rotated_rois,
    sparse,
    synthesis,
    text,
    voxels,
)
from polyop.compat.mmcv_ext._registry import FUNCTIONS
from polyop.compat.mmcv_ext._status import rows, status

__all__ = ["FUNCTIONS", "NAME", "install", "installed", "rows", "status"]

NAME = "mmcv._ext"


class _Extension(ModuleType):
    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"polyop has no {NAME}.{name}: it has the functions that MMCV 2.0 to 2.2 call")


def _module() -> ModuleType:
    result = _Extension(NAME, f"polyop, which replaces {NAME}")
    result.__spec__ = ModuleSpec(NAME, None, origin="polyop")
    result.__file__ = __file__
    for name, provided in FUNCTIONS.items():
        setattr(result, name, provided.call)
    return result


def installed() -> bool:
    """Returns True if `mmcv._ext` is polyop."""
    return isinstance(sys.modules.get(NAME), _Extension)


def _real() -> bool:
    """Returns True if MMCV's own compiled module is installed. Does not import MMCV."""
    if NAME in sys.modules:
        return not installed()
    package = PathFinder.find_spec("mmcv")
    locations = package.submodule_search_locations if package else None
    return locations is not None and PathFinder.find_spec(NAME, list(locations)) is not None


def install(replace: bool = False) -> bool:
    """Installs polyop as `mmcv._ext`, before or after `import mmcv`. Returns True if it is installed.

    Keeps MMCV's own compiled module, unless `replace` is True.
    """
    if installed():
        return True
    if _real() and not replace:
        return False
    sys.modules[NAME] = _module()
    if (package := sys.modules.get("mmcv")) is not None:
        package._ext = sys.modules[NAME]
    if "mmcv.ops" not in sys.modules:  # removes what a failed `import mmcv.ops` left behind
        for name in [n for n in sys.modules if n.startswith("mmcv.ops.")]:
            del sys.modules[name]
    for name, module in list(sys.modules.items()):
        if name.startswith("mmcv.ops.") and hasattr(module, "ext_module"):
            module.ext_module = sys.modules[NAME]
    _guards.watch()
    return True
