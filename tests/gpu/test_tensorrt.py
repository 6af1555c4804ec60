# SPDX-License-Identifier: Apache-2.0
"""Every node in an engine of TensorRT, compared with ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from polyop import tensorrt as polyop_tensorrt
from polyop._onnx.catalogue import find_node
from tests.support.exported_nodes import NODES, Node
from tests.support.on_gpu import CPU_ONLY, expect_close
from tests.support.single_node import run
from tests.support.tensorrt_rtx import model_of

RUNTIME = "tensorrt"
GPU_NODES = [node for node in NODES if find_node(*node.name.split("::"), node.attributes)[0]["name"] not in CPU_ONLY]


@pytest.mark.parametrize("node", GPU_NODES, ids=lambda n: f"{n.name}-{len(n.inputs)}")
@pytest.mark.parametrize("fp16", [False, True], ids=["fp32", "fp16"])
def test_equals_onnxruntime(node: Node, fp16: bool) -> None:
    proto, shapes = model_of(node, dynamic=True)
    engine = polyop_tensorrt.onnx2trt(proto, shapes, fp16_mode=fp16)
    inputs = {f"in{i}": array for i, array in enumerate(node.inputs)}
    names = [f"out{o}" for o in range(len(node.outputs))]
    wrapper = polyop_tensorrt.TRTWrapper(engine, list(shapes), names)
    got = wrapper({name: torch.from_numpy(np.ascontiguousarray(inputs[name])).cuda() for name in shapes})
    expected = run(node.name, inputs, names, **node.attributes)
    for name, theirs in zip(names, expected, strict=True):
        ours = got[name].cpu().numpy()
        if fp16 and theirs.dtype.kind == "f":
            np.testing.assert_allclose(ours, theirs, rtol=2e-2, atol=2e-2)
        elif not fp16:
            expect_close(ours, theirs)
