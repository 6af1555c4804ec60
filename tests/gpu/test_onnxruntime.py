# SPDX-License-Identifier: Apache-2.0
"""Every node in ONNX Runtime's CUDA provider, and the provider's ways to pass data, streams and graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import torch
from onnx import TensorProto, helper

import polyop
from polyop._onnx.catalogue import find_node
from tests.support.exported_nodes import NODES, Node
from tests.support.on_gpu import CPU_ONLY, expect_close
from tests.support.single_node import model, run, session

RUNTIME = "onnxruntime"


def record_of(node: Node) -> dict[str, Any]:
    return find_node(*node.name.split("::"), node.attributes)[0]


GPU_NODES = [node for node in NODES if record_of(node)["name"] not in CPU_ONLY]


def id_of(node: Node) -> str:
    return f"{node.name}-{len(node.inputs)}"


def node_of(name: str) -> Node:
    return next(node for node in GPU_NODES if node.name == name)


def on_gpu(proto: onnx.ModelProto, **options: str) -> ort.InferenceSession:
    """Returns a session all of whose nodes run in the CUDA provider."""
    if hasattr(ort, "preload_dlls"):
        ort.preload_dlls()
    settings = ort.SessionOptions()
    settings.register_custom_ops_library(polyop.get_onnxruntime_op_path())
    settings.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    created = ort.InferenceSession(proto.SerializeToString(), settings, providers=[("CUDAExecutionProvider", options)])
    assert created.get_providers()[0] == "CUDAExecutionProvider"
    return created


def feeds_of(node: Node) -> dict[str, np.ndarray]:
    return {f"in{i}": array for i, array in enumerate(node.inputs) if array is not None}


def outputs_of(node: Node) -> list[str]:
    return [f"out{o}" for o in range(len(node.outputs))]


def model_of(node: Node, inputs: Sequence[np.ndarray | None] | None = None) -> onnx.ModelProto:
    named = {f"in{i}": array for i, array in enumerate(node.inputs if inputs is None else inputs)}
    return model(node.name, named, outputs_of(node), node.attributes)


@pytest.mark.parametrize("node", GPU_NODES, ids=id_of)
def test_equals_the_cpu(node: Node) -> None:
    got = on_gpu(model_of(node)).run(None, feeds_of(node))
    expected = session(model_of(node)).run(None, feeds_of(node))
    for ours, theirs in zip(got, expected, strict=True):
        expect_close(ours, theirs)


def in_half_precision(node: Node) -> list[np.ndarray | None] | None:
    """Returns the inputs in float16, where they may have this type, or None if no kernel takes it."""
    specs = record_of(node)["inputs"]
    result = []
    found = False
    for i, array in enumerate(node.inputs):
        spec = specs[min(i, len(specs) - 1)]
        real = array is not None and array.dtype == np.float32
        takes = real and "f16" in spec["types"]
        if real and spec["type"] == "T" and not takes:
            return None
        found |= takes
        result.append(array.astype(np.float16) if takes else array)
    return result if found else None


@pytest.mark.parametrize("node", [node for node in GPU_NODES if in_half_precision(node)], ids=id_of)
def test_float16_equals_the_cpu(node: Node) -> None:
    inputs = in_half_precision(node)
    proto = model_of(node, inputs)
    feeds = {f"in{i}": array for i, array in enumerate(inputs) if array is not None}
    got = on_gpu(proto).run(None, feeds)
    for ours, theirs in zip(got, session(proto).run(None, feeds), strict=True):
        if theirs.dtype == np.float16:
            assert ours.dtype == theirs.dtype
            scale = max(1.0, float(np.nanmax(np.abs(theirs.astype(np.float64)), initial=0)))
            np.testing.assert_allclose(ours.astype(np.float64), theirs.astype(np.float64), rtol=8e-3, atol=8e-3 * scale)
        else:
            expect_close(ours, theirs)


# ---- memory, streams and graphs --------------------------------------------------------------------------

ALIGN = "mmcv::MMCVRoiAlign"
SEVERAL = [ALIGN, "mmcv::grid_sampler", "mmcv::MMCVModulatedDeformConv2d", "mmcv::NonMaxSuppression"]


@pytest.mark.parametrize("name", SEVERAL)
def test_io_binding(name: str) -> None:
    """Inputs are in the GPU's memory, and so are outputs, which ONNX Runtime allocates."""
    node = node_of(name)
    created = on_gpu(model_of(node))
    binding = created.io_binding()
    for input_name, array in feeds_of(node).items():
        binding.bind_ortvalue_input(input_name, ort.OrtValue.ortvalue_from_numpy(array, "cuda", 0))
    for output in outputs_of(node):
        binding.bind_output(output, "cuda")
    for _ in range(2):
        created.run_with_iobinding(binding)
        for value in binding.get_outputs():
            assert value.device_name().lower() == "cuda"
        expected = session(model_of(node)).run(None, feeds_of(node))
        for ours, theirs in zip(binding.copy_outputs_to_cpu(), expected, strict=True):
            expect_close(ours, theirs)


