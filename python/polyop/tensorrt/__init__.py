# SPDX-License-Identifier: Apache-2.0
"""TensorRT and TensorRT-RTX: builds engines from ONNX models and runs them, under the names that MMCV uses.

    engine = onnx2trt("model.onnx", {"input": [[1, 3, 224, 224], [1, 3, 512, 512], [4, 3, 1024, 1024]]}, fp16_mode=True)
    save_trt_engine(engine, "model.engine")
    outputs = TRTWrapper("model.engine", ["input"])({"input": image})     # torch tensors on the GPU

TensorRT-RTX builds engines without a GPU; running one needs a GPU.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from polyop._base.libraries import find_library, library_file
from polyop._base.packages import libraries
from polyop._onnx.atomic_file import prepare_folder, write_atomically
from polyop._onnx.files import without_links
from polyop.errors import MissingRuntimeError, PolyopError
from polyop.tensorrt.graph import FP16, ModelError, preprocess_onnx
from polyop.tensorrt.half import to_fp16
from polyop.tensorrt.int8 import to_int8

if TYPE_CHECKING:
    import torch

__all__ = [
    "FP16",
    "EngineError",
    "ModelError",
    "SerializedEngine",
    "TRTWrapper",
    "get_tensorrt_op_path",
    "is_tensorrt_plugin_loaded",
    "load_tensorrt_plugin",
    "load_trt_engine",
    "onnx2trt",
    "preprocess_onnx",
    "save_trt_engine",
]

Shapes = Mapping[str, Sequence[Sequence[int]]]
"""The smallest, the usual and the largest shape of each input."""

MAX_DEFAULT_BATCH = 8
"""The default range of a dynamic first dimension is 1 to this, if no other dimension is dynamic."""

_MODULES = ("tensorrt", "tensorrt_rtx", "tensorrt_rtx_bindings")


class EngineError(PolyopError, RuntimeError):
    """TensorRT rejects the model, or is not installed; the message says what to do."""


class NoTensorRTError(EngineError, MissingRuntimeError):
    """TensorRT is not installed."""


def get_tensorrt_op_path() -> str:
    """Returns the path of the TensorRT plugin library, or "" if polyop was built without CUDA."""
    library = find_library(library_file("polyop", "tensorrt"))
    return str(library) if library.is_file() else ""


def _runtime() -> Any:
    """Returns the Python module of TensorRT or TensorRT-RTX; POLYOP_TENSORRT selects one of them."""
    requested = os.environ.get("POLYOP_TENSORRT", "")
    for name in (requested,) if requested else _MODULES:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise NoTensorRTError(
        f"no TensorRT was found (tried {', '.join((requested,) if requested else _MODULES)}): "
        "pip install tensorrt, or tensorrt-rtx"
    )


class _Messages:
    """TensorRT's error messages, kept for the errors that polyop raises."""

    def __init__(self, trt: Any, echo: bool) -> None:
        self.errors: list[str] = []
        messages = self.errors

        class Logger(trt.ILogger):
            def __init__(self) -> None:
                trt.ILogger.__init__(self)

            def log(self, severity: Any, text: str) -> None:
                if severity in (trt.ILogger.Severity.ERROR, trt.ILogger.Severity.INTERNAL_ERROR):
                    messages.append(text)
                default = "not found in plugin node" in text  # about default values of attributes, which polyop handles
                if echo or (severity == trt.ILogger.Severity.WARNING and not default):
                    print(f"[{severity.name.lower()}] {text}", file=sys.stderr)

        self.logger = Logger()


_state: dict[str, Any] = {}


def _messages(trt: Any, verbose: bool = False) -> _Messages:
    # The registry keeps the first logger, so all calls share one.
    if "messages" not in _state:
        _state["messages"] = _Messages(trt, verbose)
    return _state["messages"]


def _load_plugins(trt: Any, extra: Sequence[str] = ()) -> None:
    loaded = _state.setdefault("loaded", set())
    registry = trt.get_plugin_registry()
    for path in [get_tensorrt_op_path(), *(str(library) for _, library in libraries("tensorrt")), *extra]:
        if not path or path in loaded:  # loading a library twice fails
            continue
        if registry.load_library(path) is None:
            raise EngineError(f"{path}: loading the plugin library failed: {'; '.join(_messages(trt).errors[-2:])}")
        loaded.add(path)


