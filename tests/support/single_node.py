# SPDX-License-Identifier: Apache-2.0
"""Models of one custom node, and sessions with polyop's library, for tests across runtimes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

import polyop

DTYPES = {
    np.dtype(np.float32): TensorProto.FLOAT,
    np.dtype(np.float16): TensorProto.FLOAT16,
    np.dtype(np.float64): TensorProto.DOUBLE,
    np.dtype(np.int32): TensorProto.INT32,
    np.dtype(np.int64): TensorProto.INT64,
    np.dtype(np.int8): TensorProto.INT8,
    np.dtype(np.uint8): TensorProto.UINT8,
    np.dtype(np.bool_): TensorProto.BOOL,
}


def model(
    node: str,
    inputs: Mapping[str, np.ndarray | None],
    outputs: Sequence[str] = ("y",),
    attributes: Mapping[str, object] | None = None,
    shapes: Mapping[str, Sequence[int | str | None] | None] | None = None,
) -> onnx.ModelProto:
    """Returns a model whose only node is `node` ("domain::OpType").

    Inputs have the names and types of `inputs`; None omits an optional input. A shape is the array's unless `shapes`
    has another one (None: unknown rank). Output types are inferred.
    """
    domain, op_type = node.split("::")
    shapes = dict(shapes or {})
    names = [name if array is not None else "" for name, array in inputs.items()]
    while names and not names[-1]:
        names.pop()
    infos = [
        helper.make_tensor_value_info(name, DTYPES[array.dtype], shapes.get(name, array.shape))
        for name, array in inputs.items()
        if array is not None
    ]
    proto = helper.make_node(op_type, names, list(outputs), name="node", domain=domain, **(attributes or {}))
    graph = helper.make_graph([proto], "g", infos, [onnx.ValueInfoProto(name=o) for o in outputs if o])
    opsets = [helper.make_opsetid("", 17)] + [helper.make_opsetid(domain, 1)] * bool(domain)
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def session(proto: onnx.ModelProto, threads: int = 1) -> ort.InferenceSession:
    """Returns a CPU session with polyop's operators registered."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    options.register_custom_ops_library(polyop.get_onnxruntime_op_path())
    return ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run(
    node: str,
    inputs: Mapping[str, np.ndarray | None],
    outputs: Sequence[str] = ("y",),
    threads: int = 1,
    **attributes: object,
) -> list[np.ndarray]:
    """Runs one node on these inputs."""
    proto = model(node, inputs, outputs, attributes)
    feeds = {name: array for name, array in inputs.items() if array is not None}
    return session(proto, threads).run(None, feeds)
