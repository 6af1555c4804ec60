# SPDX-License-Identifier: Apache-2.0
"""Writes the page of the program's `verify --report`.

The request has "model", "command", "comparisons" as --json prints them, and "file". The reply has the "date", the
"versions", the "hardware" and the "files" with their hashes. bridge.py documents the protocol.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from polyop._commands.bridge import serve

_PACKAGES = ("onnxruntime", "onnxruntime-gpu", "onnxruntime-webgpu", "onnxruntime-directml", "onnxruntime-openvino",
             "openvino", "tensorrt", "torch", "onnx", "numpy")  # fmt: skip
_BLOCK = 1 << 22


def verify_report(request: dict[str, Any]) -> dict[str, Any]:
    from polyop._onnx.atomic_file import write_atomically
    from polyop.verifying.page import page

    now = datetime.datetime.now(datetime.timezone.utc)
    about = {
        "date": now.strftime("%Y-%m-%d %H:%M UTC"),
        "versions": _versions(),
        "hardware": _hardware(),
        "files": [_file(path) for path in _files(request)],
    }
    report = {"model": request["model"], "command": request["command"], "comparisons": request["comparisons"], **about}
    write_atomically(Path(request["file"]), page(report).encode())
    return about


def _versions() -> dict[str, str]:
    from polyop import __version__

    found = {"polyop": __version__, "Python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _hardware() -> dict[str, str]:
    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), name)
    except OSError:
        pass
    return {"processor": f"{name}, {os.cpu_count()} threads", "system": platform.platform()}


def _files(request: dict[str, Any]) -> list[Path]:
    """Returns the model, the files of the references, and those of their external data."""
    from polyop._onnx.files import ModelFileError, external_files, read_model

    texts = [comparison["reference"] for comparison in request["comparisons"]]
    named = [request["model"], *(part for text in texts for part in (text, text.partition("=")[2]))]
    files = [Path(text) for text in dict.fromkeys(named) if text and Path(text).is_file()]
    for path in list(files):
        if path.suffix == ".xml":
            files.append(path.with_suffix(".bin"))
        elif path.suffix == ".onnx":
            try:
                files += [path.parent / name for name in external_files(read_model(path), path)]
            except (ModelFileError, OSError):
                continue
    return [path for path in dict.fromkeys(files) if path.is_file()]


def _file(path: Path) -> dict[str, Any]:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return {"file": str(path), "bytes": path.stat().st_size, "sha256": digest.hexdigest()}


if __name__ == "__main__":
    serve(verify_report, "pip install 'polyop[optimize]'")
