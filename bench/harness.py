# SPDX-License-Identifier: Apache-2.0
"""Times contenders in one process, interleaved: warm-up, minimum and median, and the machine's limits."""

from __future__ import annotations

import ctypes
import gc
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnxruntime as ort
import openvino as ov
import torch
from memory import Flush, page_faults, scratch_of
from onnx import TensorProto, helper
from openvino.utils.node_factory import NodeFactory

import polyop

Run = Callable[[], Sequence[np.ndarray]]

CACHE_LINE = 64
ROUNDS = 15
MIN_ROUNDS = 3
SECONDS_A_CONTENDER = 0.8
SECONDS_A_CASE = 8.0  # slow contenders have fewer rounds; those whose single call takes longer have one
COLD_CALLS, SECONDS_A_COLD_CALL = 5, 0.5  # a slower call runs once
FAULT_CALLS = 3

ELEMENT = {
    np.dtype(np.float32): TensorProto.FLOAT,
    np.dtype(np.float64): TensorProto.DOUBLE,
    np.dtype(np.float16): TensorProto.FLOAT16,
    np.dtype(ml_dtypes.bfloat16): TensorProto.BFLOAT16,
    np.dtype(np.int64): TensorProto.INT64,
    np.dtype(np.int32): TensorProto.INT32,
    np.dtype(np.bool_): TensorProto.BOOL,
}
HALVES = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}


@dataclass
class Contest:
    """polyop's run, the rivals' runs, and the minimum of data movement and computation."""

    ours: OnnxRun
    rivals: dict[str, Run] = field(default_factory=dict)
    bytes_moved: float = 0  # inputs read once and outputs written once
    flops: float = 0
    tolerance: float = 1e-4  # absolute, because outputs are near 1; results are checked before the timing
    same: Callable[[Sequence[np.ndarray], Sequence[np.ndarray]], bool] | None = None
    yardstick: tuple[str, Run] | None = None  # another computation of the same size, instead of the limit


@dataclass
class Case:
    """One row of the table. `make` gets the number of threads."""

    operator: str
    title: str
    make: Callable[[int], Contest]
    published: dict[str, tuple[float, float]] = field(
        default_factory=dict
    )  # rivals that are not installed here: ms with 1 and 2 threads


@dataclass
class Timing:
    minimum: float  # milliseconds
    median: float
    cold: float | None = None  # the median of single calls after the caches were flushed


@dataclass
class Row:
    operator: str
    title: str
    threads: int
    isa: str
    ours: Timing
    rivals: dict[str, Timing]
    limit_ms: float
    limit_kind: str
    scratch: float = 0  # MiB that our first call held in addition to inputs and outputs
    faults: float = 0  # pages that a later call of ours requested from the system

    @property
    def key(self) -> tuple[str, str, str, int]:
        return self.operator, self.title, self.isa, self.threads

    @property
    def best_rival(self) -> str | None:
        return min(self.rivals, key=lambda name: self.rivals[name].median) if self.rivals else None

    @property
    def ratio(self) -> float | None:
        """Returns the best rival's median time divided by ours."""
        return self.rivals[self.best_rival].median / self.ours.median if self.best_rival else None

    @property
    def cold_ratio(self) -> float | None:
        """Like `ratio`, with cold caches. The best rival may be another one."""
        cold = [timing.cold for timing in self.rivals.values() if timing.cold]
        return min(cold) / self.ours.cold if cold and self.ours.cold else None


# ---- contenders ------------------------------------------------------------------------------------


def normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def bytes_of(*arrays: np.ndarray) -> float:
    return float(sum(a.nbytes for a in arrays))


