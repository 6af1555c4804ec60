"""Models in OpenVINO with polyop's operators: what `polyop run`, `verify`, `bench` and `convert` call.

python -m polyop.run_openvino REQUEST.json REPORT.json

REQUEST: model (.onnx or .xml), task, threads (0: all cores), and by task
  describe   the report says what the model takes and gives: {"inputs": {name: {"type", "shape"}}, "outputs": …}
  run        inputs, outputs (.npz), times: the report has "load_seconds" and the "seconds" of every run
  time       inputs, outputs, seconds, layers: rising "seconds" of runs for at least so long, after one that does not
             count; or with layers the "nodes": their names, operators and mean times
  convert    output (.xml), half: weights in f16
Every report has "runtime". What goes wrong is "error".
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

import polyop.openvino

LAYER_RUNS = 10
TYPES = {"float": "f32", "half": "f16", "bfloat16": "bf16", "double": "f64", "boolean": "bool"}


def describe(model: Any, request: dict[str, Any]) -> dict[str, Any]:
    def tensor(port: Any) -> dict[str, Any]:
        kind = port.element_type.get_type_name()
        shape = port.partial_shape
        if shape.rank.is_dynamic:
            raise ValueError(f"'{name_of(port)}' has no known rank")
        return {"type": TYPES.get(kind, kind), "shape": [d.get_length() if d.is_static else -1 for d in shape]}

    return {what: {name_of(port): tensor(port) for port in getattr(model, what)} for what in ("inputs", "outputs")}


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
        """Seconds. Not by `infer`: with one thread OpenVINO 2026 loses the errors of that."""
        start = time.perf_counter()
        self.request.start_async(self.feeds, share_inputs=True)
        self.request.wait()
        return time.perf_counter() - start

    def save(self, path: str) -> None:
        """The last results."""
        np.savez(path, **{name_of(port): self.request.get_tensor(port).data for port in self.request.model_outputs})

    def layers(self) -> list[dict[str, Any]]:
        """The mean time of each, the slowest first."""
        total: dict[str, dict[str, Any]] = {}
        for _ in range(LAYER_RUNS):
            self.once()
            for layer in self.request.profiling_info:
                new = {"node": layer.node_name, "operator": layer.node_type, "mean_seconds": 0.0}
                entry = total.setdefault(layer.node_name, new)
                entry["mean_seconds"] += layer.real_time.total_seconds() / LAYER_RUNS
        return sorted(total.values(), key=lambda entry: -entry["mean_seconds"])


def convert(model: Any, request: dict[str, Any]) -> dict[str, Any]:
    import openvino

    openvino.save_model(model, request["output"], compress_to_fp16=request["half"])
    return {}


def name_of(port: Any) -> str:
    return port.any_name if port.names else port.node.friendly_name


TASKS = {"describe": describe, "run": run, "time": time_runs, "convert": convert}


def main(request_file: str, report_file: str) -> None:
    request = json.loads(Path(request_file).read_text())
    report: dict[str, Any] = {}
    try:
        import openvino

        report["runtime"] = f"OpenVINO {openvino.__version__.split('-')[0]}"
        core = polyop.openvino.core()
        for library in request["libraries"]:
            core.add_extension(library)
        report |= TASKS[request["task"]](core.read_model(request["model"]), request)
    except Exception as error:  # OpenVINO raises RuntimeError; a missing package, a wrong file others
        report["error"] = f"{error}"
    Path(report_file).write_text(json.dumps(report))


if __name__ == "__main__":
    main(*sys.argv[1:])
