# SPDX-License-Identifier: Apache-2.0
"""Runs and times models in OpenVINO, for `polyop run`, `verify` and `bench`.

The request has "model" (.onnx or .xml), "libraries", "threads" (0: all cores) and "task":
  describe   the reply describes the inputs and outputs, and has the metadata that `polyop convert` keeps:
             {"inputs": {name: {"type", "shape"}}, "outputs": …, "metadata": {name: text}}
  run        has "inputs", "outputs" (.npz) and "times"; the reply has "load_seconds" and the "seconds" of every run
  time       has "inputs", "outputs", "seconds" and "layers". After a warm-up, runs the model for at least "seconds".
             The reply has the "seconds" of the runs in ascending order, or with "layers" the "nodes": names, operators
             and mean times
Every reply has "runtime". bridge.py documents the protocol.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

import polyop.openvino
from polyop._commands.bridge import serve
from polyop._commands.errors import CommandError, ExitCode

LAYER_RUNS = 10
METADATA = ["polyop", "metadata"]
"""Where a file of OpenVINO's has the metadata of the ONNX file, as JSON."""
TYPES = {"float": "f32", "half": "f16", "bfloat16": "bf16", "double": "f64", "boolean": "bool"}


def describe(model: Any, request: dict[str, Any]) -> dict[str, Any]:
    def tensor(port: Any) -> dict[str, Any]:
        kind = port.element_type.get_type_name()
        shape = port.partial_shape
        if shape.rank.is_dynamic:
            raise ValueError(f"'{name_of(port)}': expected a known rank")
        return {"type": TYPES.get(kind, kind), "shape": [d.get_length() if d.is_static else -1 for d in shape]}

    ports = {what: {name_of(port): tensor(port) for port in getattr(model, what)} for what in ("inputs", "outputs")}
    noted = json.loads(str(model.get_rt_info(METADATA).value)) if model.has_rt_info(METADATA) else {}
    return {**ports, "metadata": noted}


def run(model: Any, request: dict[str, Any]) -> dict[str, Any]:
    start = time.perf_counter()
    runs = Runs(model, request)
    load_seconds = time.perf_counter() - start
    seconds = [runs.once() for _ in range(request["times"])]
    runs.save(request["outputs"])
    return {"load_seconds": load_seconds, "seconds": seconds}


def time_runs(model: Any, request: dict[str, Any]) -> dict[str, Any]:
    runs = Runs(model, request, {"PERF_COUNT": True} if request["layers"] else {})
    runs.once()
    runs.save(request["outputs"])
    if request["layers"]:
        return {"nodes": runs.layers()}
    seconds: list[float] = []
    while len(seconds) < 3 or sum(seconds) < request["seconds"]:
        seconds.append(runs.once())
    return {"seconds": sorted(seconds)}


class Runs:
    """A compiled model and its inputs."""

    def __init__(
        self, model: Any, request: dict[str, Any], config: Mapping[str, object] = MappingProxyType({})
    ) -> None:
        config = {"INFERENCE_PRECISION_HINT": "f32", **config}  # the default rounds to bf16 where the machine can
        if request["threads"]:
            config["INFERENCE_NUM_THREADS"] = request["threads"]
        self.request = polyop.openvino.core().compile_model(model, "CPU", config).create_infer_request()
        with np.load(request["inputs"]) as arrays:
            self.feeds = dict(arrays)

    def once(self) -> float:
        """Runs the model and returns the seconds. OpenVINO 2026 loses the errors of `infer` with one thread."""
        start = time.perf_counter()
        self.request.start_async(self.feeds, share_inputs=True)
        self.request.wait()
        return time.perf_counter() - start

    def save(self, path: str) -> None:
        """Writes the results of the last run."""
        np.savez(path, **{name_of(port): self.request.get_tensor(port).data for port in self.request.model_outputs})

    def layers(self) -> list[dict[str, Any]]:
        """Returns the mean time of each layer, the slowest first."""
        total: dict[str, dict[str, Any]] = {}
        for _ in range(LAYER_RUNS):
            self.once()
            for layer in self.request.profiling_info:
                new = {"node": layer.node_name, "operator": layer.node_type, "mean_seconds": 0.0}
                entry = total.setdefault(layer.node_name, new)
                entry["mean_seconds"] += layer.real_time.total_seconds() / LAYER_RUNS
        return sorted(total.values(), key=lambda entry: -entry["mean_seconds"])


def name_of(port: Any) -> str:
    return port.any_name if port.names else port.node.friendly_name


def readable(model: str) -> AbstractContextManager[Path]:
    """Returns a context with the file that OpenVINO reads: the model, or a copy, as without_links."""
    path = Path(model)
    if path.suffix.lower() == ".xml" or not path.is_symlink():
        return nullcontext(path)
    from polyop._onnx.files import without_links

    return without_links(path)


TASKS = {"describe": describe, "run": run, "time": time_runs}


def answer(request: dict[str, Any]) -> dict[str, Any]:
    core = polyop.openvino.core()
    import openvino

    try:
        for library in request["libraries"]:
            core.add_extension(library)
        with readable(request["model"]) as file:
            reply = TASKS[request["task"]](core.read_model(file), request)
    except (RuntimeError, ValueError) as error:  # OpenVINO raises RuntimeError
        raise CommandError(ExitCode.FAILED, f"{request['model']}: {error}") from error
    return {"runtime": f"OpenVINO {openvino.__version__.split('-')[0]}", **reply}


if __name__ == "__main__":
    serve(answer, "pip install openvino")