def session(
    node: str,
    inputs: Mapping[str, np.ndarray | None],
    threads: int,
    outputs: Sequence[str] = ("y",),
    opset: int = 20,
    attributes: Mapping[str, object] | None = None,
    accelerate: bool = False,
) -> OnnxRun:
    """Returns a run of one node in ONNX Runtime. "domain::Type" is a custom node, "Type" a built-in, or polyop's
    accelerator.
    """
    domain, _, op_type = node.rpartition("::")
    names = [name if array is not None else "" for name, array in inputs.items()]
    while names and not names[-1]:
        names.pop()
    feeds = {name: array for name, array in inputs.items() if array is not None}
    infos = [helper.make_tensor_value_info(name, ELEMENT[array.dtype], array.shape) for name, array in feeds.items()]
    proto = helper.make_node(op_type, names, list(outputs), domain=domain, **(attributes or {}))
    graph = helper.make_graph([proto], "g", infos, [onnx.ValueInfoProto(name=o) for o in outputs])
    opsets = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    return model_run(model, feeds, threads, accelerate)


class OnnxRun:
    """A run of a model in ONNX Runtime. Inputs are bound once; ONNX Runtime allocates outputs."""

    def __init__(self, model: onnx.ModelProto, feeds: Mapping[str, np.ndarray], options: ort.SessionOptions) -> None:
        self._model, self._feeds, self._options = model, dict(feeds), options
        self._session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        self._binding = self._session.io_binding()
        for name, array in feeds.items():
            if ELEMENT[array.dtype] == TensorProto.BFLOAT16:  # NumPy has no such type
                bits = array.view(np.uint16)
                value = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, TensorProto.BFLOAT16)
                self._binding.bind_ortvalue_input(name, value)
            else:
                self._binding.bind_cpu_input(name, array)

    def __call__(self) -> Sequence[object]:
        for output in self._session.get_outputs():
            self._binding.bind_output(output.name)
        self._session.run_with_iobinding(self._binding)
        return self._binding.get_outputs()

    def save(self, folder: Path, name: str) -> None:
        """Writes the model to NAME.onnx, and each input to NAME.INPUT.npy."""
        (folder / f"{name}.onnx").write_bytes(self._model.SerializeToString())
        for feed, array in self._feeds.items():
            np.save(folder / f"{name}.{feed}.npy", np.ascontiguousarray(array))

    def in_half(self, dtype: np.dtype, kept: Sequence[str] = ()) -> OnnxRun:
        """Returns the same model with its float inputs rounded to `dtype`, except for those in `kept`."""
        floats = {name for name, array in self._feeds.items() if array.dtype == np.float32 and name not in kept}
        model = onnx.ModelProto()
        model.CopyFrom(self._model)
        for info in model.graph.input:
            if info.name in floats:
                info.type.tensor_type.elem_type = ELEMENT[dtype]
        feeds = {name: array.astype(dtype) if name in floats else array for name, array in self._feeds.items()}
        return OnnxRun(model, feeds, self._options)

    def placed(self, inputs_off: int, outputs_off: int) -> Run:
        """Returns the same run with all inputs and outputs `off` bytes after the start of a cache line."""
        feeds = {name: _off_a_line(array, inputs_off) for name, array in self._feeds.items()}
        outputs = [_off_a_line(array, outputs_off) for array in to_numpy(self())]
        binding = self._session.io_binding()
        for name, array in feeds.items():
            binding.bind_input(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
        for output, array in zip(self._session.get_outputs(), outputs, strict=True):
            binding.bind_output(output.name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)

        def run() -> Sequence[np.ndarray]:
            self._session.run_with_iobinding(binding)
            return outputs

        run.feeds = feeds  # the binding holds only their addresses
        return run


def _off_a_line(array: np.ndarray, off: int) -> np.ndarray:
    """Returns a copy that begins `off` bytes after the start of a cache line."""
    memory = np.empty(array.nbytes + CACHE_LINE + off, np.uint8)
    begin = -memory.ctypes.data % CACHE_LINE + off
    copy = memory[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def opset_of(model: onnx.ModelProto) -> int:
    return next(opset.version for opset in model.opset_import if not opset.domain)


def model_run(
    model: onnx.ModelProto, feeds: Mapping[str, np.ndarray], threads: int, accelerate: bool = False
) -> OnnxRun:
    """Returns a run of a whole model."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.register_custom_ops_library(polyop.get_onnxruntime_op_path())
    if accelerate:
        options.add_session_config_entry("polyop.opset", str(opset_of(model)))
        options.register_custom_ops_library(polyop.get_accelerator_path())
    return OnnxRun(model, feeds, options)


def with_torch(function: Callable[[], torch.Tensor | Sequence[torch.Tensor]]) -> Run:
    """Returns a run of torch code, without autograd."""

    def run() -> Sequence[torch.Tensor]:
        with torch.inference_mode():
            result = function()
        return [result] if isinstance(result, torch.Tensor) else list(result)

    return run


def in_openvino(
    op: str,
    opset: int,
    feeds: Sequence[np.ndarray],
    threads: int,
    constants: Sequence[object] = (),
    **attributes: object,
) -> Run:
    """Returns a run of one of OpenVINO's own operators in float. Inputs are bound once; OpenVINO allocates outputs."""
    parameters = [ov.op.Parameter(ov.Type(array.dtype), ov.PartialShape(array.shape)) for array in feeds]
    arguments = [p.output(0) for p in parameters] + [ov.op.Constant(np.asarray(c)).output(0) for c in constants]
    node = NodeFactory(f"opset{opset}").create(op, arguments, attributes)
    return _openvino_run(ov.Core(), ov.Model(node.outputs(), parameters), feeds, threads)


def model_in_openvino(
    model: onnx.ModelProto | Path, feeds: Mapping[str, np.ndarray], threads: int, core: ov.Core | None = None
) -> Run:
    """Returns a run of a whole model. Models of standard operators run in a core without polyop."""
    core = core or ov.Core()
    read = core.read_model(model if isinstance(model, Path) else model.SerializeToString())
    return _openvino_run(core, read, [feeds[parameter.any_name] for parameter in read.inputs], threads)


def _openvino_run(core: ov.Core, model: ov.Model, feeds: Sequence[np.ndarray], threads: int) -> Run:
    """Returns a run in float. Inputs are bound once; OpenVINO allocates outputs."""
    config = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"}
    request = core.compile_model(model, "CPU", config).create_infer_request()
    for i, array in enumerate(feeds):
        request.set_input_tensor(i, ov.Tensor(array, shared_memory=True))

    def run() -> Sequence[np.ndarray]:
        request.infer()
        return [tensor.data for tensor in request.output_tensors]

    run.feeds = feeds  # the tensors hold only their addresses
    return run


def to_numpy(outputs: Sequence[object]) -> list[np.ndarray]:
    return [o.numpy() if hasattr(o, "numpy") else np.asarray(o) for o in outputs]


# ---- limits ----------------------------------------------------------------------------------------


def copy_bandwidth(threads: int) -> float:
    """Returns bytes per second (read + written) of the C library's copy of 256 MiB, split over threads, the best of
    ten.
    """
    copy = ctypes.CDLL(None).memcpy  # called without the interpreter's lock
    copy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    source, target = np.ones(1 << 28, np.uint8), np.ones(1 << 28, np.uint8)
    size = source.size // threads

    def part(i: int) -> None:
        copy(target.ctypes.data + i * size, source.ctypes.data + i * size, size)

    with ThreadPoolExecutor(threads) as pool:
        return 2 * source.size / min(_once(lambda: list(pool.map(part, range(threads)))) for _ in range(10))


def gemm_speed(threads: int) -> float:
    """Returns floating-point operations per second of torch.mm in float32, the best of ten."""
    torch.set_num_threads(threads)
    a = torch.randn(1024, 1024)
    return 2 * 1024**3 / min(_once(lambda: torch.mm(a, a)) for _ in range(10))


def _once(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


# ---- timing ----------------------------------------------------------------------------------------


class DisagreementError(Exception):
    """A rival gives another result, so its time is meaningless."""


def check(contest: Contest, ours: Sequence[np.ndarray], title: str) -> None:
    """Checks that every rival gives our result. Raises DisagreementError."""
    for name, rival in contest.rivals.items():
        theirs = to_numpy(rival())
        if contest.same is not None:
            equal = contest.same(ours, theirs)
        else:
            equal = all(
                a.shape == b.shape and np.allclose(a, b, rtol=1e-4, atol=contest.tolerance, equal_nan=True)
                for a, b in zip(ours, theirs, strict=False)
            )
        if not equal:
            raise DisagreementError(f"{title}: polyop and {name} do not agree, nothing is timed")


def time_interleaved(runs: Mapping[str, Run]) -> dict[str, Timing]:
    """Returns milliseconds per call. The contenders are interleaved, so that a change of the machine's speed affects
    all of them.

    Each turn starts with a call that is not timed, because caches and waiting threads are those of the previous
    contender.
    """
    repeats, samples, seconds_a_round = {}, {}, 0.0
    for name, run in runs.items():
        first = _once(run)  # warm-up
        if first > SECONDS_A_CASE:  # more calls would not change the minimum
            samples[name] = [first * 1e3]
            continue
        once = max(_once(run), 1e-7)
        repeats[name], samples[name] = max(1, int(SECONDS_A_CONTENDER / ROUNDS / once)), []
        seconds_a_round += repeats[name] * once
    rounds = min(ROUNDS, max(MIN_ROUNDS, int(SECONDS_A_CASE / seconds_a_round)))
    gc.disable()
    for _ in range(rounds):
        for name in repeats:
            runs[name]()
            start = time.perf_counter()
            for _ in range(repeats[name]):
                runs[name]()
            samples[name].append((time.perf_counter() - start) / repeats[name] * 1e3)
    gc.enable()
    return {name: Timing(min(s), float(np.median(s))) for name, s in samples.items()}


def time_cold(runs: Mapping[str, Run], timings: Mapping[str, Timing]) -> None:
    """Times single calls, interleaved, each after the caches were flushed."""
    flush = Flush()
    for name, run in runs.items():
        if timings[name].median > SECONDS_A_CASE * 1e3:
            continue
        calls = COLD_CALLS if timings[name].median < SECONDS_A_COLD_CALL * 1e3 else 1
        samples = []
        for _ in range(calls):
            flush()
            samples.append(_once(run) * 1e3)
        timings[name].cold = float(np.median(samples))


def measure(case: Case, threads: int, bandwidth: float, gemm: float) -> Row:
    torch.set_num_threads(threads)
    contest = case.make(threads)
    outputs, scratch = scratch_of(contest.ours)
    if contest.rivals:
        check(contest, to_numpy(outputs), case.title)
    yardstick = dict([contest.yardstick]) if contest.yardstick else {}
    runs = {"polyop": contest.ours, **contest.rivals, **yardstick}
    timings = time_interleaved(runs)
    time_cold(runs, timings)
    faults = page_faults(contest.ours, FAULT_CALLS)
    for name, milliseconds in case.published.items():
        timings[name] = Timing(*[milliseconds[threads - 1]] * 2)
    moved, computed = contest.bytes_moved / bandwidth * 1e3, contest.flops / gemm * 1e3
    own = timings.pop("polyop")
    limit, kind = max(moved, computed), "memory" if moved >= computed else "arithmetic"
    for name in yardstick:
        limit, kind = timings.pop(name).median, name
    isa = os.environ.get("POLYOP_ISA") or "best"
    return Row(case.operator, case.title, threads, isa, own, timings, limit, kind, scratch, faults)


def machine() -> dict[str, object]:
    """Returns the properties of the machine that are recorded with the results."""
    model = "unknown"
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        model = next(
            (line.split(":")[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line), model
        )
    return {
        "processor": model,
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "onnxruntime": ort.__version__,
        "torch": torch.__version__,
        "openvino": ov.__version__,
        "polyop": polyop.__version__,
        "date": time.strftime("%Y-%m-%d"),
    }


def as_json(row: Row) -> dict[str, object]:
    return {**asdict(row), "best_rival": row.best_rival, "ratio": row.ratio, "cold_ratio": row.cold_ratio}


def from_json(row: Mapping[str, object]) -> Row:
    fields = {key: value for key, value in row.items() if key not in ("best_rival", "ratio", "cold_ratio")}
    fields["ours"] = Timing(**row["ours"])
    fields["rivals"] = {name: Timing(**timing) for name, timing in row["rivals"].items()}
    return Row(**fields)
