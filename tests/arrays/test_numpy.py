# SPDX-License-Identifier: Apache-2.0
"""polyop.numpy: every operator as a function of NumPy arrays. test_one_door.py has the calls that it refuses."""

from __future__ import annotations

import array
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch

import polyop.numpy as pn
from polyop._arrays.calls import array_of
from tests.support.array_calls import call_of, plain_calls
from tests.support.processes import run
from tests.support.single_node import run as run_node

BOXES = np.array([[0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30]], np.float32)
SCORES = np.array([0.8, 0.9, 0.7], np.float32)


def test_equals_onnxruntime() -> None:
    compared = set()
    for operator, node in plain_calls():
        inputs = {f"in{i}": array for i, array in enumerate(node.inputs)}
        expected = run_node(node.name, inputs, [f"out{i}" for i in range(len(node.outputs))], **node.attributes)
        results = call_of(pn, operator, node.inputs, node.attributes)
        results = results if isinstance(results, tuple) else (results,)
        for result, other in zip(results, expected, strict=False):
            np.testing.assert_array_equal(result, other, err_msg=node.name)
            assert result.dtype == other.dtype
        compared.add(operator)
    assert len(compared) >= 30


def test_needs_numpy_only() -> None:
    code = (
        "import sys; import numpy as np; import polyop.numpy as pn;"
        f"print(pn.nms({BOXES.tolist()}, {SCORES.tolist()}), {{'torch', 'onnxruntime', 'onnx'}} & set(sys.modules))"
    )
    assert run(sys.executable, "-c", code).strip() == "[1 2] set()"


def test_takes_any_array() -> None:
    strided = np.repeat(BOXES, 2, axis=1)[:, ::2]
    read_only = BOXES.copy()
    read_only.flags.writeable = False
    for boxes in (strided, read_only, BOXES.astype(">f4"), torch.from_numpy(BOXES), BOXES.tolist(), memoryview(BOXES)):
        assert pn.nms(boxes, SCORES).tolist() == [1, 2]
    assert pn.my_add(np.float32(2), np.float32(3)).shape == ()


class OnAnotherDevice:
    def __dlpack__(self) -> None:
        raise AssertionError("the device is checked first")

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 1


@pytest.mark.parametrize(
    ("boxes", "message"),
    [
        (BOXES.astype(object), "'boxes': unsupported element type: expected one of float32, .*, got object"),
        (OnAnotherDevice(), "'boxes': expected memory of the CPU, got cuda:1"),
        (None, "'boxes': expected an array, got None"),
        ([[0, 0], [1]], "'boxes': expected numbers of one shape"),
        (np.float32(1), r"'boxes': expected rank 2, got 0"),
        (torch.ones(3, 4, requires_grad=True), "'boxes': expected a tensor that NumPy can read"),
    ],
    ids=["object", "device", "None", "ragged", "scalar", "gradient"],
)
def test_refuses_other_inputs(boxes: object, message: str) -> None:
    with pytest.raises(ValueError, match=f"^polyop::nms: .*{message}|^polyop::nms: no kernel takes|{message}"):
        pn.nms(boxes, SCORES)


