# SPDX-License-Identifier: Apache-2.0
"""The part of `cumm.tensorview` that code with Point2VoxelCPU3d uses: arrays of NumPy in both directions."""

from __future__ import annotations

import numpy as np

__all__ = ["Tensor", "from_numpy", "zeros"]


class Tensor:
    """An array on the CPU."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    @property
    def shape(self) -> list[int]:
        return list(self._array.shape)

    @property
    def ndim(self) -> int:
        return self._array.ndim

    def dim(self, axis: int) -> int:
        return self._array.shape[axis]

    def numpy(self) -> np.ndarray:
        """Returns a copy."""
        return self._array.copy()

    def numpy_view(self) -> np.ndarray:
        return self._array

    def __getitem__(self, key: object) -> Tensor:
        return Tensor(self._array[key])


def from_numpy(array: np.ndarray) -> Tensor:
    return Tensor(np.ascontiguousarray(array))


def zeros(shape: list[int], dtype: type = np.float32) -> Tensor:
    return Tensor(np.zeros(shape, dtype))
