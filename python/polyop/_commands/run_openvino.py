# SPDX-License-Identifier: Apache-2.0
"""Runs models in OpenVINO, for `polyop run`, `verify` and `bench`.

The request has "model" (.onnx or .xml), "kind" (openvino or openvino-default, a kind of polyop.verifying.sides.How),
"libraries", "threads" (0: all cores) and "task":
  describe   the reply describes the inputs and outputs, and has the metadata that `polyop convert` keeps:
             {"inputs": {name: {"type", "shape"}}, "outputs": …, "metadata": {name: text}}
  run        has "inputs", "outputs" (.npz) and how often to run (timed_runs); the reply has "load_seconds" and the
             "seconds" of every timed run
  layers     has "inputs" and "outputs"; the reply has the "nodes": names, operators and mean times
Every reply has "runtime". bridge.py documents the protocol.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from polyop._commands.bridge import LAYER_RUNS, feeds_of, serve, timed_runs
from polyop._commands.errors import CommandError, ExitCode
from polyop.verifying.sides import How, InOpenVino, name_of, openvino_core, read_openvino

METADATA = ["polyop", "metadata"]
"""Where a file of OpenVINO's has the metadata of the ONNX file, as JSON."""
TYPES = {"float": "f32", "half": "f16", "bfloat16": "bf16", "double": "f64", "boolean": "bool"}


def describe(path: Path, how: How, request: dict[str, Any]) -> dict[str, Any]:
    import openvino

    def tensor(port: Any) -> dict[str, Any]:
        kind = port.element_type.get_type_name()
        shape = port.partial_shape
        if shape.rank.is_dynamic:
            raise ValueError(f"'{name_of(port)}': expected a known rank")
        return {"type": TYPES.get(kind, kind), "shape": [d.get_length() if d.is_static else -1 for d in shape]}

    with read_openvino(openvino_core(how), path) as model:
        ports = {what: {name_of(port): tensor(port) for port in getattr(model, what)} for what in ("inputs", "outputs")}
        noted = json.loads(str(model.get_rt_info(METADATA).value)) if model.has_rt_info(METADATA) else {}
    return {"runtime": f"OpenVINO {openvino.__version__.split('-')[0]}", **ports, "metadata": noted}


def run(model: Path, how: How, request: dict[str, Any]) -> dict[str, Any]:
    start = time.perf_counter()
    runs = Runs(model, how, request)
    load_seconds = time.perf_counter() - start
    seconds = timed_runs(runs.once, request)
    runs.save(request["outputs"])
    return {"runtime": runs.side.runtime, "load_seconds": load_seconds, "seconds": seconds}


def layers(model: Path, how: How, request: dict[str, Any]) -> dict[str, Any]:
    runs = Runs(model, how, request, {"PERF_COUNT": True})
    runs.once()
    runs.save(request["outputs"])
    return {"nodes": runs.layers()}


class Runs:
    """A compiled model and its inputs."""

    def __init__(
        self, model: Path, how: How, request: dict[str, Any], config: Mapping[str, object] = MappingProxyType({})
    ) -> None:
        self.side = InOpenVino(model, how, config=config)
        self._feeds = feeds_of(request)

    def once(self) -> None:
        self.side.infer(self._feeds)

    def save(self, path: str) -> None:
        """Writes the results of the last run."""
        results: dict[str, Any] = dict(self.side.results())
        np.savez(path, **results)

    def layers(self) -> list[dict[str, Any]]:
        """Returns the mean time of each layer, the slowest first."""
        total: dict[str, dict[str, Any]] = {}
        for _ in range(LAYER_RUNS):
            self.once()
            for layer in self.side.request.profiling_info:
                new = {"node": layer.node_name, "operator": layer.node_type, "mean_seconds": 0.0}
                entry = total.setdefault(layer.node_name, new)
                entry["mean_seconds"] += layer.real_time.total_seconds() / LAYER_RUNS
        return sorted(total.values(), key=lambda entry: -entry["mean_seconds"])


TASKS = {"describe": describe, "run": run, "layers": layers}


def answer(request: dict[str, Any]) -> dict[str, Any]:
    how = How(request["kind"], threads=request["threads"], libraries=tuple(request["libraries"]))
    try:
        return TASKS[request["task"]](Path(request["model"]), how, request)
    except (RuntimeError, ValueError) as error:  # OpenVINO raises RuntimeError
        raise CommandError(ExitCode.FAILED, f"{request['model']}: {error}") from error


if __name__ == "__main__":
    serve(answer, "pip install openvino")
