"""Builds an engine, for `polyop convert`.

python -m polyop.build_engine REQUEST.json REPORT.json

The request says what `onnx2trt` takes; the report tells layers and sizes, or the error. Progress goes to stderr.
"""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import sys
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from polyop import __version__
from polyop.progress import bars

LINK = "libtensorrt_rtx.so"


def restart_with_parser_path() -> None:
    """TensorRT-RTX's ONNX parser opens libtensorrt_rtx.so by a name that its wheel lacks: this program starts again with a
    link of that name on its path.

    The link lies in a fresh folder that only this user can write, for as long as the program runs: what is on the path
    of the loader, and gone, could be made anew by someone else.
    """
    if folder := os.environ.get("POLYOP_RESTARTED"):
        atexit.register(_remove_link, Path(folder))
        return
    from polyop.tensorrt import EngineError, _runtime

    try:
        if "rtx" not in _runtime().__name__:
            return
    except EngineError:  # build() tells of it
        return
    try:
        ctypes.CDLL(LINK)
        return
    except OSError:
        pass
    loaded = {Path(line.split()[-1]) for line in Path("/proc/self/maps").read_text().splitlines() if LINK in line}
    if not loaded:
        return
    folder = Path(tempfile.mkdtemp(prefix="polyop-"))
    (folder / LINK).symlink_to(loaded.pop())
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("LD_LIBRARY_PATH", "")]))
    environment = {**os.environ, "LD_LIBRARY_PATH": path, "POLYOP_RESTARTED": str(folder)}
    os.execve(sys.executable, [sys.executable, "-m", "polyop.build_engine", *sys.argv[1:]], environment)


def _remove_link(folder: Path) -> None:
    """Removes what was made above, and never a folder that holds anything else."""
    with suppress(OSError):
        (folder / LINK).unlink()
        folder.rmdir()


def _common(shapes: list[list[int]]) -> list[int]:
    """-1 where they differ."""
    return [low if low == high else -1 for low, _, high in zip(*shapes, strict=True)]


def build(request: dict[str, Any]) -> dict[str, Any]:
    from polyop.tensorrt import get_tensorrt_op_path, onnx2trt, save_trt_engine

    with ExitStack() as stack:
        engine = onnx2trt(
            request["model"],
            request["shapes"],
            fp16_mode=request["fp16"],
            max_workspace_size=request["workspace"],
            constants=request["constants"],
            plugins=request["plugins"],
            timing_cache=request["timing_cache"] or None,
            progress=bars(stack),
            verbose=request["verbose"],
        )
    save_trt_engine(engine, request["engine"])
    used = any(layer["type"].startswith("PLUGIN") for layer in engine.layers)
    needs = {
        "made_by": f"polyop {__version__}",
        "model": Path(request["model"]).name,
        "runtime": engine.runtime,
        "plugin_libraries": [Path(p).name for p in [get_tensorrt_op_path(), *request["plugins"]] if p and used],
        "precision": "fp16" if request["fp16"] else "as in the model",
        "inputs": {
            name: {
                "type": engine.types[name],
                "shape": _common(three),
                **dict(zip(("least", "usual", "largest"), three, strict=True)),
            }
            for name, three in engine.shapes.items()
        },
        "outputs": {name: {"type": engine.types[name], "shape": shape} for name, shape in engine.outputs.items()},
    }
    Path(request["engine"] + ".json").write_text(json.dumps(needs, indent=2) + "\n")
    return {"bytes": len(engine.data), "layers": engine.layers, "needs": needs}


def main(request_path: str, report_path: str) -> None:
    from polyop.tensorrt import EngineError, ModelError

    request = json.loads(Path(request_path).read_text())
    try:
        report = build(request)
    except (EngineError, ModelError) as error:
        report = {"error": str(error)}
    Path(report_path).write_text(json.dumps(report))


if __name__ == "__main__":
    restart_with_parser_path()
    main(*sys.argv[1:])