def is_tensorrt_plugin_loaded() -> bool:
    """Returns True if polyop's plugins are usable. Loads them if TensorRT and the library are installed."""
    try:
        trt = _runtime()
        _messages(trt)
        _load_plugins(trt)
    except EngineError:
        return False
    return bool(get_tensorrt_op_path())


def load_tensorrt_plugin() -> bool:
    """Like `is_tensorrt_plugin_loaded`, under the name that MMCV's users call first."""
    return is_tensorrt_plugin_loaded()


def _registered(trt: Any) -> list[tuple[str, str, str]]:
    return sorted((c.name, c.plugin_version, c.plugin_namespace) for c in trt.get_plugin_registry().all_creators)


@dataclass
class SerializedEngine:
    """The content of an engine file. `open()` deserializes it, which needs a GPU."""

    data: bytes
    shapes: dict[str, list[list[int]]] = field(default_factory=dict)
    runtime: str = ""
    layers: list[dict[str, str]] = field(default_factory=list)
    types: dict[str, str] = field(default_factory=dict)
    """The types of inputs and outputs: f32, i64, …"""
    outputs: dict[str, list[int]] = field(default_factory=dict)
    """The shapes of the outputs, -1 where they depend on the inputs."""

    def serialize(self) -> bytes:
        return self.data

    def open(self) -> Any:
        """Returns TensorRT's ICudaEngine."""
        trt = _runtime()
        _load_plugins(trt)
        runtime = trt.Runtime(_messages(trt).logger)
        engine = runtime.deserialize_cuda_engine(self.data)
        if engine is None:
            raise EngineError("deserializing the engine failed: " + "; ".join(_messages(trt).errors[-3:]))
        return engine


def _check_shapes(model: onnx.ModelProto, shapes: Shapes | None) -> dict[str, list[list[int]]]:
    """Returns the smallest, usual and largest shape of every input: the caller's, or the model's if only the batch is
    dynamic. Raises ModelError for invalid ones.
    """
    given = {name: [list(map(int, s)) for s in three] for name, three in (shapes or {}).items()}
    initialized = {tensor.name for tensor in model.graph.initializer}
    inputs = [info for info in model.graph.input if info.name not in initialized]
    if unknown := given.keys() - {info.name for info in inputs}:
        names = ", ".join(info.name for info in inputs)
        raise ModelError(f"shapes: the model has no input {', '.join(map(repr, sorted(unknown)))}; it has {names}")
    result = {}
    for info in inputs:
        own = [d.dim_value if d.HasField("dim_value") else -1 for d in info.type.tensor_type.shape.dim]
        three = given.get(info.name)
        if three is None and own[:1] == [-1] and all(d >= 0 for d in own[1:]):
            three = [[n, *own[1:]] for n in (1, 1, MAX_DEFAULT_BATCH)]
        if three is None:
            if any(d < 0 for d in own):
                raise ModelError(
                    f"input '{info.name}': expected a fixed shape, got {own}: give its smallest, usual and largest shape, "
                    f"as in --shape {info.name}=1x3x224x224:1x3x512x512:4x3x1024x1024"
                )
            three = [own, own, own]
        if len(three) == 1:
            three = three * 3
        if len(three) != 3 or any(len(shape) != len(own) for shape in three):
            raise ModelError(f"input '{info.name}': expected three shapes of rank {len(own)} ({own}), got {three}")
        for low, usual, high, d in zip(*three, own, strict=True):
            if not low <= usual <= high:
                raise ModelError(f"input '{info.name}': expected shapes in ascending order, got {three}")
            if d >= 0 and (low, high) != (d, d):
                raise ModelError(
                    f"input '{info.name}': expected {d} for a dimension of shape {own}, got {low} to {high}"
                )
        result[info.name] = three
    return result


