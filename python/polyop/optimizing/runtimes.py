# SPDX-License-Identifier: Apache-2.0
"""What runtimes lack of ONNX's operators, or were reported to compute wrong.

Each entry names where this is stated: ORT is github.com/microsoft/onnxruntime, TensorRT github.com/NVIDIA/TensorRT.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import onnx_ir as ir


def _always(node: ir.Node) -> bool:
    return True


def _reduces(node: ir.Node) -> bool:
    return node.attributes.get_string("reduction", "none") != "none"


def _is_cubic(node: ir.Node) -> bool:
    return node.attributes.get_string("mode", "nearest") == "cubic"


@dataclass(frozen=True)
class Entry:
    """An operator; why it is replaced; and the nodes of it that are."""

    operator: str
    why: str
    applies: Callable[[ir.Node], bool] = _always


_LISTS = {
    "webgpu": [
        Entry("GridSample", "was reported to compute deformable attention of RT-DETRv2 wrong (ORT issue 32275)"),
        Entry("DeformConv", "has no kernel"),
        Entry("RoiAlign", "has no kernel"),
    ],
    "directml": [
        Entry("GridSample", "was reported to give other boxes of D-FINE (issue 327 of D-FINE) than the CPU"),
        Entry("ScatterND", "was reported to reject int64 indices of D-FINE (ORT issue 27118)"),
        Entry("DeformConv", "has no kernel"),
    ],
    # ORT's page "CoreML execution provider", ML programs.
    "coreml": [
        Entry("GridSample", "takes images and mode linear only, without reflection unless corners are aligned"),
        Entry("GatherElements", "has no kernel"),
        Entry("ScatterElements", "has no kernel"),
        Entry("ScatterND", "has no kernel"),
        Entry("Einsum", "has no kernel"),
        Entry("CumSum", "has no kernel"),
        Entry("RoiAlign", "has no kernel"),
        Entry("DeformConv", "has no kernel"),
        Entry("Resize", "takes modes linear and nearest only", _is_cubic),
    ],
    "openvino": [
        Entry("GridSample", "was reported to give wrong boxes of D-FINE on GPUs (openvino issue 31928)"),
    ],
    "tensorrt": [
        Entry("GridSample", "was reported to lose detections of DETRs (TensorRT issues 4813 and 4646)"),
        Entry("ScatterND", "has no reduction", _reduces),
        Entry("ScatterElements", "has no reduction", _reduces),
    ],
}

RUNTIMES = tuple(_LISTS)
_TITLES = {
    "webgpu": "WebGPU",
    "directml": "DirectML",
    "coreml": "CoreML",
    "openvino": "OpenVINO",
    "tensorrt": "TensorRT",
}


def entries(runtime: str = "", without: Iterable[str] = ()) -> dict[str, Entry]:
    """Returns the list of a runtime, or none, and operators that are replaced wherever they are."""
    listed = {e.operator: replace(e, why=f"{_TITLES[runtime]} {e.why}") for e in _LISTS.get(runtime, ())}
    return {**listed, **{operator: Entry(operator, "") for operator in without}}
