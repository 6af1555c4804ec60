# SPDX-License-Identifier: Apache-2.0
"""The runtime that an optimized file is for."""

from __future__ import annotations

from enum import Enum


class Target(Enum):
    """STANDARD: any runtime, with standard nodes only.
    ONNXRUNTIME: ONNX Runtime and OpenVINO, with polyop's library or without, by functions.
    TENSORRT: TensorRT with NVIDIA's plugins only.
    TENSORRT_POLYOP: TensorRT with polyop's plugin library.
    """

    STANDARD = "standard"
    ONNXRUNTIME = "onnxruntime"
    TENSORRT = "tensorrt"
    TENSORRT_POLYOP = "tensorrt-polyop"

    @property
    def is_tensorrt(self) -> bool:
        return self in (Target.TENSORRT, Target.TENSORRT_POLYOP)
