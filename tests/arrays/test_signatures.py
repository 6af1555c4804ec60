# SPDX-License-Identifier: Apache-2.0
"""The operators' functions are the same in PyTorch, NumPy, JAX and tvm-ffi: names, parameters, numbers, errors."""

from __future__ import annotations

import inspect
import pickle
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

import polyop
import polyop.functional
import polyop.jax
import polyop.numpy
import polyop.tvm_ffi
from polyop._arrays.calls import operators
from polyop._arrays.functions import default_of, functions, signature_of
from tests.support.processes import ROOT, run

MODULES = (polyop.functional, polyop.numpy, polyop.jax, polyop.tvm_ffi)
OTHERS = {"node_domain", "set_num_threads"}
IDS = [module.__name__ for module in MODULES]


@pytest.mark.parametrize("module", MODULES, ids=IDS)
def test_signatures(module: ModuleType) -> None:
    """They differ in NumPy's `out` alone."""
    expected = functions(operators())
    assert set(module.__all__) - OTHERS == set(expected)
    for name, function in expected.items():
        own = getattr(module, name)
        parameters = inspect.signature(own).parameters
        out = {"out"} if module is polyop.numpy and function.is_call else set()
        assert set(parameters) - set(signature_of(function).parameters) == out, name
        assert inspect.Signature([p for k, p in parameters.items() if k not in out]) == signature_of(function), name
        assert own.__doc__ == getattr(polyop, name).__doc__
        assert (own.__name__, own.__module__) == (name, module.__name__)


def test_every_operator_has_a_function() -> None:
    called = {f.record["name"] for f in functions(operators()).values()}
    assert called >= set(operators())


def test_every_attribute_is_a_parameter() -> None:
    """Or has a value in the row of the function."""
    for name, function in functions(operators()).items():
        if function.row is None:
            continue
        sources = [source for p in function.parameters for source in p.sources]
        given = [item["name"] for side in ("inputs", "attributes") for item in function.record[side]]
        assert sorted([*sources, *function.row.presets]) == sorted(given), name
        assert all(p.kind != "pair" or len(p.sources) == 2 for p in function.parameters)


def test_defaults_are_written_as_in_the_definition() -> None:
    for record in operators().values():
        for attribute in record["attributes"]:
            if attribute["type"] == "float" and attribute["default"] is not None:
                assert np.float32(default_of(attribute)) == np.float32(attribute["default"]), record["name"]
    parameters = inspect.signature(polyop.numpy.soft_nms).parameters
    assert [parameters[k].default for k in ("iou_threshold", "min_score", "method")] == [0.3, 0.001, "linear"]


THEIRS = {
    "nms": "boxes, scores, iou_threshold=0.5",  # torchvision and MMCV have no default
    "roi_align": "input, boxes, output_size, spatial_scale=1.0, sampling_ratio=-1, aligned=False",
    "roi_pool": "input, boxes, output_size, spatial_scale=1.0",
    "roi_align_rotated": "input, rois, output_size, spatial_scale=1.0, sampling_ratio=0, aligned=True, clockwise=False",
    "modulated_deform_conv2d": "input, offset, mask, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, "
    "deform_groups=1",
    "knn": "k, xyz, center_xyz=None, transposed=False",
    "box_iou_rotated": "boxes_a, boxes_b, mode='iou', aligned=False, clockwise=True",
    "soft_nms": "boxes, scores, iou_threshold=0.3, sigma=0.5, min_score=0.001, method='linear', offset=0",
    "grid_sample": "input, grid, mode='bilinear', padding_mode='zeros', align_corners=False",
}


@pytest.mark.parametrize("name", THEIRS)
def test_signatures_are_those_of_torchvision_and_mmcv(name: str) -> None:
    assert str(inspect.signature(getattr(polyop, name)))[1:].startswith(THEIRS[name])