def _explain(trt: Any, parser: Any, model: onnx.ModelProto) -> str:
    """Returns the parser's errors, with the model's nodes and what to do about them."""
    lines = []
    for i in range(parser.num_errors):
        error = parser.get_error(i)
        node = error.node()
        proto = model.graph.node[node] if 0 <= node < len(model.graph.node) else None
        where = (
            f"node '{proto.name or node}' ({proto.domain + '::' if proto.domain else ''}{proto.op_type})"
            if proto
            else "the model"
        )
        lines.append(f"{where}: {error.desc()}")
        if proto is None or ("lugin" not in error.desc() and "mporter" not in error.desc()):
            continue
        attributes = {a.name: a.s.decode() for a in proto.attribute if a.name in ("plugin_version", "plugin_namespace")}
        expected = (proto.op_type, attributes.get("plugin_version", "1"), attributes.get("plugin_namespace", ""))
        lines.append("    expected the plugin name='{}' version='{}' namespace='{}'".format(*expected))
        same = [c for c in _registered(trt) if c[0] == expected[0]]
        if same:
            lines += ["    registered is       name='{}' version='{}' namespace='{}'".format(*c) for c in same]
        else:
            names = sorted({name for name, _, _ in _registered(trt)})
            lines.append(f"    no plugin of this name is registered; registered are {', '.join(names) or 'none'}")
        if not get_tensorrt_op_path():
            lines.append("    polyop was built without its plugin library: build it where CUDA is installed")
        lines.append("    write the operator with `polyop new`, or load its library (plugins=..., --ops)")
    lines += _messages(trt).errors[-3:] if not lines else []
    return "\n".join(lines)


def _check_parser_opens(trt: Any) -> None:
    if "rtx" not in trt.__name__:
        return
    try:
        ctypes.CDLL("libtensorrt_rtx.so")
    except OSError:
        raise EngineError(
            "TensorRT-RTX's ONNX parser needs libtensorrt_rtx.so, which its wheel lacks: before the program starts, create a "
            "link of that name to libtensorrt_rtx.so.1 in a folder on LD_LIBRARY_PATH (`polyop convert` does so)"
        ) from None


