"""Runs models and parts of them in ONNX Runtime."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort

from polyop.packages import register_all

Feeds = dict[str, np.ndarray]


@dataclass(frozen=True)
class Runner:
    """data_folder: where tensors outside of the model's file lie; libraries: of custom operators, beside polyop's."""

    threads: int = 0  # 0: as many as ONNX Runtime likes
    libraries: tuple[str, ...] = ()
    data_folder: Path | None = None

    def session(
        self, model: onnx.ModelProto, *, polyop: bool = True, as_written: bool = False, as_used: bool = False
    ) -> ort.InferenceSession:
        """A CPU session. polyop: with its library and those of packages; as_written: without ONNX Runtime's own
        optimisation; as_used: with the memory that ONNX Runtime keeps to be fast, for measuring; else it takes as little
        as it can."""
        options = ort.SessionOptions()
        if not as_used:
            options.enable_cpu_mem_arena = options.enable_mem_pattern = False
            options.execution_order = ort.ExecutionOrder.PRIORITY_BASED  # a Shape comes first, and its input goes
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
        for library in self.libraries:
            options.register_custom_ops_library(library)
        return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])

    def run(self, model: onnx.ModelProto, feeds: Sequence[Feeds], **how: bool) -> list[Feeds]:
        """The outputs by their names, for each of the feeds."""
        session = self.session(model, **how)
        names = [output.name for output in session.get_outputs()]
        results = []
        for feed in feeds:
            results.append(dict(zip(names, session.run(names, feed), strict=True)))
            give_back()
        del session
        give_back()
        return results


def give_back() -> None:
    """Freed memory goes back to the system. glibc keeps it for what comes next, which fits into it badly: after a run of
    a detector it was two thirds of all that the process had."""
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)


def time_in_turns(
    sessions: Sequence[ort.InferenceSession], feeds: Mapping[str, np.ndarray], seconds: float = 2.0, least: int = 5
) -> list[float]:
    """The median seconds of each session's runs, taken in turns after a warm-up. feeds: of all of them."""
    read = [{i.name: feeds[i.name] for i in session.get_inputs()} for session in sessions]
    runs = [partial(session.run, None, feed) for session, feed in zip(sessions, read, strict=True)]
    for run in runs:
        run()
    return time_runs_in_turns(runs, seconds, least)


def time_runs_in_turns(runs: Sequence[Callable[[], object]], seconds: float, least: int) -> list[float]:
    """The median seconds of each, which have warmed up."""
    times: list[list[float]] = [[] for _ in runs]
    end = time.perf_counter() + seconds * len(runs)
    while runs and (len(times[0]) < least or time.perf_counter() < end):
        for taken, run in zip(times, runs, strict=True):
            start = time.perf_counter()
            run()
            taken.append(time.perf_counter() - start)
    return [float(np.median(t)) for t in times]


def largest_difference(a: np.ndarray, b: np.ndarray) -> float:
    """Absolute; NaN equals NaN; infinite where shapes or types differ."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return float("inf")
    if a.dtype.kind not in "fiub":
        return 0.0 if np.array_equal(a, b) else float("inf")
    if a.size == 0:
        return 0.0
    with np.errstate(all="ignore"):
        same = (a == b) | ((a != a) & (b != b))
        difference = np.where(same, 0.0, np.abs(a.astype(np.float64) - b.astype(np.float64)))
    return float(np.nan_to_num(difference, nan=np.inf, posinf=np.inf).max())
