"""From which size on a replacement pays: below it the call of a custom node, or a copy of the input, costs what the kernel
gains. Sizes are in the unit of the match's `work`; found by timing nodes of many sizes, one thread, in ONNX Runtime
(bench/least_work.py for those that replace several nodes)."""

from __future__ import annotations

LEAST_WORK = {
    "deformable attention": 2_000,  # multiplications
    "GridSample": 4_000,  # elements of the result
    "InstanceNormalization": 100_000,  # elements; below, ONNX Runtime's single pass is as fast
    "NonMaxSuppression": 20_000,  # pairs of boxes of a class; fewer are compared in the time of a call
    # Elements of the result for each of the picture, which is copied as a whole: few boxes of a large picture cost more
    # by the copy than they gain.
    "RoiAlign": 0.06,
    # The same, for each element of all levels: 10 boxes of 64 x 256 x 256 and two levels below (0.006) took 2.2 times as
    # long as the nodes of standard operators, 1 box (0.0006) 55 times; 0.013 is where both take the same.
    "multi-level RoIAlign": 0.02,
    "bicubic resize": 64,  # elements of the result: 768 took a ninth of the time, 16 took 2 us more
    # A call costs less than the nodes that it replaces, from 16 elements of the result on, or from 1 box.
    "instance normalisation": 0,
    "corner pooling": 0,
    "greedy suppression": 0,
    "mask pasting": 0,
    "grid sampling": 0,
}


def pays(kind: str, work: float) -> bool:
    """kind: the pattern's name, or what the match is."""
    return work >= LEAST_WORK.get(kind, 0)
