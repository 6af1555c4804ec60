# SPDX-License-Identifier: Apache-2.0
"""The operators as functions of NumPy arrays, without PyTorch or ONNX Runtime.

    import polyop.numpy
    keep = polyop.numpy.nms(boxes, scores, iou_threshold=0.5)

The functions and their parameters are those of every framework: polyop.functional, polyop.jax. Inputs are NumPy arrays,
objects with `__dlpack__` or the buffer protocol, or lists of numbers; contiguous memory is not copied. `out` receives
the outputs. Errors are ValueErrors with the message of every runtime. `set_num_threads` sets the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyop._arrays.calls import array_of, call, operators, set_num_threads
from polyop._arrays.composites import Arrays
from polyop._arrays.functions import define_all


class _Arrays(Arrays):
    def of(self, value: Any, name: str, op: str) -> np.ndarray:
        try:
            return array_of(value, name, operators()[op]["inputs"][0]["types"])
        except ValueError as error:
            raise ValueError(f"polyop::{op}: {error}") from None

    def concatenate(self, arrays: Sequence[np.ndarray], axis: int) -> np.ndarray:
        return np.concatenate(arrays, axis)

    def integers(self, values: list[int], like: np.ndarray) -> np.ndarray:
        return np.array(values, np.int64)


_functions = define_all(operators(), call, _Arrays(), __name__, ("out",))
__all__ = ["set_num_threads", *_functions]
globals().update(_functions)