@pytest.mark.parametrize("name", SEVERAL)
def test_the_stream_of_another_library(name: str) -> None:
    """The session runs on PyTorch's stream, so it reads inputs that PyTorch has not yet computed."""
    node = node_of(name)
    stream = torch.cuda.Stream()
    created = on_gpu(model_of(node), user_compute_stream=str(stream.cuda_stream))
    values = {key: torch.from_numpy(array).cuda() for key, array in feeds_of(node).items()}
    static = {key: torch.zeros_like(value) for key, value in values.items()}
    binding = created.io_binding()
    for key, tensor in static.items():
        dtype = feeds_of(node)[key].dtype
        binding.bind_input(key, "cuda", 0, dtype, list(tensor.shape), tensor.data_ptr())
    for output in outputs_of(node):
        binding.bind_output(output, "cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(100_000_000)
        for key, tensor in static.items():
            tensor.copy_(values[key])
        created.run_with_iobinding(binding)
        stream.synchronize()
    for ours, theirs in zip(
        binding.copy_outputs_to_cpu(), session(model_of(node)).run(None, feeds_of(node)), strict=True
    ):
        expect_close(ours, theirs)


@pytest.mark.parametrize("name", [name for name in SEVERAL if name != "mmcv::NonMaxSuppression"])
def test_cuda_graphs(name: str) -> None:
    """`enable_cuda_graph`: the third run and later ones replay a graph, also with new inputs."""
    node = node_of(name)
    created = on_gpu(model_of(node), enable_cuda_graph="1")
    values = {key: ort.OrtValue.ortvalue_from_numpy(array, "cuda", 0) for key, array in feeds_of(node).items()}
    binding = created.io_binding()
    for key, value in values.items():
        binding.bind_ortvalue_input(key, value)
    outputs = [
        ort.OrtValue.ortvalue_from_shape_and_type(list(shape), dtype, "cuda", 0) for dtype, shape in node.outputs
    ]
    for output, value in zip(outputs_of(node), outputs, strict=True):
        binding.bind_ortvalue_output(output, value)
    cpu = session(model_of(node))
    for factor in (1, 1, 1, 0.5, 0.25):
        feeds = feeds_of(node)
        feeds["in0"] = feeds["in0"] * np.float32(factor)
        values["in0"].update_inplace(feeds["in0"])
        created.run_with_iobinding(binding)
        for ours, theirs in zip(outputs, cpu.run(None, feeds), strict=True):
            expect_close(ours.numpy(), theirs)


def between_standard_nodes() -> tuple[onnx.ModelProto, Mapping[str, np.ndarray]]:
    """Returns a model in which nodes of ONNX precede, separate and follow nodes of polyop."""
    align = node_of(ALIGN)
    x, rois = align.inputs
    assert x is not None
    assert rois is not None
    nodes = [
        helper.make_node("Tanh", ["x"], ["a"]),
        helper.make_node(
            "grid_sampler", ["a", "grid"], ["b"], domain="mmcv", interpolation_mode=0, padding_mode=0, align_corners=0
        ),
        helper.make_node("Sigmoid", ["b"], ["c"]),
        helper.make_node("MMCVRoiAlign", ["c", "rois"], ["d"], domain="mmcv", **align.attributes),
        helper.make_node("Exp", ["d"], ["y"]),
    ]
    grid = np.random.default_rng(0).random((2, 11, 9, 2), np.float32) * 2 - 1
    feeds = {"x": x, "grid": grid, "rois": rois}
    infos = [helper.make_tensor_value_info(key, TensorProto.FLOAT, array.shape) for key, array in feeds.items()]
    graph = helper.make_graph(nodes, "g", infos, [onnx.ValueInfoProto(name="y")])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mmcv", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8), feeds


def test_nodes_between_standard_nodes() -> None:
    proto, feeds = between_standard_nodes()
    (expected,) = session(proto).run(None, feeds)
    created = on_gpu(proto)
    for _ in range(3):
        (got,) = created.run(None, feeds)
        expect_close(got, expected, 1e-4)


def test_runs_of_several_threads() -> None:
    """Threads share a session, whose nodes have scratch memory for each run."""
    proto, feeds = between_standard_nodes()
    created, cpu = on_gpu(proto), session(proto)
    variants = [{**feeds, "x": feeds["x"] * np.float32(1 + i / 4)} for i in range(8)]
    expected = [cpu.run(None, variant)[0] for variant in variants]

    def work(index: int) -> list[np.ndarray]:
        return [created.run(None, variants[index])[0] for _ in range(10)]

    with ThreadPoolExecutor(len(variants)) as pool:
        for want, results in zip(expected, pool.map(work, range(len(variants))), strict=True):
            for got in results:
                expect_close(got, want, 1e-4)


def test_errors_name_the_operator_and_the_node() -> None:
    node = node_of(ALIGN)
    x, rois = node.inputs
    assert rois is not None
    shapes = {"in1": [None, None]}
    proto = model(node.name, {"in0": x, "in1": rois}, outputs_of(node), node.attributes, shapes)
    created = on_gpu(proto)
    with pytest.raises(Exception, match=r"'rois': expected dimension 1 to be 5, got 4"):
        created.run(None, {"in0": x, "in1": np.ascontiguousarray(rois[:, :4])})
    (got,) = created.run(None, {"in0": x, "in1": rois})
    expect_close(got, run(node.name, {"in0": x, "in1": rois}, ("out0",), **node.attributes)[0])