RNG = np.random.default_rng(0)
IMAGE = RNG.random((1, 4, 16, 20), np.float32)
ROIS = np.float32([[0, 1, 2, 9, 9], [0, 0, 0, 19, 15]])
BOXES = np.float32([[0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30]])
SCORES = np.float32([0.8, 0.9, 0.7])
ROTATED = np.float32([[5, 5, 4, 3, 0.3], [6, 5, 4, 3, 0.1], [9, 9, 2, 2, 0]])
POINTS = RNG.random((1, 30, 3), np.float32)
CALLS: dict[str, tuple[tuple, dict[str, Any]]] = {
    "roi_align": ((IMAGE, ROIS, 7), {"spatial_scale": 0.25}),
    "roi_align_rotated": ((IMAGE, np.float32([[0, 8, 8, 6, 5, 0.4]]), (3, 2), 1.0), {"clockwise": True}),
    "roi_pool": ((IMAGE, ROIS, (2, 3)), {}),
    "prroi_pool": ((IMAGE, ROIS), {"output_size": np.array([2, 3])}),
    "deform_roi_pool": ((IMAGE, ROIS, None, 3), {}),
    "multi_level_roi_align": ((ROIS, [IMAGE, IMAGE[:, :, ::2, ::2].copy()], 2, [1.0, 2.0]), {}),
    "deform_conv2d": ((IMAGE, np.zeros((1, 18, 8, 10), np.float32), RNG.random((2, 4, 3, 3), np.float32), 2, 1), {}),
    "grid_sample": ((IMAGE, RNG.random((1, 5, 6, 2), np.float32)), {"mode": "bicubic", "align_corners": True}),
    "correlation": ((IMAGE, IMAGE, 1, 2), {"stride": (1, 2)}),
    "neighborhood_attention": ((*[RNG.random((1, 6, 6, 2, 4), np.float32) for _ in range(3)], 3), {"is_causal": True}),
    "psa_mask": ((RNG.random((1, 9, 4, 5), np.float32), "distribute", 3), {}),
    "nms": ((BOXES, SCORES), {"iou_threshold": 0.5}),
    "nms_match": ((np.concatenate([BOXES, SCORES[:, None]], 1), 0.5), {}),
    "soft_nms": ((BOXES, SCORES), {"method": "gaussian"}),
    "box_iou_rotated": ((ROTATED, ROTATED[::-1].copy()), {"aligned": True, "clockwise": False}),
    "convex_giou": ((RNG.random((2, 18), np.float32), RNG.random((2, 8), np.float32)), {}),
    "boxes_overlap_bev": ((RNG.random((2, 7), np.float32), RNG.random((3, 7), np.float32)), {}),
    "cummin": ((IMAGE, 2), {}),
    "knn": ((3, POINTS), {}),
    "knn_query": ((3, POINTS[0], np.int32([30])), {}),
    "ball_query": ((0.0, 0.4, 5, POINTS, POINTS[:, :4].copy()), {}),
    "voxelization": ((POINTS[0], 0.2, np.array([0, 0, 0, 1, 1, 1]), 4, 40), {}),
    "svd": ((IMAGE[0],), {"full_matrices": True}),
}


def flat(results: Any) -> list[np.ndarray]:
    return [np.asarray(np.from_dlpack(r)) for r in (results if isinstance(results, (list, tuple)) else [results])]


def converted(arguments: Any, convert: Callable[[np.ndarray], Any]) -> list[Any]:
    """Returns the arguments with tensors in place of arrays; sizes stay."""

    def of(value: Any) -> Any:
        if isinstance(value, list) and isinstance(value[0], np.ndarray):
            return [convert(item) for item in value]
        return convert(value) if isinstance(value, np.ndarray) else value

    return [of(value) for value in arguments]


