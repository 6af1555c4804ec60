"""From which size on a replacement pays: below it the call of a custom node, or a copy of the input, costs what the kernel
gains. Sizes are in the unit of the match's `work`; found by timing nodes of many sizes, one thread, in ONNX Runtime."""

from __future__ import annotations

LEAST_WORK = {
    "deformable attention": 2_000,  # multiplications
    "GridSample": 4_000,  # elements of the result
    "InstanceNormalization": 100_000,  # elements; below, ONNX Runtime's single pass is as fast
    "NonMaxSuppression": 20_000,  # pairs of boxes of a class; fewer are compared in the time of a call
    # Elements of the result for each of the picture, which is copied as a whole: few boxes of a large picture cost more
    # by the copy than they gain.
    "RoiAlign": 0.06,
}


def pays(kind: str, work: float) -> bool:
    """kind: the pattern's name, or what the match is."""
    return work >= LEAST_WORK.get(kind, 0)
