# SPDX-License-Identifier: Apache-2.0
"""`python -m polyop.compat._probe NAME…` imports what polyop replaces, and polyop's own libraries in their runtimes.

It prints a JSON object a line: {"begin": NAME} before an import, and the result after it. An extension that was built
for another PyTorch may crash the process; `probe` starts another one for the rest.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from polyop._base import isolation
from polyop._base.libraries import find_library, library_file
from polyop.compat._causes import cause, version_of
from polyop.compat._packages import REPLACEMENTS
from polyop.errors import one_line

__all__ = ["RUNTIMES", "Runtime", "probe"]

_SECONDS = 600


@dataclass(frozen=True)
class Runtime:
    """A runtime that polyop has a library for."""

    title: str
    modules: tuple[str, ...]
    """The runtime's own; the first that is installed counts."""
    oldest: tuple[int, ...]
    library: str
    """The end of the name of polyop's library."""
    check: Callable[[], object]
    """Loads polyop's library. Raises an exception if it does not load."""


def _register(name: str) -> None:
    import onnxruntime

    onnxruntime.SessionOptions().register_custom_ops_library(str(find_library(library_file("polyop", name))))


def _openvino() -> None:
    from polyop.openvino import core

    core()


def _importing(module: str) -> Callable[[], object]:
    return lambda: import_module(module)


RUNTIMES = {
    "onnxruntime": Runtime("ONNX Runtime", ("onnxruntime",), (1, 17), "onnxruntime", lambda: _register("onnxruntime")),
    "accelerator": Runtime(
        "ONNX Runtime, standard operators", ("onnxruntime",), (1, 17), "accelerator", lambda: _register("accelerator")
    ),
    "torch": Runtime("PyTorch", ("torch",), (2, 10), "torch", _importing("polyop._torch.load")),
    "openvino": Runtime("OpenVINO", ("openvino",), (2026, 0), "openvino", _openvino),
    "tensorrt": Runtime(
        "TensorRT",
        ("tensorrt", "tensorrt_rtx"),
        (),
        "tensorrt",
        lambda: ctypes.CDLL(str(find_library(library_file("polyop", "tensorrt")))),
    ),
    "numpy": Runtime("NumPy", ("numpy",), (1, 24), "onnxruntime", _importing("polyop.numpy")),
    "jax": Runtime("JAX", ("jax",), (0, 10), "jax", _importing("polyop.jax")),
    "executorch": Runtime("ExecuTorch", ("executorch",), (1, 5), "executorch", _importing("polyop.executorch")),
    "tvm_ffi": Runtime("tvm-ffi", ("tvm_ffi",), (0, 1, 15), "tvm_ffi", _importing("polyop.tvm_ffi")),
}
"""The runtimes by the names that `polyop doctor` has for them."""


def probe(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Returns the state of runtimes ("runtime:torch") and of packages (keys of REPLACEMENTS), in other processes.

    "state" is "loads", "fails", "missing" (not installed), "old", or "no library" (of polyop for this runtime); "error"
    has the message of the import, "cause" the reason, "version" that of the runtime or package. "lacks" of torch has
    the functions that exports need and that this PyTorch does not have.
    """
    found: dict[str, dict[str, Any]] = {}
    left = list(names)
    while left:
        done = subprocess.run(
            isolation.command("polyop.compat._probe", *left),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=False,
            timeout=_SECONDS,
        )
        begun = None
        for line in done.stdout.splitlines():
            record = json.loads(line)
            begun = record.pop("begin", None)
            if begun is None:
                found[record.pop("name")] = record
        if begun is not None:
            how = signal.Signals(-done.returncode).name if done.returncode < 0 else f"exit code {done.returncode}"
            found[begun] = {
                "state": "fails",
                "error": f"the import ends the process ({how})",
                "cause": None,
                "version": version_of(begun.partition(":")[2] or begun),
            }
        elif len(found) < len(names):
            raise RuntimeError(f"the process that imports {left} ended with {done.returncode}")
        left = [name for name in names if name not in found]
    return found


def _runtime(name: str) -> dict[str, Any]:
    runtime = RUNTIMES[name]
    module = next((module for module in runtime.modules if find_spec(module) is not None), None)
    if module is None:
        return {"state": "missing", "version": None, "error": None, "cause": None}
    record: dict[str, Any] = {"state": "loads", "version": version_of(module), "error": None, "cause": None}
    numbers = tuple(int(number) for number in re.findall(r"\d+", record["version"] or "")[: len(runtime.oldest)])
    if numbers and numbers < runtime.oldest:
        record["state"] = "old"
        record["error"] = f"expected {'.'.join(map(str, runtime.oldest))} or newer, got {record['version']}"
        return record
    library = find_library(library_file("polyop", runtime.library))
    if not library.is_file():
        record.update(state="no library", error=f"{library} does not exist")
        return record
    try:
        runtime.check()
    except Exception as error:
        record.update(state="fails", error=one_line(error), cause=cause(module, one_line(error)))
    if name == "torch" and record["state"] == "loads":
        from polyop._aten.patches import missing

        record["lacks"] = missing()
    return record


def _package(name: str) -> dict[str, Any]:
    replacement = REPLACEMENTS[name]
    record: dict[str, Any] = {"state": "loads", "version": version_of(name), "error": None, "cause": None}
    try:
        if not replacement.is_applicable():
            return {**record, "state": "missing"}
        error = replacement.failure()
    except Exception as failed:
        error = one_line(failed)
    if error is not None:
        record.update(state="fails", error=error, cause=cause(name, error))
    return record


def _records(names: Sequence[str]) -> Iterator[dict[str, Any]]:
    for name in names:
        yield {"begin": name}
        kind, _, library = name.rpartition(":")
        yield {"name": name, **(_runtime(library) if kind == "runtime" else _package(name))}


def main(names: Sequence[str]) -> None:
    warnings.simplefilter("ignore")
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what imports print does not mix with the records
    for record in _records(names):
        print(json.dumps(record), file=out, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
