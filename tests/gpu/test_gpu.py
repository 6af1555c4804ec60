"""Every operator on the GPU, compared with the CPU: in PyTorch, in ONNX Runtime's CUDA provider, in JAX, in TensorRT.

If onnxruntime-gpu, JAX with CUDA or TensorRT is not installed, the run reports it.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
import torch
from torch.utils._pytree import tree_map

import polyop
from polyop import tensorrt as polyop_tensorrt
from polyop._calls import operators
from tests.support.array_calls import plain_calls
from tests.support.exported_nodes import NODES, Node
from tests.support.single_node import run
from tests.support.tensorrt_rtx import model_of
from tests.support.torch_calls import CALLS, as_tuple, call_of, name_of

HAS_PROVIDER = "CUDAExecutionProvider" in ort.get_available_providers()
HAS_JAX = importlib.util.find_spec("jax_cuda13_plugin") or importlib.util.find_spec("jax_cuda12_plugin")
HAS_TENSORRT = any(importlib.util.find_spec(name) for name in ("tensorrt", "tensorrt_rtx", "tensorrt_rtx_bindings"))


def to_cuda(value: Any) -> Any:
    return tree_map(lambda v: v.cuda() if isinstance(v, torch.Tensor) else v, value)


def expect_close(got: np.ndarray, want: np.ndarray, tolerance: float = 2e-5) -> None:
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    if got.dtype.kind == "f":
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
    else:
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("node", CALLS, ids=name_of)
def test_torch_on_the_gpu_equals_the_cpu(node: Node) -> None:
    operator, args, given = call_of(node)
    want = as_tuple(operator.overload(*args, **given))
    got = as_tuple(operator.overload(*[to_cuda(a) for a in args], **given))
    for ours, theirs in zip(got, want, strict=True):
        assert ours.is_cuda
        expect_close(ours.cpu().numpy(), theirs.numpy())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["f16", "bf16"])
@pytest.mark.parametrize("node", CALLS, ids=name_of)
def test_torch_in_half_precision_equals_the_cpu(node: Node, dtype: torch.dtype) -> None:
    operator, args, given = call_of(node)
    specs = operator.inputs
    halves = [
        tree_map(lambda t: t.to(dtype), argument) if spec.dtype == "T" and argument is not None else argument
        for spec, argument in zip(specs, args, strict=True)
    ]
    try:
        want = as_tuple(operator.overload(*halves, **given))
    except RuntimeError as error:
        if "no kernel takes" not in str(error):
            raise
        return  # some operators support only float32
    got = as_tuple(operator.overload(*[to_cuda(a) for a in halves], **given))
    for ours, theirs in zip(got, want, strict=True):
        assert ours.dtype == theirs.dtype
        expect_close(ours.float().cpu().numpy(), theirs.float().numpy(), 8 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("node", CALLS, ids=name_of)
def test_torch_on_the_callers_stream(node: Node) -> None:
    operator, args, given = call_of(node)
    want = as_tuple(operator.overload(*args, **given))
    stream = torch.cuda.Stream()
    on_gpu = [to_cuda(a) for a in args]
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(10_000_000)  # work on another stream would run too early
        results = [as_tuple(operator.overload(*on_gpu, **given)) for _ in range(3)]
    stream.synchronize()
    for got in results:
        for ours, theirs in zip(got, want, strict=True):
            expect_close(ours.cpu().numpy(), theirs.numpy())


@pytest.mark.skipif(not HAS_PROVIDER, reason="this ONNX Runtime has no CUDA provider: pip install onnxruntime-gpu")
@pytest.mark.parametrize("node", NODES, ids=lambda n: f"{n.name}-{len(n.inputs)}")
def test_onnxruntime_on_the_gpu_equals_the_cpu(node: Node) -> None:
    from tests.support.single_node import model

    inputs = {f"in{i}": array for i, array in enumerate(node.inputs)}
    names = [f"out{o}" for o in range(len(node.outputs))]
    options = ort.SessionOptions()
    options.register_custom_ops_library(polyop.get_onnxruntime_op_path())
    session = ort.InferenceSession(
        model(node.name, inputs, names, node.attributes).SerializeToString(),
        options,
        providers=["CUDAExecutionProvider"],
    )
    got = session.run(None, {name: array for name, array in inputs.items() if array is not None})
    for ours, theirs in zip(got, run(node.name, inputs, names, **node.attributes), strict=True):
        expect_close(ours, theirs)


@pytest.mark.skipif(not HAS_JAX, reason="JAX with CUDA is not installed: pip install 'jax[cuda13]'")
@pytest.mark.parametrize(("op", "node"), plain_calls())
def test_jax_on_the_gpu_equals_the_cpu(op: str, node: Node) -> None:
    import jax

    import polyop.jax

    known = {i for i, given in enumerate(operators()[op]["inputs"]) if given["value"]}
    call = getattr(polyop.jax, op)

    def on(platform: str) -> tuple[Any, ...]:
        device = jax.devices(platform)[0]
        inputs = [
            array if array is None or i in known else jax.device_put(array, device)
            for i, array in enumerate(node.inputs)
        ]
        with jax.default_device(device):
            return as_tuple(call(*inputs, **node.attributes))

    for ours, theirs in zip(on("cuda"), on("cpu"), strict=True):
        expect_close(np.asarray(ours), np.asarray(theirs))


@pytest.mark.skipif(not HAS_TENSORRT, reason="TensorRT is not installed: pip install tensorrt, or tensorrt-rtx")
@pytest.mark.parametrize("node", NODES, ids=lambda n: f"{n.name}-{len(n.inputs)}")
@pytest.mark.parametrize("fp16", [False, True], ids=["fp32", "fp16"])
def test_tensorrt_equals_onnxruntime(node: Node, fp16: bool) -> None:
    proto, shapes = model_of(node, dynamic=True)
    engine = polyop_tensorrt.onnx2trt(proto, shapes, fp16_mode=fp16)
    inputs = {f"in{i}": array for i, array in enumerate(node.inputs)}
    names = [f"out{o}" for o in range(len(node.outputs))]
    wrapper = polyop_tensorrt.TRTWrapper(engine, list(shapes), names)
    got = wrapper({name: torch.from_numpy(np.ascontiguousarray(inputs[name])).cuda() for name in shapes})
    want = run(node.name, inputs, names, **node.attributes)
    for name, theirs in zip(names, want, strict=True):
        ours = got[name].cpu().numpy()
        if fp16 and theirs.dtype.kind == "f":
            np.testing.assert_allclose(ours, theirs, rtol=2e-2, atol=2e-2)
        elif not fp16:
            expect_close(ours, theirs)
