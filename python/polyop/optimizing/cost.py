# SPDX-License-Identifier: Apache-2.0
"""The minimum sizes for which a replacement is faster: below, the call of a custom node or a copy of the input costs
more than the kernel gains.

Sizes are in the unit of the match's `work`. They were measured with nodes of many sizes, in ONNX Runtime with one
thread (bench/min_work.py for patterns that replace several nodes).
"""

from __future__ import annotations

MIN_WORK = {
    "GridSample": 4_000,  # elements of the result
    "InstanceNormalization": 100_000,  # elements; below, ONNX Runtime's single pass is as fast
    "NonMaxSuppression": 20_000,  # pairs of boxes of a class; comparing fewer takes less time than a call
    # Elements of the result per element of the image, which is copied: for few boxes of a large image the copy costs
    # more than the kernel gains.
    "RoiAlign": 0.06,
    "softmax over channels": 1_000,  # elements: the exchange of dimensions costs more than a call
    # Elements: 1,000 took 15 us instead of 20 (Tan), 10 instead of 14 (Cosh) and 11 instead of 25 (Sinh).
    **dict.fromkeys(("Tan", "Sinh", "Cosh", "Atanh", "slow functions of elements"), 1_000),
    "matrix times vector": 1_000,  # elements of the matrix: 64 took as long, 4,096 a third of the time
    "reduced scatter": 1_000,  # elements of the updates
    "cumulative sum": 4_000,  # elements: as long for 4,000 integers, half as long for 4,000 floats
    "indices of elements": 1_000,  # elements
    "order of rows": 2_000,  # elements: as long for 1,000, half as long for 3,000 in one row, 2/3 for 100 rows of 100
    "distinct integers": 1_000,  # elements
    "gather along the last dimension": 500,  # elements of the result: 256 took 24 us, and 11 us replaced
    # A call costs less than the nodes that it replaces for any result of 16 elements or 1 box.
    "instance normalisation": 0,
    "greedy suppression": 0,
    "mask pasting": 0,
    "grid sampling": 0,
}


def pays(kind: str, work: float) -> bool:
    """Returns True if a match of this size is worth replacing. kind: the pattern's name, or the match's `what`."""
    return work >= MIN_WORK.get(kind, 0)
