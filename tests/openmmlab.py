"""mmcv-lite, MMCV without its compiled module, for tests: `mmcv.ops` with polyop as `mmcv._ext`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).resolve().parent.parent / ".deps" / "openmmlab"


@contextmanager
def mmcv_ops() -> Iterator[ModuleType]:
    """`mmcv.ops`; afterwards neither it nor the compiled module's name is known to the process."""
    assert (FOLDER / "mmcv").is_dir(), f"{FOLDER} is missing: run tools/setup_python.sh"
    import polyop.compat.mmcv

    polyop.compat.mmcv.install()
    sys.path.append(str(FOLDER))
    try:
        import mmcv.ops

        yield mmcv.ops
    finally:
        sys.path.remove(str(FOLDER))
        for name in [n for n in sys.modules if n.split(".")[0] in ("mmcv", "mmengine")]:
            del sys.modules[name]