def onnx2trt(
    onnx_model: onnx.ModelProto | str | os.PathLike[str],
    opt_shape_dict: Shapes | None = None,
    log_level: Any = None,
    fp16_mode: bool = False,
    max_workspace_size: int = 0,
    device_id: int = 0,
    *,
    constants: Mapping[str, np.ndarray] | None = None,
    plugins: Sequence[str] = (),
    timing_cache: str | os.PathLike[str] | None = None,
    calibration: Iterable[Mapping[str, np.ndarray]] | None = None,
    builder_optimization_level: int | None = None,
    progress: Callable[[str, int, int], bool] | None = None,
    verbose: bool = False,
) -> SerializedEngine:
    """Builds an engine from an ONNX model.

    Args:
        onnx_model: the model or its file.
        opt_shape_dict: the smallest, the usual and the largest shape of each input with dynamic dimensions. An input
            that is not named, and whose only dynamic dimension is the first, gets batches of 1 to 8.
        log_level: ignored; `verbose` prints all of TensorRT's messages.
        fp16_mode: computes in half precision wherever the operators can; inputs and outputs keep their types.
        max_workspace_size: bytes of GPU memory that layers may use; 0: TensorRT's default.
        device_id: the GPU to build for, if there is one.
        constants: values of inputs that become constants, such as scales.
        plugins: further plugin libraries.
        timing_cache: a file of measurements, which is read if it exists, and written after the build.
        calibration: inputs of runs of the model; convolutions and matrix products compute in int8, with scales from
            these runs.
        builder_optimization_level: how long TensorRT searches for fast kernels, from 0 to 5; None: its default.
        progress: called as (phase, step, steps); returning False stops the build.

    Raises:
        ModelError: the shapes do not fit the model.
        EngineError: TensorRT rejects the model; the message names the node and says what to do.
        OSError: the timing cache cannot be read or written. This is known before the engine is built.
    """
    del log_level
    if timing_cache is not None:
        prepare_folder(Path(timing_cache))
    if isinstance(onnx_model, onnx.ModelProto):
        model = onnx_model
    else:
        with without_links(Path(onnx_model)) as file:
            model = onnx.load(file)
    if calibration is not None:
        model = to_int8(model, calibration)
    model = preprocess_onnx(model, constants)
    shapes = _check_shapes(model, opt_shape_dict)
    if fp16_mode:
        model = to_fp16(model)

    trt = _runtime()
    messages = _messages(trt, verbose)
    messages.errors.clear()
    _load_plugins(trt, [os.fspath(p) for p in plugins])
    _check_parser_opens(trt)
    builder = trt.Builder(messages.logger)
    flags = 0
    if hasattr(trt.NetworkDefinitionCreationFlag, "STRONGLY_TYPED"):
        flags = 1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED)
    network = builder.create_network(flags)
    parser = trt.OnnxParser(network, messages.logger)
    if not parser.parse(model.SerializeToString()):
        raise EngineError(_explain(trt, parser, model))

    config = builder.create_builder_config()
    if max_workspace_size > 0:
        config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, max_workspace_size)
    if builder_optimization_level is not None:
        config.builder_optimization_level = builder_optimization_level
    profile = builder.create_optimization_profile()
    for name, three in shapes.items():
        profile.set_shape(name, *three)
    config.add_optimization_profile(profile)
    cache = _use_timing_cache(trt, config, timing_cache)
    if progress is not None:
        monitor = _monitor(trt, progress)
        config.progress_monitor = monitor
    layers = [
        {
            "name": layer.name,
            "type": str(layer.type).rsplit(".", 1)[-1],
            "output": "x".join(str(d) for d in layer.get_output(0).shape) if layer.num_outputs else "",
            "precision": _type_name(trt, layer.get_output(0).dtype) if layer.num_outputs else "",
        }
        for layer in (network.get_layer(i) for i in range(network.num_layers))
    ]
    data = builder.build_serialized_network(network, config)
    if data is None:
        raise EngineError("building the engine failed: " + ("; ".join(messages.errors[-3:]) or "stopped by the caller"))
    if cache is not None and timing_cache is not None:
        write_atomically(Path(timing_cache), bytes(cache.serialize()))
    runtime = f"{trt.__name__.removesuffix('_bindings')} {trt.__version__}"
    inputs = [network.get_input(i) for i in range(network.num_inputs)]
    outputs = [network.get_output(i) for i in range(network.num_outputs)]
    types = {tensor.name: _type_name(trt, tensor.dtype) for tensor in [*inputs, *outputs]}
    return SerializedEngine(bytes(data), shapes, runtime, layers, types, {t.name: list(t.shape) for t in outputs})


def _type_name(trt: Any, dtype: Any) -> str:
    names = {
        trt.float32: "f32",
        trt.float16: "f16",
        trt.int32: "i32",
        trt.int64: "i64",
        trt.bool: "bool",
        trt.int8: "i8",
    }
    return names.get(dtype, "bf16" if dtype == trt.bfloat16 else "u8")


def _use_timing_cache(trt: Any, config: Any, path: str | os.PathLike[str] | None) -> Any:
    if path is None or not hasattr(config, "create_timing_cache"):
        return None
    old = Path(path).read_bytes() if Path(path).exists() else b""
    cache = config.create_timing_cache(old)
    if cache is not None:
        config.set_timing_cache(cache, ignore_mismatch=False)
    return cache


def _monitor(trt: Any, progress: Callable[[str, int, int], bool]) -> Any:
    class Monitor(trt.IProgressMonitor):
        def __init__(self) -> None:
            trt.IProgressMonitor.__init__(self)
            self.steps: dict[str, int] = {}

        def phase_start(self, phase: str, parent: str | None, steps: int) -> None:
            self.steps[phase] = steps

        def step_complete(self, phase: str, step: int) -> bool:
            return progress(phase, step + 1, self.steps.get(phase, step + 1)) is not False

        def phase_finish(self, phase: str) -> None:
            self.steps.pop(phase, None)

    return Monitor()


def save_trt_engine(engine: Any, path: str | os.PathLike[str]) -> None:
    """Writes an engine of `onnx2trt` or TensorRT to a file."""
    Path(path).write_bytes(bytes(engine.serialize()))


def load_trt_engine(path: str | os.PathLike[str]) -> Any:
    """Loads polyop's plugins and returns TensorRT's ICudaEngine from a file. Needs a GPU."""
    return SerializedEngine(Path(path).read_bytes()).open()


