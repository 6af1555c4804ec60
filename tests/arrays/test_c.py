# SPDX-License-Identifier: Apache-2.0
"""The C interface, adapters/c/polyop.h. test_one_door.py has the calls that every runtime refuses."""

from __future__ import annotations

import ctypes
import json

import numpy as np
import pytest

from polyop._arrays.calls import ALLOCATE, FLOAT, INT, Attribute, Outputs, Tensor, library, tensor_of
from polyop._onnx.catalogue import resolve
from polyop.batch.errors import BatchError
from polyop.batch.images import resized
from tests.support.c_calls import attribute_of, call, call_raw

BOXES = np.array([[0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30]], np.float32)
SCORES = np.array([0.8, 0.9, 0.7], np.float32)


def test_outputs_have_the_size_that_is_found() -> None:
    for threshold, expected in ((0.5, [1, 2]), (0.9, [1, 0, 2])):
        (keep,) = call("nms", BOXES, SCORES, iou_threshold=threshold)
        assert keep.dtype == np.int64
        assert keep.tolist() == expected


def test_empty_tensors() -> None:
    (keep,) = call("nms", BOXES[:0], SCORES[:0])
    assert keep.shape == (0,)


def test_texts_and_several_outputs() -> None:
    detections, keep = call("soft_nms", BOXES, SCORES, method="naive", iou_threshold=0.5, min_score=0.1)
    assert keep.tolist() == [1, 2]
    np.testing.assert_array_equal(detections, np.column_stack([BOXES, SCORES])[[1, 2]])


def test_uses_the_callers_threads() -> None:
    """The loop calls tasks in reverse order, which does not change the result."""
    a, b = np.random.default_rng(0).random((2, 1 << 20), np.float32)
    tasks = []

    def run(_: object, count: int, body: object, argument: int) -> None:
        tasks.append(count)
        for task in reversed(range(count)):
            body(argument, task)

    (c,) = call("my_add", a, b, run=run)
    assert max(tasks) > 1
    np.testing.assert_array_equal(c, call("my_add", a, b)[0])


def refusal(tensors: tuple[Tensor, ...] | None = None, attributes: tuple[Attribute, ...] = (), op: str = "nms") -> str:
    error = call_raw(op, (tensor_of(BOXES), tensor_of(SCORES)) if tensors is None else tensors, attributes)
    assert error is not None
    return error


def test_rejects_tensors_that_are_none() -> None:
    scores, shape = tensor_of(SCORES), (ctypes.c_int64 * 2)(3, 4)
    for tensor, message in [
        (Tensor(None, 0, 2, shape), "'boxes': expected data, got a null pointer"),
        (Tensor(BOXES.ctypes.data, 0, 2, None), "'boxes': expected a shape, got a null pointer"),
        (Tensor(BOXES.ctypes.data, 99, 2, shape), "'boxes': unsupported element type"),
        (Tensor(BOXES.ctypes.data, 0, -2, shape), "'boxes': expected a rank of at least -1, got -2"),
        (
            Tensor(BOXES.ctypes.data, 0, 2, (ctypes.c_int64 * 2)(-3, 4)),
            "'boxes': expected dimension 0 to be at least 0, got -3",
        ),
    ]:
        assert refusal((tensor, scores)) == f"polyop::nms: {message}"


def test_rejects_misaligned_memory() -> None:
    memory = np.zeros(BOXES.nbytes + SCORES.nbytes + 64, np.uint8)
    boxes, scores = memory.ctypes.data + 1, tensor_of(SCORES)
    tensor = Tensor(boxes, 0, 2, (ctypes.c_int64 * 2)(3, 4))
    off = f"got an address {boxes % 4} bytes after a multiple"
    expected = "expected memory that is aligned to the 4 bytes of an element"
    assert refusal((tensor, scores)) == f"polyop::nms: 'boxes': {expected}, {off}"
    error = call_raw("nms", (tensor_of(BOXES), scores), (), allocate=lambda *_: boxes)
    assert error is not None
    assert error.startswith("polyop::nms: output 'keep': expected memory that is aligned to the 8 bytes of an element")


