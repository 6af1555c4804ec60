# SPDX-License-Identifier: Apache-2.0
"""Runs models with polyop's nodes in ONNX Runtime and in OpenVINO."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnxruntime as ort

import polyop
import polyop.openvino

Model = Callable[[Mapping[str, np.ndarray]], list[np.ndarray]]


def in_onnxruntime(path: Path, threads: int = 0) -> Model:
    """Loads a model. `threads` is 0 for all cores."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    options.register_custom_ops_library(polyop.get_onnxruntime_op_path())
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda feeds: session.run(None, feeds)


def in_openvino(path: Path, threads: int = 0) -> Model:
    """Loads a model that computes in f32, where OpenVINO's default is bf16 on some processors."""
    config = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads}
    model = polyop.openvino.core().compile_model(path, "CPU", config)

    def run(feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        results = model(feeds)
        return [results[output] for output in model.outputs]

    return run


RUNTIMES = {"ONNX Runtime": in_onnxruntime, "OpenVINO": in_openvino}
BOTH = " and ".join(RUNTIMES)
