# SPDX-License-Identifier: Apache-2.0
"""Runs of nodes and models in ONNX Runtime, OpenVINO and PyTorch, for cases. The runtimes are imported where they are
used, because a machine with a GPU may lack them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

import polyop
from polyop import formulas

if TYPE_CHECKING:
    import onnx
    import onnxruntime as ort
    import openvino as ov

Run = Callable[[], Sequence[np.ndarray]]
CACHE_LINE = 64


def normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def bytes_of(*arrays: np.ndarray) -> float:
    return float(sum(a.nbytes for a in arrays))


def element(dtype: np.dtype) -> int:
    """Returns ONNX's number of a type."""
    from onnx import helper

    return helper.np_dtype_to_tensor_dtype(dtype)


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
    import onnx
    from onnx import helper

    domain, _, op_type = node.rpartition("::")
    names = [name if array is not None else "" for name, array in inputs.items()]
    while names and not names[-1]:
        names.pop()
    feeds = {name: array for name, array in inputs.items() if array is not None}
    infos = [helper.make_tensor_value_info(name, element(array.dtype), array.shape) for name, array in feeds.items()]
    proto = helper.make_node(op_type, names, list(outputs), domain=domain, **(attributes or {}))
    graph = helper.make_graph([proto], "g", infos, [onnx.ValueInfoProto(name=o) for o in outputs])
    opsets = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    return model_run(model, feeds, threads, accelerate)


class OnnxRun:
    """A run of a model in ONNX Runtime. Inputs are bound once; ONNX Runtime allocates outputs."""

    def __init__(self, model: onnx.ModelProto, feeds: Mapping[str, np.ndarray], options: ort.SessionOptions) -> None:
        import onnxruntime as ort

        self._model, self._feeds, self._options = model, dict(feeds), options
        self._session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        self._binding = self._session.io_binding()
        for name, array in feeds.items():
            if array.dtype.name == "bfloat16":  # NumPy has no such type
                bits = array.view(np.uint16)
                value = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, element(array.dtype))
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

    def in_half(self, name: str, kept: Sequence[str] = ()) -> OnnxRun:
        """Returns the same model with its float inputs rounded to "f16" or "bf16", except for those in `kept`."""
        import ml_dtypes

        dtype = np.dtype(np.float16 if name == "f16" else ml_dtypes.bfloat16)
        floats = {name for name, array in self._feeds.items() if array.dtype == np.float32 and name not in kept}
        model = copy.deepcopy(self._model)
        for info in model.graph.input:
            if info.name in floats:
                info.type.tensor_type.elem_type = element(dtype)
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
    import onnxruntime as ort

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


def in_torch(operator: str, *inputs: np.ndarray, **attributes: object) -> Run:
    """Returns a run of the operator's formula in torch."""
    tensors = [torch.from_numpy(t) for t in inputs]
    formula = formulas.find(operator).formula
    return with_torch(lambda: formula(*tensors, **attributes).contiguous())


def in_openvino(
    op: str,
    opset: int,
    feeds: Sequence[np.ndarray],
    threads: int,
    constants: Sequence[object] = (),
    **attributes: object,
) -> Run:
    """Returns a run of one of OpenVINO's own operators in float. Inputs are bound once; OpenVINO allocates outputs."""
    import openvino as ov
    from openvino.utils.node_factory import NodeFactory

    parameters = [ov.op.Parameter(ov.Type(array.dtype), ov.PartialShape(array.shape)) for array in feeds]
    arguments = [p.output(0) for p in parameters] + [ov.op.Constant(np.asarray(c)).output(0) for c in constants]
    node = NodeFactory(f"opset{opset}").create(op, arguments, attributes)
    return _openvino_run(ov.Core(), ov.Model(node.outputs(), parameters), feeds, threads)


def model_in_openvino(
    model: onnx.ModelProto | Path, feeds: Mapping[str, np.ndarray], threads: int, core: ov.Core | None = None
) -> Run:
    """Returns a run of a whole model. Models of standard operators run in a core without polyop."""
    import openvino as ov

    core = core or ov.Core()
    read = core.read_model(model if isinstance(model, Path) else model.SerializeToString())
    return _openvino_run(core, read, [feeds[parameter.any_name] for parameter in read.inputs], threads)


def _openvino_run(core: ov.Core, model: ov.Model, feeds: Sequence[np.ndarray], threads: int) -> Run:
    """Returns a run in float. Inputs are bound once; OpenVINO allocates outputs."""
    import openvino as ov

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


def first_output(run: Run) -> Run:
    return lambda: [run()[0]]


def nearly_all_equal(ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray]) -> bool:
    """Compares results of nearest: coordinates between two pixels may be rounded differently, at most 1 in 10,000."""
    return float((ours[0] != theirs[0]).mean()) < 1e-4
