# SPDX-License-Identifier: Apache-2.0
"""All six kinds of RoIAlign, compared with torch's grid_sample at the sampling points of the papers and of MMCV, and
RoIPool, compared with ONNX Runtime's MaxRoiPool.

The kernels' references share helper functions; this is an independent reference.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.single_node import run

draws = settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck), derandomize=True)
seeds = st.integers(0, 2**32 - 1)
ratios = st.integers(0, 3)


def sampled(features: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Returns [C, *x.shape], bilinear at pixels (x, y): the border's value up to one pixel outside, 0 beyond."""
    height, width = features.shape[1:]
    grid = torch.stack([2 * x / (width - 1) - 1, 2 * y / (height - 1) - 1], -1)
    values = F.grid_sample(features[None], grid[None], padding_mode="border", align_corners=True)[0]
    return values * ((x >= -1) & (x <= width) & (y >= -1) & (y <= height))


def pooled(
    features: torch.Tensor,
    anchor: complex,
    corner: complex,
    extent: complex,
    angle: float,
    bins: tuple[int, int],
    ratio: int,
    mode: str = "avg",
) -> torch.Tensor:
    """Returns [C, *bins] of a box that begins at `corner` in its own axes, rotated by `angle` about `anchor`."""

    def axis(start: float, length: float, count: int) -> np.ndarray:
        samples = ratio or max(int(np.ceil(length / count)), 1)
        steps = (np.arange(count * samples) + 0.5) / (count * samples)
        return (start + length * steps).reshape(count, samples)

    v, u = axis(corner.imag, extent.imag, bins[0]), axis(corner.real, extent.real, bins[1])
    at = torch.from_numpy((u[None, :, None, :] + 1j * v[:, None, :, None]) * np.exp(-1j * angle) + anchor)
    rows, columns, down, across = at.shape
    values = sampled(features, at.real.reshape(rows, -1), at.imag.reshape(rows, -1))
    values = values.reshape(-1, rows, columns, down * across)
    return values.mean(-1) if mode == "avg" else values.amax(-1)


def upright(box: np.ndarray, scale: float, aligned: bool) -> dict[str, object]:
    shift = 0.5 if aligned else 0
    start, end = complex(box[0], box[1]) * scale, complex(box[2], box[3]) * scale
    size = end - start
    if not aligned:
        size = complex(max(size.real, 1), max(size.imag, 1))
    return {"anchor": start - complex(shift, shift), "corner": 0j, "extent": size, "angle": 0.0}


def rotated_box(box: np.ndarray, scale: float, aligned: bool, clockwise: bool) -> dict[str, object]:
    shift = 0.5 if aligned else 0
    size = complex(box[2], box[3]) * scale
    if not aligned:
        size = complex(max(size.real, 1), max(size.imag, 1))
    angle = -box[4] if clockwise else box[4]
    centre = complex(box[0], box[1]) * scale - complex(shift, shift)
    return {"anchor": centre, "corner": -size / 2, "extent": size, "angle": angle}


def tensors(rng: np.random.Generator, *extents: tuple[int, int]) -> list[np.ndarray]:
    return [rng.standard_normal((2, 3, *extent)).astype(np.float32) for extent in extents]


def upright_rois(rng: np.random.Generator, image: float) -> np.ndarray:
    begin = rng.uniform(-0.2 * image, image, (6, 2))
    size = np.exp(rng.uniform(0, np.log(image), (6, 2)))
    return np.concatenate([rng.integers(0, 2, (6, 1)), begin, begin + size], 1).astype(np.float32)


def rotated_rois(rng: np.random.Generator, image: float) -> np.ndarray:
    centre, size = rng.uniform(-0.2 * image, image, (6, 2)), np.exp(rng.uniform(0, np.log(image), (6, 2)))
    return np.concatenate([rng.integers(0, 2, (6, 1)), centre, size, rng.uniform(-4, 4, (6, 1))], 1).astype(np.float32)


def level_of(width: float, height: float, finest_scale: int, levels: int) -> int:
    return int(np.clip(np.floor(np.log2(np.sqrt(width * height) / finest_scale + 1e-6)), 0, levels - 1))


def close(got: np.ndarray, want: list[torch.Tensor]) -> None:
    np.testing.assert_allclose(got, torch.stack(want).numpy(), rtol=1e-4, atol=1e-4)


