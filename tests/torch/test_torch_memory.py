# SPDX-License-Identifier: Apache-2.0
"""Calls from PyTorch leak no memory, whether they succeed or fail."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable

import pytest
import torch

import polyop.functional  # noqa: F401 - registers the operators

CALLS, FAILING_CALLS = 10_000, 1_500  # fewer, because PyTorch collects a traceback
GROWTH = 10  # bytes per call; malloc's smallest block, for one leaked argument, is 32

features, boxes, scores = torch.rand(1, 2, 6, 6), torch.rand(3, 4), torch.rand(3)
rois = torch.cat([torch.zeros(3, 1), boxes], 1)
cloud, ends = torch.rand(9, 3), torch.tensor([9], dtype=torch.int32)
levels, points = [features, features], {"featmap_strides": [4.0, 8.0]}
ops = torch.ops.polyop


def fails(call: Callable, wrong: str) -> Callable[[], None]:
    """Returns a call that checks that `call` is refused with a message that contains `wrong`."""

    def refused() -> None:
        text = "the call was not refused"
        try:
            call()
        except RuntimeError as error:
            text = str(error)
        assert wrong in text, text

    return refused


# Every kind of argument: tensors, optional tensors, lists of tensors, numbers, strings, lists, None. Each argument is
# the wrong one once, so that the call fails before and after the others are converted.
WRONG = {
    "first tensor's rank": fails(
        lambda: ops.roi_align(features[0], rois, mode="avg"), "'input': expected rank 4, got 3"
    ),
    "second tensor's rank": fails(
        lambda: ops.roi_align(features, rois[0], mode="avg"), "'rois': expected rank 2, got 1"
    ),
    "second tensor's extents": fails(
        lambda: ops.roi_align(features, boxes, mode="avg"), "'rois': expected dimension 1 to be 5, got 4"
    ),
    "a tensor's type": fails(lambda: ops.roi_align(features.to(torch.complex64), rois, mode="avg"), "element type"),
    "types together": fails(lambda: ops.roi_align(features.half(), rois, mode="avg"), "no kernel takes"),
    "too many dimensions": fails(lambda: ops.roi_align(torch.zeros([1] * 9), rois), "dimensions, got 9"),
    "an integer": fails(
        lambda: ops.roi_align(features, rois, output_height=0), "'output_height': expected a number in [1, 4096], got 0"
    ),
    "a real": fails(lambda: ops.roi_align(features, rois, spatial_scale=float("nan"), mode="avg"), "'spatial_scale'"),
    "a choice": fails(lambda: ops.roi_align(features, rois, mode="x" * 100), "'mode': expected one of"),
    "a value": fails(lambda: ops.roi_align(features, rois + 9, mode="max"), "batch index"),
    "a tensor that may be left out": fails(
        lambda: ops.knn_query(torch.tensor(2), cloud, ends, cloud[0], ends), "'new_xyz': expected rank 2, got 1"
    ),
    "a tensor before those left out": fails(
        lambda: ops.knn_query(torch.tensor(2), cloud[0], ends, None, None), "'xyz': expected rank 2, got 1"
    ),
    "a list's tensor": fails(
        lambda: ops.multi_level_roi_align(rois, [features, features[0]], **points), "'feats': expected rank 4, got 3"
    ),
    "a tensor before a list": fails(
        lambda: ops.multi_level_roi_align(rois[0], levels, **points), "'rois': expected rank 2, got 1"
    ),
    "a list of reals": fails(
        lambda: ops.multi_level_roi_align(rois, levels, featmap_strides=[float("nan")] * 3), "'featmap_strides'"
    ),
    "a list of integers": fails(
        lambda: ops.deform_conv2d(features, features, features, stride=[1, 2, 3]), "'stride': expected 2 values, got 3"
    ),
    "a real that may be None": fails(
        lambda: ops.nms_rotated(torch.rand(3, 5), scores, score_threshold=float("nan")),
        "'score_threshold': expected a number, got nan",
    ),
}

RIGHT = {
    "tensors, numbers and a text": lambda: ops.roi_align(
        features, rois, output_height=2, spatial_scale=0.5, mode="max"
    ),
    "tensors left out": lambda: ops.knn_query(torch.tensor(2), cloud, ends, None, None),
    "tensors that may be left out": lambda: ops.knn_query(torch.tensor(2), cloud, ends, cloud, ends),
    "lists": lambda: ops.multi_level_roi_align(rois, levels, **points),
    "a size that the kernel finds": lambda: ops.soft_nms(boxes, scores, method="gaussian"),
    "a real that may be None": lambda: ops.nms_rotated(torch.rand(3, 5), scores, score_threshold=0.1),
}


class MallocInfo(ctypes.Structure):
    """struct mallinfo2 of glibc."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    ]


mallinfo2 = ctypes.CDLL(None).mallinfo2
mallinfo2.restype = MallocInfo


def in_use() -> int:
    """Returns the number of allocated bytes of all threads."""
    gc.collect()
    info = mallinfo2()
    return info.uordblks + info.hblkhd


def growth(call: Callable[[], object], calls: int) -> int:
    """Returns how many bytes `calls` calls allocate after a warm-up."""
    for _ in range(500):
        call()
    before = in_use()
    for _ in range(calls):
        call()
    return in_use() - before


def leaks(call: Callable[[], object], calls: int) -> bool:
    """Returns whether memory grows each time: what other threads and earlier tests allocate grows it once."""
    return all(growth(call, calls) >= GROWTH * calls for _ in range(3))


@pytest.mark.parametrize("what", WRONG)
def test_failing_calls_leak_nothing(what: str) -> None:
    assert not leaks(WRONG[what], FAILING_CALLS)


@pytest.mark.parametrize("what", RIGHT)
def test_successful_calls_leak_nothing(what: str) -> None:
    assert not leaks(RIGHT[what], CALLS)


def test_a_leak_is_found() -> None:
    kept: list[bytes] = []
    assert leaks(lambda: kept.append(bytes(600)), FAILING_CALLS)  # smaller ones are not malloc's