class TRTWrapper:
    """Runs an engine with torch tensors on the GPU, on torch's current stream.

    Args:
        engine: an engine or its file.
        input_names: the inputs to pass; all of the engine's by default.
        output_names: the outputs to return; all of the engine's by default.
    """

    def __init__(
        self, engine: Any, input_names: Sequence[str] | None = None, output_names: Sequence[str] | None = None
    ) -> None:
        self.trt = _runtime()
        if isinstance(engine, (str, os.PathLike)):
            engine = load_trt_engine(engine)
        elif isinstance(engine, SerializedEngine):
            engine = engine.open()
        self.engine = engine
        self.context = engine.create_execution_context()
        names = [engine.get_tensor_name(i) for i in range(engine.num_io_tensors)]
        modes = {name: engine.get_tensor_mode(name) for name in names}
        own_inputs = [n for n in names if modes[n] == self.trt.TensorIOMode.INPUT]
        own_outputs = [n for n in names if modes[n] == self.trt.TensorIOMode.OUTPUT]
        self.input_names = list(input_names or own_inputs)
        self.output_names = list(output_names or own_outputs)
        for names, own, what in ((self.input_names, own_inputs, "input"), (self.output_names, own_outputs, "output")):
            for name in names:
                if name not in own:
                    raise EngineError(f"expected an {what} of the engine ({', '.join(own)}), got '{name}'")
        self._all_outputs = own_outputs

    def __call__(self, inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return self.forward(inputs)

    def forward(self, inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Runs the engine. Raises EngineError if an input is missing or its shape is outside the engine's profile."""
        import torch

        kept = []
        for name in self.input_names:
            if name not in inputs:
                raise EngineError(f"expected the inputs {', '.join(self.input_names)}, got no '{name}'")
            dtype = _torch_type(torch, self.trt.nptype(self.engine.get_tensor_dtype(name)))
            tensor = inputs[name].to(device="cuda", dtype=dtype).contiguous()
            kept.append(tensor)
            if not self.context.set_input_shape(name, tuple(tensor.shape)):
                low, _, high = self.engine.get_tensor_profile_shape(name, 0)
                raise EngineError(f"input '{name}': expected a shape from {low} to {high}, got {tuple(tensor.shape)}")
            self.context.set_tensor_address(name, tensor.data_ptr())
        allocators = {name: _output_allocator(self.trt, torch) for name in self._all_outputs}
        for name, allocator in allocators.items():
            self.context.set_output_allocator(name, allocator)
        if not self.context.execute_async_v3(torch.cuda.current_stream().cuda_stream):
            raise EngineError("running the engine failed: " + "; ".join(_messages(self.trt).errors[-3:]))
        results = {}
        for name in self.output_names:
            dtype = _torch_type(torch, self.trt.nptype(self.engine.get_tensor_dtype(name)))
            results[name] = allocators[name].result(dtype)
        return results


def _torch_type(torch: Any, numpy_type: Any) -> Any:
    return torch.from_numpy(np.empty(0, numpy_type)).dtype


def _output_allocator(trt: Any, torch: Any) -> Any:
    """Allocates torch memory for an output whose shape is known after the run."""

    class Allocator(trt.IOutputAllocator):
        def __init__(self) -> None:
            trt.IOutputAllocator.__init__(self)
            self.memory: Any = None
            self.shape: tuple[int, ...] = ()

        def reallocate_output(self, name: str, memory: int, size: int, alignment: int) -> int:
            del name, memory, alignment
            self.memory = torch.empty(max(size, 1), dtype=torch.uint8, device="cuda")
            return self.memory.data_ptr()

        def reallocate_output_async(self, name: str, memory: int, size: int, alignment: int, stream: int) -> int:
            del stream
            return self.reallocate_output(name, memory, size, alignment)

        def notify_shape(self, name: str, shape: Any) -> None:
            del name
            self.shape = tuple(shape)

        def result(self, dtype: Any) -> Any:
            count = int(np.prod(self.shape, dtype=np.int64))
            return self.memory[: count * dtype.itemsize].view(dtype).reshape(self.shape)

    return Allocator()
