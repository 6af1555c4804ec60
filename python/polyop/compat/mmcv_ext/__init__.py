"""polyop as `mmcv._ext`, the compiled module that MMCV 2's `mmcv/ops/*.py` asks for and the wheel `mmcv-lite` lacks.

`install()` puts it in place; `import polyop.compat.mmcv` calls it. MMCV's Python is unchanged, but for the few places
that ask for a CUDA device, or go round the compiled module on a CPU: `_guards`.
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
    sparse,
    synthesis,
    text,
    turned_rois,
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
    made = _Extension(NAME, f"polyop in the place of {NAME}")
    made.__spec__ = ModuleSpec(NAME, None, origin="polyop")
    made.__file__ = __file__
    for name, provided in FUNCTIONS.items():
        setattr(made, name, provided.call)
    return made


def installed() -> bool:
    """Whether `mmcv._ext` is polyop."""
    return isinstance(sys.modules.get(NAME), _Extension)


def _real() -> bool:
    """Whether MMCV's own compiled module is there. MMCV is not imported to find out."""
    if NAME in sys.modules:
        return not installed()
    package = PathFinder.find_spec("mmcv")
    places = package.submodule_search_locations if package else None
    return places is not None and PathFinder.find_spec(NAME, list(places)) is not None


def install(replace: bool = False) -> bool:
    """Puts polyop in the place of `mmcv._ext`, before or after `import mmcv`; returns whether it is there.

    MMCV's own compiled module is left alone, unless `replace` is given.
    """
    if installed():
        return True
    if _real() and not replace:
        return False
    sys.modules[NAME] = _module()
    if (package := sys.modules.get("mmcv")) is not None:
        package._ext = sys.modules[NAME]
    if "mmcv.ops" not in sys.modules:  # what an `import mmcv.ops` that failed has left behind
        for name in [n for n in sys.modules if n.startswith("mmcv.ops.")]:
            del sys.modules[name]
    for name, module in list(sys.modules.items()):
        if name.startswith("mmcv.ops.") and hasattr(module, "ext_module"):
            module.ext_module = sys.modules[NAME]
    _guards.watch()
    return True
