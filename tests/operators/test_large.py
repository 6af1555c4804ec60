# SPDX-License-Identifier: Apache-2.0
"""Indices beyond 32 bits, and flat memory use.

The large inputs are zeros that the system has not allocated yet: only pages that an operator touches take memory.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument

from tests.support.processes import environment
from tests.support.single_node import run

BEYOND = 2**31


def test_gather_topk_beyond_32_bits() -> None:
    rows, width = BEYOND // 1024 + 8, 1024
    data = np.zeros((1, rows, width), np.uint8)
    data[0, rows - 3 :, :] = np.arange(1, 4)[:, None]
    assert data.size > BEYOND
    picks = np.array([[rows - 1, 0, rows - 3, rows - 2]], np.int32)
    (got,) = run("mmdeploy::GatherTopk", {"data": data, "indices": picks}, threads=2)
    np.testing.assert_array_equal(got[0, :, 0], [3, 0, 1, 2])
    np.testing.assert_array_equal(got[0, :, -1], [3, 0, 1, 2])


def test_deformable_attention_beyond_32_bits() -> None:
    side, heads, size = 1024, 8, 264
    value = np.zeros((1, side * side, heads, size), np.float16)
    value[0, -1, -1, -1] = 2
    assert value.size > BEYOND
    shapes, starts = np.array([[side, side]], np.int64), np.zeros(1, np.int64)
    locations = np.ones((1, 1, heads, 1, 1, 2), np.float16)  # the corner: a quarter of the last pixel
    weights = np.ones((1, 1, heads, 1, 1), np.float16)
    feeds = {"value": value, "shapes": shapes, "starts": starts, "locations": locations, "weights": weights}
    (got,) = run("mmdeploy::MMCVMultiScaleDeformableAttention", feeds, threads=2)
    assert got[0, 0, -1] == 0.5
    assert np.count_nonzero(got) == 1


def test_rejects_a_plane_beyond_32_bits() -> None:
    """TensorRT and the gather instructions have 32-bit indices within a plane."""
    x, grid = np.zeros((1, 1, 65536, 32769), np.float16), np.zeros((1, 1, 1, 2), np.float16)
    with pytest.raises(InvalidArgument, match=r"'input': expected .* got shape \[1, 1, 65536, 32769\]"):
        run("mmcv::grid_sampler", {"x": x, "grid": grid}, interpolation_mode=0, padding_mode=0, align_corners=0)


MEASURE = """
import resource, sys
import numpy as np
from tests.support.single_node import model, session
node, modulated, threads = sys.argv[1], sys.argv[2] == "1", int(sys.argv[3])
rng = np.random.default_rng(0)
channels, height, width = 256, 200, 304
feeds = {"x": rng.random((1, channels, height, width), np.float32),
         "offset": rng.random((1, 18, height, width), np.float32)}
if modulated:
    feeds["mask"] = rng.random((1, 9, height, width), np.float32)
feeds["weight"] = rng.random((channels, channels, 3, 3), np.float32)
attributes = {"stride": [1, 1], "padding": [1, 1], "dilation": [1, 1], "groups": 1, "deform_groups": 1}
session_ = session(model(node, feeds, attributes=attributes), threads)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
(y,) = session_.run(None, feeds)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(peak - before, sum(a.nbytes for a in feeds.values()), y.nbytes)
"""


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("node", ["mmcv::MMCVDeformConv2d", "mmcv::MMCVModulatedDeformConv2d"])
def test_deformable_convolution_keeps_memory_flat(node: str, threads: int) -> None:
    """There is no full column buffer, which would take 560 MiB: at most 1.25 x inputs + outputs + 64 MiB in all."""
    arguments = [node, str(int("Modulated" in node)), str(threads)]
    command = [sys.executable, "-c", MEASURE, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment())
    assert result.returncode == 0, result.stderr
    grown, inputs, outputs = map(int, result.stdout.split())
    # The inputs were allocated before.
    assert grown <= 0.25 * inputs + outputs + (64 << 20), f"{grown >> 20} MiB over inputs of {inputs >> 20} MiB"