def misaligned(array: np.ndarray) -> np.ndarray:
    """Returns a copy whose elements lie one byte after multiples of their size."""
    memory = np.zeros(array.nbytes + 64, np.uint8)
    begin = (1 - memory.ctypes.data) % 64
    copy = memory[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def test_copies_misaligned_inputs() -> None:
    """The tensors are large enough for streams of whole cache lines."""
    x, ones = np.random.default_rng(0).random((1, 4, 1024, 1024), np.float32), np.ones(4, np.float32)
    assert not misaligned(x).flags.aligned
    np.testing.assert_array_equal(
        pn.instance_norm(misaligned(x), misaligned(ones), ones), pn.instance_norm(x, ones, ones)
    )


@pytest.mark.parametrize(
    ("value", "types", "expected"),
    [
        ([2**31 - 1], ["i32"], "int32"),
        ([2**32 + 5], ["i32", "i64"], "int64"),
        ([200], ["i8", "u8"], "uint8"),
        ([2**40], ["i32", "f32"], "float32"),
        ([1.5, float("inf")], ["f16"], "float16"),
        ([3.4028235e38], ["f32"], "float32"),
        ([True], ["bool"], "bool"),
        ([1.5], ["i32"], "float64"),
        (array.array("q", [3]), ["i32"], "int32"),
        ([], ["f32"], "float32"),
    ],
)
def test_lists_get_the_first_type_that_has_their_numbers(value: Any, types: list[str], expected: str) -> None:
    found = array_of(value, "x", types)
    assert found.dtype == expected
    np.testing.assert_array_equal(found, np.asarray(value, found.dtype))


@pytest.mark.parametrize(
    ("value", "types", "message"),
    [
        ([0, 2**32 + 5], ["i32"], "int32, got 4294967301"),
        ([-(2**31) - 1], ["i32"], "int32, got -2147483649"),
        ([200, 1], ["i8"], "int8, got 200"),
        (-1, ["u8"], "uint8, got -1"),
        ([70000], ["f16", "i16"], "float16, got 70000"),
        ([1.0, -1e39], ["f32"], r"float32, got -1e\+39"),
        (array.array("q", [2**32]), ["i32"], "int32, got 4294967296"),
    ],
)
def test_refuses_lists_that_no_type_has(value: Any, types: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=f"'x': expected numbers that fit in {message}"):
        array_of(value, "x", types)


def test_out() -> None:
    keep = np.empty(2, np.int64)
    assert pn.nms(BOXES, SCORES, out=keep) is keep
    assert keep.tolist() == [1, 2]
    a = np.ones((4, 4), np.float32)
    for out, message in [
        (np.empty(3, np.float32), r"out\[0\]: expected float32\[4, 4\], got float32\[3\]"),
        (np.empty((4, 4)), r"out\[0\]: expected float32\[4, 4\], got float64"),
        (np.empty((4, 8), np.float32)[:, ::2], r"out\[0\]: expected an array that is contiguous, writeable"),
        (misaligned(a), r"out\[0\]: expected an array that is contiguous, writeable and aligned to its elements"),
        (a, r"out\[0\]: expected memory that no input and no other output uses"),
        ((a, a), "out: expected 1 arrays, got 2"),
    ]:
        with pytest.raises(ValueError, match="^polyop::my_add: " + message):
            pn.my_add(a, np.ones((4, 4), np.float32), out=out)


def test_attributes() -> None:
    for value in ("x", [1.0], None.__class__):
        with pytest.raises(ValueError, match=r"^polyop::nms: attribute 'iou_threshold': expected"):
            pn.nms(BOXES, SCORES, iou_threshold=value)
    with pytest.raises(ValueError, match=r"attribute 'offset': expected an integer of 64 bits, got 0\.5"):
        pn.nms(BOXES, SCORES, offset=0.5)
    with pytest.raises(TypeError, match="iou_treshold"):
        pn.nms(BOXES, SCORES, iou_treshold=0.5)
    assert pn.nms(BOXES, SCORES, iou_threshold=np.float32(0.9)).tolist() == [1, 0, 2]


def test_threads() -> None:
    """Also in a pool whose only thread waits for the call."""
    a, b = np.random.default_rng(0).random((2, 1 << 20), np.float32)
    expected = pn.my_add(a, b)
    try:
        pn.set_num_threads(2)
        np.testing.assert_array_equal(pn.my_add(a, b), expected)
        with ThreadPoolExecutor(1) as pool:
            pn.set_num_threads(3, pool)
            np.testing.assert_array_equal(pool.submit(pn.my_add, a, b).result(timeout=60), expected)
        with pytest.raises(RuntimeError, match="after shutdown"):
            pn.my_add(a, b)
    finally:
        pn.set_num_threads(1)
    with pytest.raises(ValueError, match="count: expected at least 1, got 0"):
        pn.set_num_threads(0)