BINS = (3, 2)
POOL = {"output_height": BINS[0], "output_width": BINS[1]}
STRIDES = [4.0, 8.0, 16.0]
LEVELS = ((20, 24), (10, 12), (5, 6))


def in_double(x: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(x).double()


@draws
@given(seeds, ratios, st.booleans(), st.sampled_from(["avg", "max"]))
def test_roi_align(seed: int, ratio: int, aligned: bool, mode: str) -> None:
    rng = np.random.default_rng(seed)
    (x,), rois = tensors(rng, (11, 9)), upright_rois(rng, 40)
    attributes = {**POOL, "spatial_scale": 0.25, "sampling_ratio": ratio, "aligned": int(aligned), "mode": mode}
    (got,) = run("mmcv::MMCVRoiAlign", {"x": x, "rois": rois}, **attributes)
    planes = in_double(x)
    close(
        got,
        [pooled(planes[int(r[0])], **upright(r[1:], 0.25, aligned), bins=BINS, ratio=ratio, mode=mode) for r in rois],
    )


@draws
@given(seeds, ratios, st.booleans(), st.booleans())
def test_roi_align_rotated(seed: int, ratio: int, aligned: bool, clockwise: bool) -> None:
    rng = np.random.default_rng(seed)
    (x,), rois = tensors(rng, (11, 9)), rotated_rois(rng, 40)
    attributes = {
        **POOL,
        "spatial_scale": 0.25,
        "sampling_ratio": ratio,
        "aligned": int(aligned),
        "clockwise": int(clockwise),
    }
    (got,) = run("mmcv::MMCVRoIAlignRotated", {"x": x, "rois": rois}, **attributes)
    planes = in_double(x)
    close(
        got,
        [
            pooled(planes[int(r[0])], **rotated_box(r[1:], 0.25, aligned, clockwise), bins=BINS, ratio=ratio)
            for r in rois
        ],
    )


@draws
@given(seeds, ratios, st.booleans())
def test_riroi_align_rotated(seed: int, ratio: int, clockwise: bool) -> None:
    """With 3 orientations: the pooled box of roi_align_rotated, with its channels shifted."""
    rng = np.random.default_rng(seed)
    (x,), rois = tensors(rng, (11, 9)), rotated_rois(rng, 40)
    attributes = {"pooled_height": BINS[0], "pooled_width": BINS[1], "spatial_scale": 0.25, "num_samples": ratio}
    (got,) = run(
        "polyop::RiRoIAlignRotated", {"x": x, "rois": rois}, **attributes, num_orientations=3, clockwise=int(clockwise)
    )
    planes, want = in_double(x), []
    for r in rois:
        box = pooled(planes[int(r[0])], **rotated_box(r[1:], 0.25, False, clockwise), bins=BINS, ratio=ratio)
        turn = float(r[5]) * 3 / (2 * np.pi)
        whole, part = int(np.floor(turn)), turn - np.floor(turn)
        want.append((1 - part) * box.roll(whole, 0) + part * box.roll(whole - 1, 0))
    close(got, want)


@draws
@given(seeds, ratios, st.booleans())
def test_bezier_align(seed: int, ratio: int, aligned: bool) -> None:
    rng = np.random.default_rng(seed)
    (x,) = tensors(rng, (11, 9))
    rois = np.concatenate([rng.integers(0, 2, (6, 1)), rng.uniform(-8, 48, (6, 16))], 1).astype(np.float32)
    attributes = {**POOL, "spatial_scale": 0.25, "sampling_ratio": ratio, "aligned": int(aligned)}
    (got,) = run("polyop::BezierAlign", {"x": x, "rois": rois}, **attributes)
    planes, want = in_double(x), []
    for r in rois.astype(np.float64):
        upper, lower = (r[1:].reshape(8, 2) @ [1, 1j] * 0.25)[[[0, 1, 2, 3], [7, 6, 5, 4]]]
        ends = (
            np.abs([(upper[3] - upper[0]).real, (lower[3] - lower[0]).real]).max(),
            np.abs([(upper[3] - upper[0]).imag, (lower[3] - lower[0]).imag]).max(),
        )
        size = complex(*(e if aligned else max(e, 1) for e in ends))
        size = complex(size.real / BINS[1], size.imag / BINS[0])
        bins = []
        for i, j in np.ndindex(*BINS):
            u, v = j / BINS[1], i / BINS[0]
            weights = np.array([(1 - u) ** 3, 3 * u * (1 - u) ** 2, 3 * u * u * (1 - u), u**3])
            middle = weights @ upper * (1 - v) + weights @ lower * v - (complex(0.5, 0.5) if aligned else 0)
            bins.append(pooled(planes[int(r[0])], middle, -size / 2, size, 0.0, (1, 1), ratio)[:, 0, 0])
        want.append(torch.stack(bins, 1).reshape(-1, *BINS))
    close(got, want)


@draws
@given(seeds, st.sampled_from([0.25, 1 / 3, 1.0]))
def test_roi_pool(seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    (x,), rois = tensors(rng, (11, 9)), upright_rois(rng, 12 / scale)
    rois[0, 3:] = rois[0, 1:3] - 2  # reversed
    rois[1, 1:] = np.round(rois[1, 1:]) + 0.5 / scale  # halves
    feeds = {"x": x, "rois": rois}
    pooled_max, positions = run("polyop::RoIPool", feeds, ("y", "argmax"), **POOL, spatial_scale=scale)
    (want,) = run("::MaxRoiPool", feeds, pooled_shape=list(BINS), spatial_scale=scale)
    np.testing.assert_array_equal(pooled_max, want)
    planes = x[rois[:, 0].astype(int)].reshape(len(rois), 3, -1)
    chosen = np.take_along_axis(planes, positions.reshape(len(rois), 3, -1).clip(0), 2).reshape(pooled_max.shape)
    np.testing.assert_array_equal(np.where(positions >= 0, chosen, 0), want)


pyramid = st.tuples(seeds, ratios, st.booleans(), st.sampled_from([0.0, 1.5]))


@draws
@given(pyramid, st.sampled_from(["avg", "max"]))
def test_multi_level_roi_align(drawn: tuple[int, int, bool, float], mode: str) -> None:
    seed, ratio, aligned, factor = drawn
    rng = np.random.default_rng(seed)
    feats, rois = tensors(rng, *LEVELS), upright_rois(rng, 80)
    attributes = {**POOL, "sampling_ratio": ratio, "aligned": int(aligned), "pool_mode": int(mode == "avg"),
                  "featmap_strides": STRIDES, "roi_scale_factor": factor, "finest_scale": 10}  # fmt: skip
    inputs = {"rois": rois, **{f"x{i}": x for i, x in enumerate(feats)}}
    (got,) = run("mmdeploy::MMCVMultiLevelRoiAlign", inputs, **attributes)
    want = []
    for roi in rois.astype(np.float64):
        begin, end = roi[1:3], roi[3:]
        level = level_of(*(end - begin), 10, 3)
        middle, half = (begin + end) / 2, (end - begin) / 2 * (factor or 1)
        geometry = upright(np.concatenate([middle - half, middle + half]), 1 / STRIDES[level], aligned)
        want.append(pooled(in_double(feats[level])[int(roi[0])], **geometry, bins=BINS, ratio=ratio, mode=mode))
    close(got, want)


@draws
@given(pyramid, st.booleans())
def test_multi_level_rotated_roi_align(drawn: tuple[int, int, bool, float], clockwise: bool) -> None:
    seed, ratio, aligned, factor = drawn
    rng = np.random.default_rng(seed)
    feats, rois = tensors(rng, *LEVELS), rotated_rois(rng, 80)
    attributes = {**POOL, "sampling_ratio": ratio, "aligned": int(aligned), "clockwise": int(clockwise),
                  "featmap_strides": STRIDES, "roi_scale_factor": factor, "finest_scale": 10}  # fmt: skip
    inputs = {"rois": rois, **{f"x{i}": x for i, x in enumerate(feats)}}
    (got,) = run("mmdeploy::MMCVMultiLevelRotatedRoiAlign", inputs, **attributes)
    want = []
    for roi in rois.astype(np.float64):
        level = level_of(roi[3], roi[4], 10, 3)
        box = roi[1:] * [1, 1, factor or 1, factor or 1, 1]
        geometry = rotated_box(box, 1 / STRIDES[level], aligned, clockwise)
        want.append(pooled(in_double(feats[level])[int(roi[0])], **geometry, bins=BINS, ratio=ratio))
    close(got, want)
