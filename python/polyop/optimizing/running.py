# SPDX-License-Identifier: Apache-2.0
"""Runs models and parts of them in ONNX Runtime."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort

from polyop._arrays.calls import library
from polyop._base.system import trim_memory
from polyop.errors import PolyopError, one_line
from polyop.packages import register_all

Feeds = dict[str, np.ndarray]


@dataclass(frozen=True)
class Runner:
    """Runs models.

    data_folder: the folder of external tensors.
    libraries: further custom operators.
    """

    threads: int = 0  # 0: ONNX Runtime's default
    libraries: tuple[str, ...] = ()
    data_folder: Path | None = None

    def session(
        self,
        model: onnx.ModelProto,
        *,
        polyop: bool = True,
        reference: bool = False,
        as_written: bool = False,
        as_used: bool = False,
    ) -> ort.InferenceSession:
        """Returns a CPU session.

        polyop: registers polyop's library and those of packages.
        reference: polyop's nodes run by their naive kernels in double precision.
        as_written: disables ONNX Runtime's own optimization.
        as_used: allows the memory that ONNX Runtime uses to be fast, for measuring; otherwise minimizes memory.
        """
        options = ort.SessionOptions()
        if not as_used:
            options.enable_cpu_mem_arena = options.enable_mem_pattern = False
            options.execution_order = (
                ort.ExecutionOrder.PRIORITY_BASED
            )  # a Shape runs first, so that its input is freed
            options.add_session_config_entry("session.disable_prepacking", "1")  # a second copy of the weights
        options.log_severity_level = 4
        options.intra_op_num_threads = self.threads
        if as_written:
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        if self.data_folder is not None:
            options.add_session_config_entry(
                "session.model_external_initializers_file_folder_path", str(self.data_folder)
            )
        if polyop:
            register_all(options)
        for path in self.libraries:
            options.register_custom_ops_library(path)
        if reference:
            library().polyop_use_reference_kernels(1)  # in sessions that this thread creates
        try:
            return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        finally:
            if reference:
                library().polyop_use_reference_kernels(-1)

    def run(self, model: onnx.ModelProto, feeds: Sequence[Feeds], **how: bool) -> list[Feeds]:
        """Returns the outputs by name, for each of the feeds."""
        session = self.session(model, **how)
        names = [output.name for output in session.get_outputs()]
        results = []
        for feed in feeds:
            results.append(dict(zip(names, session.run(names, feed), strict=True)))
            trim_memory()
        del session
        trim_memory()
        return results


def time_interleaved(
    sessions: Sequence[ort.InferenceSession], feeds: Mapping[str, np.ndarray], seconds: float = 2.0, min_runs: int = 5
) -> list[float]:
    """Returns the median seconds of each session's runs, interleaved, after a warm-up. feeds: the inputs of all of
    them."""
    read = [{i.name: feeds[i.name] for i in session.get_inputs()} for session in sessions]
    runs = [partial(session.run, None, feed) for session, feed in zip(sessions, read, strict=True)]
    for run in runs:
        run()
    return time_runs_interleaved(runs, seconds, min_runs)


def time_runs_interleaved(runs: Sequence[Callable[[], object]], seconds: float, min_runs: int) -> list[float]:
    """Returns the median seconds of each function. Runs are interleaved. Requires: each has run once before."""
    times: list[list[float]] = [[] for _ in runs]
    end = time.perf_counter() + seconds * len(runs)
    while runs and (len(times[0]) < min_runs or time.perf_counter() < end):
        for taken, run in zip(times, runs, strict=True):
            start = time.perf_counter()
            run()
            taken.append(time.perf_counter() - start)
    return [float(np.median(t)) for t in times]


_RUNTIME_PREFIX = re.compile(r"^\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : ")
_NODE = re.compile(r"Non-zero status code returned while running (\S+) node\. Name:'([^']*)' Status Message: ")
_POSITION = re.compile(r"\S*/\S+\.(?:cc|cpp|h):\d+ (?:[^()]+\([^()]*\)(?: const)? )?")


def runtime_error(error: BaseException) -> str:
    """Returns the text of an error of ONNX Runtime as one line, without its codes and positions in source files."""
    text = _POSITION.sub("", _NODE.sub(r"node '\2' (\1): ", _RUNTIME_PREFIX.sub("", one_line(error))))
    return text if isinstance(error, PolyopError) or text != one_line(error) else f"{type(error).__name__}: {text}"