def test_rejects_attributes_that_the_operator_lacks() -> None:
    for attribute, message in [
        (attribute_of("threshold", 0.5), "expected attributes of the operator, got 'threshold'"),
        (Attribute(None, INT, 1, 8), "expected an attribute with a name, got a null pointer"),
        (Attribute(b"iou_threshold", FLOAT, 1, None), "attribute 'iou_threshold': expected values, got a null pointer"),
        (Attribute(b"iou_threshold", 7, 1, 8), "attribute 'iou_threshold': expected a kind in [0, 4], got 7"),
        (Attribute(b"iou_threshold", FLOAT, -1, 8), "attribute 'iou_threshold': expected at least 0 values, got -1"),
    ]:
        assert refusal(attributes=(attribute,)) == f"polyop::nms: {message}"


def test_rejects_unknown_operators() -> None:
    assert refusal(op="nmz") == "polyop::nmz: there is no such operator; polyop_catalogue() lists all"


def test_reports_missing_memory() -> None:
    assert refusal() == "polyop::nms: output 'keep': expected memory for i64[2], got a null pointer"


def test_an_error_does_not_affect_the_next_call() -> None:
    with pytest.raises(ValueError, match="expected dimension 0 to be N = 3 as in 'boxes', got 2"):
        call("nms", BOXES, SCORES[:2])
    (keep,) = call("nms", BOXES, SCORES)
    assert keep.tolist() == [1, 2]


def test_a_library_without_cuda_kernels_says_so() -> None:
    operators = library()
    operators.polyop_call_on_device.restype = operators.polyop_read_device.restype = ctypes.c_char_p
    outputs = Outputs(None, ALLOCATE(lambda *_: None))
    arguments = b"nms", 0, None, 0, None, ctypes.byref(outputs)
    error = operators.polyop_call_on_device(*arguments, None)
    assert error == b"polyop::nms: expected functions that allocate device memory, got a null pointer"
    device = (ctypes.c_void_p * 4)(None, None, *[ctypes.cast(outputs.allocate, ctypes.c_void_p)] * 2)
    assert operators.polyop_call_on_device(*arguments, device) == b"polyop::nms: this library has no CUDA kernels"
    assert operators.polyop_read_device(device, None, None, 0) == b"this library has no CUDA kernels"


def test_resolves_a_node_as_runtimes_do() -> None:
    """Renamed and preset attributes, choices, infinities; and what a runtime refuses."""
    given = {"output_height": 2, "output_width": 3, "mode": b"max"}
    found = resolve("mmcv", "MMCVRoiAlign", given)
    assert (found.operator["name"], found.node["name"], found.error) == ("roi_align", "mmcv::MMCVRoiAlign", "")
    assert {"output_height": 2, "mode": "max", "spatial_scale": 1.0}.items() <= found.values.items()
    refused = resolve("mmcv", "MMCVRoiAlign", {**given, "mode": "mean"})
    assert (refused.values, refused.error) == ({}, "attribute 'mode': expected one of {avg, max}, got mean")
    infinite = resolve("mmcv", "NonMaxSuppression", {"score_threshold": -np.inf})
    assert infinite.values["score_threshold"] == -np.inf
    assert resolve("mmcv", "Missing", {}) is None


def test_malformed_requests_are_errors() -> None:
    function = library().polyop_resolve_node
    function.restype = ctypes.c_char_p
    for text in (b"", b"[]", b"{}"):
        assert json.loads(function(text))["error"], text


def test_an_image_without_pixels_is_not_resized() -> None:
    with pytest.raises(BatchError, match="expected images with pixels, got an empty one"):
        resized(np.zeros((0, 4, 3), np.uint8), 2, 2)
