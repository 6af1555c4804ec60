# SPDX-License-Identifier: Apache-2.0
"""Runs models in an execution provider of ONNX Runtime, for `polyop run`, `verify` and `bench`.

The request has "model", the "folder" of its external data or "" for the file's, "kind" and "value"
(polyop.verifying.sides.How), "libraries", "threads", "accelerate" and "task":
  describe   the reply describes the inputs and outputs, and has the metadata: {"inputs": {name: {"type", "shape"}},
             "outputs": …, "metadata": {name: text}}
  run        has "inputs", "outputs" (.npz) and how often to run (timed_runs); the reply has "load_seconds", the
             "seconds" of every timed run, and a "note" about where the nodes ran
  layers     has "inputs" and "outputs"; the reply has the "nodes": names, operators and mean times
Every reply has "runtime". bridge.py documents the protocol.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from polyop._commands.bridge import LAYER_RUNS, feeds_of, serve, timed_runs
from polyop._commands.errors import CommandError, ExitCode
from polyop.errors import PolyopError
from polyop.verifying.sides import How, InOnnxRuntime

_TYPES = {
    "float": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "double": "f64",
    "bool": "bool",
    **{f"{sign}int{bits}": f"{sign[:1] or 'i'}{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


def describe(side: InOnnxRuntime, request: dict[str, Any]) -> dict[str, Any]:
    def tensor(value: Any) -> dict[str, Any]:
        kind = _TYPES.get(value.type.removeprefix("tensor(").removesuffix(")"))
        if kind is None:
            raise CommandError(ExitCode.FAILED, f"'{value.name}': expected a tensor of numbers, got {value.type}")
        return {"type": kind, "shape": [extent if isinstance(extent, int) else -1 for extent in value.shape]}

    session = side.session
    ports = {"inputs": session.get_inputs(), "outputs": session.get_outputs()}
    described = {what: {value.name: tensor(value) for value in values} for what, values in ports.items()}
    return {**described, "metadata": session.get_modelmeta().custom_metadata_map}


def run(side: InOnnxRuntime, request: dict[str, Any]) -> dict[str, Any]:
    feeds = feeds_of(request)
    note = side.where(feeds)
    results: dict[str, Any] = {}
    seconds = timed_runs(lambda: results.update(side.run(feeds)), request)
    np.savez(request["outputs"], **results)
    return {"seconds": seconds, "note": note}


def layers(side: InOnnxRuntime, request: dict[str, Any]) -> dict[str, Any]:
    feeds = feeds_of(request)
    results: dict[str, Any] = dict(side.run(feeds))
    np.savez(request["outputs"], **results)
    return {"nodes": side.node_times(feeds, LAYER_RUNS)}


def answer(request: dict[str, Any]) -> dict[str, Any]:
    how = How(request["kind"], request["value"], request["threads"], tuple(request["libraries"]), request["accelerate"])
    start = time.perf_counter()
    try:
        path, folder = Path(request["model"]), request["folder"]
        model = onnx.load(path, load_external_data=False) if folder else path
        side = InOnnxRuntime(model, how, Path(folder) if folder else None)
        loaded = time.perf_counter() - start
        reply = {"describe": describe, "run": run, "layers": layers}[request["task"]](side, request)
    except (PolyopError, OSError):
        raise
    except Exception as error:  # ONNX Runtime's own types are not public
        from polyop.optimizing.running import runtime_error

        raise CommandError(ExitCode.FAILED, f"{request['model']} in {how.text}: {runtime_error(error)}") from error
    return {"runtime": side.runtime, "load_seconds": loaded, **reply}


if __name__ == "__main__":
    serve(answer, "pip install onnxruntime")