@pytest.mark.parametrize("name", CALLS)
def test_numbers(name: str) -> None:
    arguments, named = CALLS[name]
    expected = flat(getattr(polyop, name)(*converted(arguments, torch.from_numpy), **named))
    for module in MODULES[1:]:
        results = flat(getattr(module, name)(*arguments, **named))
        results = results[: len(expected)]  # JAX's have a count
        for result, array in zip(results, expected, strict=True):
            found = result[tuple(map(slice, array.shape))]
            np.testing.assert_array_equal(found, array, err_msg=module.__name__)
    torch_through_tvm = flat(getattr(polyop.tvm_ffi, name)(*converted(arguments, torch.from_numpy), **named))
    for result, array in zip(torch_through_tvm, expected, strict=True):
        np.testing.assert_array_equal(result, array)


REFUSED = {
    "three sizes": ((IMAGE, ROIS, (7, 7, 7)), {}, "'output_size': expected a number or (height, width), got (7, 7, 7)"),
    "no size": ((IMAGE, ROIS, None), {}, "attribute 'output_size': expected a value, got None"),
    "fraction": ((IMAGE, ROIS, 7.5), {}, "attribute 'output_size': expected an integer of 64 bits, got 7.5"),
    "range": ((IMAGE, ROIS, 0), {}, "attribute 'output_size': expected a number in [1, 4096], got 0"),
    "flag": ((IMAGE, ROIS, 7), {"aligned": "no"}, "attribute 'aligned': expected an integer of 64 bits, got 'no'"),
    "text": ((IMAGE, ROIS, 7), {"spatial_scale": "1"}, "attribute 'spatial_scale': expected a number, got '1'"),
    "mode": ((IMAGE, ROIS, 7), {"mode": "sum"}, "attribute 'mode': expected one of {avg, max}, got sum"),
    "mode's number": ((IMAGE, ROIS, 7), {"mode": 2}, "attribute 'mode': expected one of avg, max, got 2"),
    "shape": ((IMAGE, ROIS[:, :4].copy(), 7), {}, "'boxes': expected dimension 1 to be 5, got 4"),
    "None": ((IMAGE, None, 7), {}, "'boxes': expected "),
}


@pytest.mark.parametrize("what", REFUSED)
def test_errors(what: str) -> None:
    """They name the parameters, also where the definition has other names."""
    arguments, named, message = REFUSED[what]
    for module in MODULES:
        given = converted(arguments, torch.from_numpy) if module is polyop.functional else arguments
        with pytest.raises((RuntimeError, ValueError)) as error:
            module.roi_align(*given, **named)
        assert str(error.value).startswith(f"polyop::roi_align: {message}"), module.__name__
        with pytest.raises(TypeError, match="output_height"):
            module.roi_align(*given, output_height=7)


def test_matches_of_boxes_without_scores_are_refused() -> None:
    """JAX would read another column."""
    for module in MODULES:
        boxes = torch.from_numpy(BOXES) if module is polyop.functional else BOXES
        with pytest.raises(ValueError, match=r"^polyop::nms_match: 'dets': expected shape \[N, 5\], got \[3, 4\]$"):
            module.nms_match(boxes, 0.5)


@pytest.mark.parametrize("name", ["functional", "numpy", "jax", "tvm_ffi"])
def test_types_are_current(name: str) -> None:
    assert (ROOT / f"python/polyop/{name}.pyi").read_text() == run(sys.executable, ROOT / "tools/stubs.py", name)


def test_torch_compile_traces_the_functions() -> None:
    """Also those of several operators; and pickle finds them by their names."""

    def sums(image: torch.Tensor, rois: torch.Tensor, boxes: torch.Tensor) -> torch.Tensor:
        overlaps = polyop.box_iou_rotated(boxes, boxes, aligned=True, clockwise=False)
        return polyop.roi_align(image, rois, (3, 2), spatial_scale=0.5).sum() + overlaps.sum()

    arguments = [torch.from_numpy(array) for array in (IMAGE, ROIS, ROTATED)]
    compiled = torch.compile(sums, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(*arguments), sums(*arguments))
    assert pickle.loads(pickle.dumps(polyop.nms)) is polyop.nms
