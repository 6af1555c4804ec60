# SPDX-License-Identifier: Apache-2.0
"""spconv's CPU build as a rival. With two threads its sums differ from run to run, so it runs with one.

It is imported where it is used: only `make bench` installs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from contenders import Run


def pairs_of(indices: np.ndarray, attributes: Mapping[str, object]) -> Run:
    """Returns the rulebook: output coordinates, pairs [2, offsets, rows] and the number of pairs of each offset.

    For a submanifold convolution it has the first half of the offsets and the centre; the others mirror them.
    """
    from spconv.core import ConvAlgo
    from spconv.pytorch.ops import get_indice_pairs

    coords, size = torch.from_numpy(indices), attributes["ksize"]
    where = (attributes["batch_size"], attributes["spatial_shape"], ConvAlgo.Native, size)
    padding = attributes.get("padding", [n // 2 for n in size])
    window = (attributes["stride"], padding, [1] * len(size), [0] * len(size))
    return lambda: get_indice_pairs(coords, *where, *window, subm=bool(attributes["subm"]), transpose=False)


def products(features: np.ndarray, filters: np.ndarray, indices: np.ndarray, attributes: Mapping[str, object]) -> Run:
    """Runs a submanifold convolution with an existing rulebook."""
    from spconv.core import ConvAlgo
    from spconv.pytorch.ops import indice_conv

    _, pairs, counts = pairs_of(indices, attributes)()
    tf, tw = torch.from_numpy(features), torch.from_numpy(filters)
    return lambda: [indice_conv(tf, tw, pairs, counts, len(tf), subm=True, algo=ConvAlgo.Native)]


def voxels(
    points: np.ndarray, voxel_size: Sequence[float], bounds: Sequence[float], max_voxels: int, of_voxel: int
) -> Run:
    """Returns the points of each voxel, its coordinates (z, y, x), and its number of points."""
    from cumm import tensorview
    from spconv.utils import Point2VoxelCPU3d

    generator = Point2VoxelCPU3d(voxel_size, bounds, points.shape[1], max_voxels, of_voxel)
    cloud = tensorview.from_numpy(points)
    return lambda: generator.point_to_voxel(cloud)
