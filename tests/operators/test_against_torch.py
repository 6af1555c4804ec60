# SPDX-License-Identifier: Apache-2.0
"""Operators in ONNX Runtime, compared with torch's functions and with ONNX Runtime's built-in operators.

Hypothesis draws shapes and attributes: odd numbers of channels, non-square images, batches, every mode.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.support.references import built_in, deform_conv
from tests.support.single_node import run

settings.register_profile(
    "polyop", deadline=None, max_examples=25, suppress_health_check=list(HealthCheck), derandomize=True
)
settings.load_profile("polyop")

seeds = st.integers(0, 2**32 - 1)
small = st.integers(1, 6)


def close(got: np.ndarray, want: torch.Tensor | np.ndarray, atol: float = 1e-5) -> None:
    want = np.asarray(want)
    assert got.shape == want.shape
    np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=1e-5, atol=atol)


def tensor(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


# ---- grid_sampler ----------------------------------------------------------------------------------


def draw_grid(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Returns coordinates inside, outside, and exactly at -1, 0 and 1."""
    grid = rng.uniform(-1.6, 1.6, shape).astype(np.float32)
    exact = rng.random(shape) < 0.2
    grid[exact] = rng.choice(np.array([-1, 0, 1], np.float32), exact.sum())
    return grid


@given(
    seeds,
    small,
    small,
    st.integers(1, 9),
    st.integers(1, 9),
    small,
    st.booleans(),
    st.integers(0, 2),
    st.integers(0, 2),
)
def test_grid_sampler(
    seed: int, n: int, c: int, h: int, w: int, out: int, align: bool, mode: int, padding: int
) -> None:
    rng = np.random.default_rng(seed)
    x, grid = tensor(rng, n, c, h, w), draw_grid(rng, (n, out, out + 1, 2))
    (y,) = run(
        "mmcv::grid_sampler",
        {"x": x, "grid": grid},
        interpolation_mode=mode,
        padding_mode=padding,
        align_corners=int(align),
    )
    # In double precision, except for `nearest`: there a coordinate that is rounded to float may select another pixel.
    kind = torch.float32 if mode == 1 else torch.float64
    want = F.grid_sample(
        torch.from_numpy(x).to(kind),
        torch.from_numpy(grid).to(kind),
        ("bilinear", "nearest", "bicubic")[mode],
        ("zeros", "border", "reflection")[padding],
        align,
    )
    close(y, want, 2e-5)


@given(seeds, small, small, small, small, small, st.booleans(), st.integers(0, 1), st.integers(0, 2))
def test_grid_sampler_3d(
    seed: int, n: int, c: int, d: int, h: int, w: int, align: bool, mode: int, padding: int
) -> None:
    rng = np.random.default_rng(seed)
    x, grid = tensor(rng, n, c, d, h, w), draw_grid(rng, (n, 3, 2, 5, 3))
    (y,) = run(
        "mmdeploy::grid_sampler",
        {"x": x, "grid": grid},
        interpolation_mode=mode,
        padding_mode=padding,
        align_corners=int(align),
    )
    kind = torch.float32 if mode == 1 else torch.float64
    want = F.grid_sample(
        torch.from_numpy(x).to(kind),
        torch.from_numpy(grid).to(kind),
        ("bilinear", "nearest")[mode],
        ("zeros", "border", "reflection")[padding],
        align,
    )
    close(y, want, 2e-5)


# ---- resizing --------------------------------------------------------------------------------------


@given(
    seeds,
    small,
    small,
    st.integers(1, 20),
    st.integers(1, 20),
    st.sampled_from([0.5, 1.0, 1.3, 2.0, 2.5, 3.0]),
    st.sampled_from([0.7, 1.0, 2.0, 3.7]),
)
def test_dynamic_resize(seed: int, n: int, c: int, h: int, w: int, sh: float, sw: float) -> None:
    assume(int(h * sh) >= 1 and int(w * sw) >= 1)
    rng = np.random.default_rng(seed)
    x = tensor(rng, n, c, h, w)
    scales = np.array([1, 1, sh, sw], np.float32)
    (y,) = run("Just_A_Scope_Name::DynamicTRTResize", {"x": x, "scales": scales})
    given_scale = (float(scales[2]), float(scales[3]))
    want = F.interpolate(torch.from_numpy(x).double(), scale_factor=given_scale, mode="bicubic", align_corners=False)
    close(y, want, 2e-5)


@given(
    seeds, small, small, st.integers(2, 20), st.integers(2, 20), st.sampled_from([1.0, 1.5, 2.0, 3.0]), st.booleans()
)
def test_bicubic_interpolate(seed: int, n: int, c: int, h: int, w: int, scale: float, align: bool) -> None:
    rng = np.random.default_rng(seed)
    x = tensor(rng, n, c, h, w)
    (y,) = run("mmdeploy::TRTBicubicInterpolate", {"x": x}, scale_factor=[scale, scale], align_corners=int(align))
    want = F.interpolate(torch.from_numpy(x).double(), scale_factor=(scale, scale), mode="bicubic", align_corners=align)
    close(y, want, 2e-5)


# ---- scans, pools, norms ---------------------------------------------------------------------------


@given(seeds, st.lists(st.integers(1, 7), min_size=1, max_size=5), st.data(), st.booleans())
def test_cummax_and_cummin(seed: int, shape: list[int], data: st.DataObject, ties: bool) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 4, shape).astype(np.float32) if ties else tensor(rng, *shape)
    x[rng.random(shape) < 0.05] = np.nan
    dim = data.draw(st.integers(-len(shape), len(shape) - 1))
    for name in ("cummax", "cummin"):
        values, indices = run(f"mmcv::{name}", {"x": x}, ["values", "indices"], dim=dim)
        want = getattr(torch, name)(torch.from_numpy(x), dim)
        np.testing.assert_array_equal(values, want.values)
        np.testing.assert_array_equal(indices, want.indices)
        assert indices.dtype == np.int64


@given(seeds, small, small, st.integers(1, 19), st.integers(1, 19), st.integers(0, 3))
def test_corner_pool(seed: int, n: int, c: int, h: int, w: int, mode: int) -> None:
    x = tensor(np.random.default_rng(seed), n, c, h, w)
    (y,) = run("mmcv::MMCVCornerPool", {"x": x}, mode=mode)
    dim = 2 if mode < 2 else 3
    t = torch.from_numpy(x)
    # "top" and "left" accumulate from the end, "bottom" and "right" from the start.
    want = t.cummax(dim).values if mode in (1, 3) else t.flip(dim).cummax(dim).values.flip(dim)
    np.testing.assert_array_equal(y, want)


@given(seeds, small, small, st.lists(st.integers(2, 9), min_size=1, max_size=3))
def test_instance_norm(seed: int, n: int, c: int, rest: list[int]) -> None:
    rng = np.random.default_rng(seed)
    x, scale, bias = tensor(rng, n, c, *rest) * 3 + 5, tensor(rng, c), tensor(rng, c)
    want = F.instance_norm(
        *(torch.from_numpy(t).double() for t in (x,)),
        weight=torch.from_numpy(scale).double(),
        bias=torch.from_numpy(bias).double(),
        eps=1e-5,
    )
    for node in ("mmcv::MMCVInstanceNormalization", "mmcv::TRTInstanceNormalization"):
        (y,) = run(node, {"x": x, "scale": scale, "B": bias}, epsilon=1e-5)
        close(y, want, 1e-4)


@given(seeds, small, small, small, st.integers(1, 40), st.booleans())
def test_scaled_dot_product_attention(seed: int, b: int, t: int, s: int, e: int, masked: bool) -> None:
    rng = np.random.default_rng(seed)
    q, k, v = tensor(rng, b, t, e), tensor(rng, b, s, e), tensor(rng, b, s, e)
    mask = tensor(rng, b, t, s) if masked else None
    out, weights = run(
        "mmdeploy::ScaledDotProductAttentionTRT", {"q": q, "k": k, "v": v, "mask": mask}, ["out", "weights"]
    )
    logits = torch.from_numpy(q).double() @ torch.from_numpy(k).double().transpose(1, 2) / np.sqrt(e)
    if mask is not None:
        logits = logits + torch.from_numpy(mask).double()
    want = logits.softmax(-1)
    close(weights, want)
    close(out, want @ torch.from_numpy(v).double())


# ---- gathering operators, composed of torch's ------------------------------------------------------


@given(seeds, st.integers(1, 2), st.sampled_from([(1, 1), (1, 2), (2, 1), (2, 2), (4, 2), (2, 4), (4, 4)]), st.integers(1, 2),
       st.integers(1, 3), st.tuples(st.integers(1, 3), st.integers(1, 3)), st.integers(1, 2), st.integers(0, 2),
       st.integers(1, 2), st.booleans())  # fmt: skip
def test_deform_conv(seed: int, n: int, groups_of: tuple[int, int], per: int, o: int, kernel: tuple[int, int],
                     stride: int, pad: int, dilation: int, modulated: bool) -> None:  # fmt: skip
    groups, deform_groups = groups_of
    rng = np.random.default_rng(seed)
    c = max(groups, deform_groups) * per
    kh, kw = kernel
    s, p, d = (stride, stride % 2 + 1), (pad, (pad + 1) % 3), (dilation, 1)
    h, w = 9, 7
    oh = (h + 2 * p[0] - d[0] * (kh - 1) - 1) // s[0] + 1
    ow = (w + 2 * p[1] - d[1] * (kw - 1) - 1) // s[1] + 1
    x, weight = tensor(rng, n, c, h, w), tensor(rng, o * groups, c // groups, kh, kw)
    offset = tensor(rng, n, 2 * deform_groups * kh * kw, oh, ow) * 2
    common = {
        "stride": list(s),
        "padding": list(p),
        "dilation": list(d),
        "groups": groups,
        "deform_groups": deform_groups,
    }
    wide = {k: torch.from_numpy(v).double() for k, v in {"x": x, "offset": offset, "weight": weight}.items()}
    if modulated:
        mask = rng.random((n, deform_groups * kh * kw, oh, ow)).astype(np.float32)
        bias = tensor(rng, o * groups) if seed % 2 else None
        inputs = {"x": x, "offset": offset, "mask": mask, "weight": weight, "bias": bias}
        (y,) = run("mmcv::MMCVModulatedDeformConv2d", inputs, **common)
        wide_bias = None if bias is None else torch.from_numpy(bias).double()
        want = deform_conv(
            wide["x"],
            wide["offset"],
            torch.from_numpy(mask).double(),
            wide["weight"],
            wide_bias,
            s,
            p,
            d,
            groups,
            deform_groups,
        )
    else:
        inputs = {"x": x, "offset": offset, "weight": weight}
        (y,) = run("mmcv::MMCVDeformConv2d", inputs, im2col_step=32, bias=0, **common)
        want = deform_conv(wide["x"], wide["offset"], None, wide["weight"], None, s, p, d, groups, deform_groups)
    # The results are sums of up to 72 products of normal numbers, sampled at float coordinates.
    close(y, want, 2e-4)


def test_deform_conv_without_offsets_is_a_convolution() -> None:
    rng = np.random.default_rng(3)
    x, weight = tensor(rng, 2, 6, 11, 10), tensor(rng, 8, 3, 3, 3)
    zero, one = np.zeros((2, 18, 11, 10), np.float32), np.ones((2, 9, 11, 10), np.float32)
    (y,) = run("mmdeploy::MMCVModulatedDeformConv2d", {"x": x, "offset": zero, "mask": one, "weight": weight},
               stride=[1, 1], padding=[1, 1], dilation=[1, 1], groups=2, deform_groups=1)  # fmt: skip
    close(y, F.conv2d(torch.from_numpy(x).double(), torch.from_numpy(weight).double(), padding=1, groups=2), 2e-4)


@given(
    seeds,
    st.integers(1, 2),
    st.integers(1, 4),
    st.integers(1, 33),
    st.integers(1, 3),
    st.integers(1, 4),
    st.integers(1, 9),
)
def test_ms_deform_attn(seed: int, n: int, m: int, d: int, levels: int, p: int, q: int) -> None:
    rng = np.random.default_rng(seed)
    shapes = rng.integers(1, 8, (levels, 2))
    starts = np.concatenate([[0], np.cumsum(shapes.prod(1))[:-1]])
    value = tensor(rng, n, int(shapes.prod(1).sum()), m, d)
    locations = rng.uniform(-0.2, 1.2, (n, q, m, levels, p, 2)).astype(np.float32)
    weights = rng.random((n, q, m, levels, p)).astype(np.float32)
    (y,) = run(
        "mmdeploy::MMCVMultiScaleDeformableAttention",
        {
            "value": value,
            "shapes": shapes.astype(np.int64),
            "starts": starts.astype(np.int64),
            "locations": locations,
            "weights": weights,
        },
    )
    # grid_sample per level, as in the paper's reference implementation.
    want = torch.zeros(n, m, d, q, dtype=torch.float64)
    for level, (h, w) in enumerate(shapes):
        part = torch.from_numpy(value[:, starts[level] : starts[level] + h * w]).double()
        image = part.permute(0, 2, 3, 1).reshape(n * m, d, h, w)
        grid = (
            torch.from_numpy(2 * locations[:, :, :, level].astype(np.float64) - 1)
            .transpose(1, 2)
            .reshape(n * m, q, p, 2)
        )
        sampled = F.grid_sample(image, grid, "bilinear", "zeros", align_corners=False)  # [n*m, d, q, p]
        factor = torch.from_numpy(weights[:, :, :, level]).double().transpose(1, 2).reshape(n * m, 1, q, p)
        want += (sampled * factor).sum(-1).reshape(n, m, d, q)
    close(y, want.permute(0, 3, 1, 2).reshape(n, q, m * d), 2e-5)


# ---- ONNX Runtime's own operators ------------------------------------------------------------------


@given(
    seeds,
    small,
    small,
    st.integers(3, 20),
    st.integers(3, 20),
    st.integers(0, 9),
    small,
    st.integers(0, 3),
    st.booleans(),
)
def test_roi_align_equals_the_built_in(
    seed: int, n: int, c: int, h: int, w: int, r: int, out: int, ratio: int, aligned: bool
) -> None:
    rng = np.random.default_rng(seed)
    x = tensor(rng, n, c, h, w)
    corners = np.sort(rng.uniform(-4, 2 * max(h, w) + 4, (r, 2, 2)), axis=1).reshape(r, 4)
    batch = rng.integers(0, n, r)
    rois = np.concatenate([batch[:, None], corners], 1).astype(np.float32)
    (y,) = run(
        "mmcv::MMCVRoiAlign",
        {"x": x, "rois": rois},
        output_height=out, output_width=out + 1, spatial_scale=0.5, sampling_ratio=ratio, mode="avg", aligned=int(aligned),
    )  # fmt: skip
    want = built_in(
        "RoiAlign", 16, {"x": x, "rois": rois[:, 1:].copy(), "batch": batch.astype(np.int64)},
        output_height=out, output_width=out + 1, spatial_scale=0.5, sampling_ratio=ratio, mode="avg",
        coordinate_transformation_mode="half_pixel" if aligned else "output_half_pixel",
    )  # fmt: skip
    close(y, want, 5e-5)


@given(seeds, st.integers(1, 60), st.sampled_from([0.1, 0.31, 0.5, 0.73]))
def test_nms_equals_the_built_in(seed: int, n: int, threshold: float) -> None:
    rng = np.random.default_rng(seed)
    corner = rng.uniform(0, 20, (n, 2))
    boxes = np.concatenate([corner, corner + rng.uniform(1, 12, (n, 2))], 1).astype(np.float32)
    scores = rng.permutation(n).astype(np.float32)  # no ties
    (keep,) = run("mmcv::NonMaxSuppression", {"boxes": boxes, "scores": scores}, iou_threshold=threshold, offset=0)
    want = built_in(
        "NonMaxSuppression", 11,
        {"boxes": boxes[None], "scores": scores[None, None], "max": np.array([n]), "iou": np.array([threshold], np.float32)},
    )  # fmt: skip
    np.testing.assert_array_equal(keep, want[:, 2])


@given(seeds, st.lists(st.integers(1, 5), min_size=2, max_size=4), st.data(), st.booleans())
def test_scatter_nd_equals_the_built_in(seed: int, shape: list[int], data: st.DataObject, narrow: bool) -> None:
    rng = np.random.default_rng(seed)
    depth = data.draw(st.integers(1, len(shape)))
    x = tensor(rng, *shape)
    positions = np.stack(np.meshgrid(*[np.arange(s) for s in shape[:depth]], indexing="ij"), -1).reshape(-1, depth)
    indices = rng.permutation(positions)[
        : max(1, len(positions) // 2)
    ]  # each at most once, so that the order does not matter
    updates = tensor(rng, len(indices), *shape[depth:])
    (y,) = run("mmcv::ScatterND", {"x": x, "i": indices.astype(np.int32 if narrow else np.int64), "u": updates})
    np.testing.assert_array_equal(y, built_in("ScatterND", 16, {"x": x, "i": indices.astype(np.int64), "u": updates}))


# ---- point clouds ----------------------------------------------------------------------------------


@given(seeds, st.integers(1, 200), st.integers(1, 3), st.booleans(), st.booleans())
def test_voxel_grid(seed: int, n: int, d: int, with_start: bool, with_end: bool) -> None:
    rng = np.random.default_rng(seed)
    pos = rng.uniform(-3, 5, (n, d)).astype(np.float32)
    size = rng.uniform(0.3, 2, d).astype(np.float32)
    start = np.full(d, -4, np.float32) if with_start else None
    end = np.full(d, 6, np.float32) if with_end else None
    (cluster,) = run("custom::torch_cluster_grid", {"pos": pos, "size": size, "start": start, "end": end})
    low = pos.min(0) if start is None else start
    high = pos.max(0) if end is None else end
    counts = np.trunc((high - low) / size).astype(np.int64) + 1
    cells = np.trunc((pos - low) / size).astype(np.int64)
    np.testing.assert_array_equal(cluster, (cells * np.concatenate([[1], np.cumprod(counts)[:-1]])).sum(1))


@given(seeds, st.integers(1, 3), st.integers(1, 20), st.booleans())
def test_knn_query(seed: int, segments: int, nsample: int, same: bool) -> None:
    rng = np.random.default_rng(seed)
    sizes, new_sizes = rng.integers(0, 60, segments), rng.integers(0, 20, segments)
    sizes[0] += 1
    if same:
        new_sizes = sizes
    offset, new_offset = np.cumsum(sizes), np.cumsum(new_sizes)
    xyz = rng.standard_normal((offset[-1], 3)).astype(np.float32)
    new_xyz = None if same else rng.standard_normal((new_offset[-1], 3)).astype(np.float32)
    index, dist = run(
        "custom::knnquery",
        {"nsample": np.array(nsample, np.int64), "xyz": xyz, "offset": offset.astype(np.int32), "new_xyz": new_xyz,
         "new_offset": None if same else new_offset.astype(np.int32)},
        ["idx", "dist"],
    )  # fmt: skip
    queries = torch.from_numpy(xyz if same else new_xyz).double()
    begins, new_begins = np.concatenate([[0], offset]), np.concatenate([[0], new_offset])
    for s in range(segments):
        points = torch.from_numpy(xyz[begins[s] : begins[s + 1]]).double()
        mine = slice(new_begins[s], new_begins[s + 1])
        k = min(nsample, len(points))
        near = (
            torch.cdist(queries[mine], points, compute_mode="donot_use_mm_for_euclid_dist").topk(k, largest=False)
            if k
            else None
        )
        if near is not None:
            np.testing.assert_array_equal(index[mine, :k], near.indices + begins[s])
            close(dist[mine, :k], near.values)
        assert (index[mine, k:] == -1).all()


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_do_not_change_results(threads: int) -> None:
    rng = np.random.default_rng(0)
    x, grid = tensor(rng, 2, 7, 33, 31), draw_grid(rng, (2, 40, 41, 2))
    attributes = {"interpolation_mode": 0, "padding_mode": 0, "align_corners": 0}
    (one,) = run("mmcv::grid_sampler", {"x": x, "grid": grid}, threads=1, **attributes)
    (many,) = run("mmcv::grid_sampler", {"x": x, "grid": grid}, threads=threads, **attributes)
    np.testing.assert_array_equal(one, many)


# ---- suppression in classes and images -----------------------------------------------------------


def overlapping_boxes(rng: np.random.Generator, *shape: int) -> np.ndarray:
    corner = rng.random((*shape, 2)) * 20
    return np.concatenate([corner, corner + 1 + rng.random((*shape, 2)) * 9], -1).astype(np.float32)


def built_in_nms(boxes: np.ndarray, scores: np.ndarray, max_boxes: int, iou: float, score: float) -> np.ndarray:
    """Returns the rows (image, class, box) of ONNX Runtime's own NonMaxSuppression."""
    thresholds = {"iou": np.array([iou], np.float32), "score": np.array([score], np.float32)}
    return built_in(
        "NonMaxSuppression", 11, {"boxes": boxes, "scores": scores, "max_boxes": np.array([max_boxes]), **thresholds}
    )


@given(seeds, st.integers(1, 3), st.integers(1, 4), st.integers(1, 60), st.integers(1, 20), st.floats(0.1, 0.9))
def test_nms_of_classes_equals_the_built_in(seed: int, b: int, c: int, n: int, max_boxes: int, iou: float) -> None:
    rng = np.random.default_rng(seed)
    boxes, scores = overlapping_boxes(rng, b, n), rng.random((b, c, n), np.float32)
    attributes = {"iou_threshold": iou, "score_threshold": 0.3, "max_output_boxes_per_class": max_boxes}
    (got,) = run("mmcv::NonMaxSuppression", {"boxes": boxes, "scores": scores}, **attributes)
    want = built_in_nms(boxes, scores, max_boxes, iou, 0.3)
    assert got.shape == (b * c * min(max_boxes, n), 3)
    np.testing.assert_array_equal(got[: len(want)], want)
    assert (got[len(want) :] == -1).all()


@given(seeds, st.integers(1, 3), st.integers(1, 20), st.integers(1, 60), st.integers(1, 30), st.booleans())
def test_batched_nms_equals_the_built_in(seed: int, b: int, c: int, n: int, keep: int, shared: bool) -> None:
    rng = np.random.default_rng(seed)
    boxes, scores = overlapping_boxes(rng, b, n, 1 if shared else c), rng.random((b, n, c), np.float32)
    attributes = {"keep_topk": keep, "score_threshold": 0.3, "iou_threshold": 0.4, "clip_boxes": 0, "num_classes": c}
    dets, labels, index = run(
        "mmdeploy::TRTBatchedNMS", {"boxes": boxes, "scores": scores}, ["dets", "labels", "index"],
        return_index=1, topk=-1, background_label_id=-1, is_normalized=0, **attributes,
    )  # fmt: skip
    assert labels.dtype == index.dtype == np.int32
    for image in range(b):
        rows = []
        for label in range(c):
            mine = boxes[image, :, 0 if shared else label]
            kept = built_in_nms(mine[None], scores[None, None, image, :, label], n, 0.4, 0.3)[:, 2]
            rows += [(*mine[i], scores[image, i, label], label, i + (0 if shared else label * n)) for i in kept]
        want = np.array(sorted(rows, key=lambda row: -row[4])[:keep]).reshape(-1, 7)
        found = len(want)
        np.testing.assert_array_equal(dets[image, :found], want[:, :5].astype(np.float32))
        np.testing.assert_array_equal(labels[image, :found], want[:, 5])
        np.testing.assert_array_equal(index[image, :found], want[:, 6])
        assert (dets[image, found:] == 0).all()
        assert (labels[image, found:] == -1).all()


@given(seeds, st.integers(0, 40), st.floats(0.1, 0.9), st.integers(0, 3))
def test_nms_rotated_of_upright_boxes_is_nms(seed: int, n: int, iou: float, quarter_turns: int) -> None:
    rng = np.random.default_rng(seed)
    boxes, scores = overlapping_boxes(rng, n), rng.random(n, np.float32)
    (want,) = run("mmcv::NonMaxSuppression", {"boxes": boxes, "scores": scores}, iou_threshold=iou, offset=0)
    size = boxes[:, 2:] - boxes[:, :2]
    if quarter_turns % 2:
        size = size[:, ::-1]
    angle = np.full((n, 1), quarter_turns * np.pi / 2)
    rotated = np.concatenate([(boxes[:, :2] + boxes[:, 2:]) / 2, size, angle], 1).astype(np.float32)
    (got,) = run("mmdeploy::NMSRotated", {"boxes": rotated, "scores": scores}, iou_threshold=iou, score_threshold=-1.0)
    np.testing.assert_array_equal(got, want)
    (rows,) = run(
        "mmdeploy::NMSRotated",
        {"boxes": rotated[None], "scores": scores[None, None]},
        iou_threshold=iou,
        score_threshold=-1.0,
    )
    np.testing.assert_array_equal(rows[:, 2], want)


@given(seeds, st.integers(1, 3), st.integers(1, 4), st.integers(1, 40), st.floats(0.1, 0.9))
def test_nms_match_keeps_what_nms_keeps(seed: int, b: int, c: int, n: int, iou: float) -> None:
    rng = np.random.default_rng(seed)
    boxes, scores = overlapping_boxes(rng, b, n), rng.random((b, c, n), np.float32)
    thresholds = {"iou": np.array([iou], np.float32), "score": np.array([0], np.float32)}
    (rows,) = run("mmdeploy::NMSMatch", {"boxes": boxes, "scores": scores, **thresholds})
    kept = built_in_nms(boxes, scores, n, iou, 0.0)
    everything = {(p, q, i) for p in range(b) for q in range(c) for i in range(n)}
    assert {tuple(r) for r in rows[:, [0, 1, 3]]} == everything - {tuple(r) for r in kept}
    assert {tuple(r) for r in rows[:, :3]} <= {tuple(r) for r in kept}


# ---- operators of BEVFormer_tensorrt and TensorRT --------------------------------------------------


@given(seeds, small, st.integers(1, 12), st.integers(1, 12), st.floats(-400, 400), st.floats(-5, 15), st.booleans())
def test_rotate(seed: int, c: int, h: int, w: int, angle: float, shift: float, whole: bool) -> None:
    """torchvision's rotate: affine_grid about the centre, and grid_sample."""
    x, center = tensor(np.random.default_rng(seed), c, h, w), np.array([shift, w / 2 - shift], np.float32)
    degrees = np.array(angle if not whole else 90 * round(angle / 90), np.float32)
    (got,) = run("::RotateTRT", {"x": x, "angle": degrees, "center": center}, interpolation=0)
    turn = -np.deg2rad(float(degrees))
    cosine, sine = np.cos(turn), np.sin(turn)
    cx, cy = center[0] - w / 2, center[1] - h / 2
    shift_x, shift_y = cx - cosine * cx - sine * cy, cy + sine * cx - cosine * cy
    theta = torch.tensor(
        [[[cosine, sine * h / w, shift_x * 2 / w], [-sine * w / h, cosine, shift_y * 2 / h]]], dtype=torch.float64
    )
    grid = F.affine_grid(theta, [1, c, h, w], align_corners=False)
    want = F.grid_sample(torch.from_numpy(x).double()[None], grid, "bilinear", "zeros", align_corners=False)
    close(got, want[0], 1e-4)


@given(seeds, small, small, st.integers(1, 3), st.integers(1, 5), st.integers(1, 3))
def test_ms_deform_attn_of_offsets(seed: int, q: int, m: int, levels: int, points: int, groups: int) -> None:
    rng, size = np.random.default_rng(seed), 5
    shapes = rng.integers(1, 6, (levels, 2)).astype(np.int32)
    value = tensor(rng, 1, int(shapes.prod(1).sum()), m, size)
    references = rng.uniform(-0.1, 1.1, (1, q, 1, groups * 2)).astype(np.float32)
    offsets, logits = 2 * tensor(rng, 1, q, m, levels * points * 2), tensor(rng, 1, q, m, levels * points)
    feeds = {"v": value, "s": shapes, "r": references, "o": offsets, "w": logits}
    (got,) = run("::MultiScaleDeformableAttnTRT", feeds)
    weights = torch.from_numpy(logits).softmax(-1).reshape(q, m, levels, points)
    want, start = torch.zeros(q, m, size), 0
    for level, (h, w) in enumerate(shapes.tolist()):
        planes = torch.from_numpy(value[0, start : start + h * w]).reshape(h, w, m, size).permute(2, 3, 0, 1)
        start += h * w
        offset = torch.from_numpy(offsets).reshape(q, m, levels, points, 2)[:, :, level]
        centre = torch.from_numpy(references).reshape(q, 1, groups, 2)[:, :, [p % groups for p in range(points)]]
        grid = (centre + offset / torch.tensor([w, h])) * 2 - 1
        samples = F.grid_sample(planes, grid.transpose(0, 1), "bilinear", "zeros", align_corners=False)
        want += (samples.permute(2, 0, 1, 3) * weights[:, :, level, None]).sum(-1)
    close(got[0], want, 1e-4)


@given(seeds, small, st.integers(1, 9), st.integers(1, 9), st.integers(0, 3), st.booleans())
def test_tensorrt_roi_align(seed: int, c: int, h: int, w: int, ratio: int, half_pixel: bool) -> None:
    """The maximum is defined as in ONNX Runtime."""
    rng = np.random.default_rng(seed)
    corner = rng.uniform(-3, 12, (6, 2))
    rois = np.concatenate([corner, corner + rng.uniform(0.1, 9, (6, 2))], 1).astype(np.float32)
    x, batch = tensor(rng, 2, c, h, w), np.array([0, 1, 1, 0, 1, 0])
    size = {"output_height": 2, "output_width": 3, "sampling_ratio": ratio, "spatial_scale": 0.75}
    for mode, name in enumerate(("max", "avg")):
        feeds = {"x": x, "rois": rois, "batch": batch.astype(np.int32)}
        (got,) = run("::ROIAlign_TRT", feeds, mode=mode, coordinate_transformation_mode=int(half_pixel), **size)
        where = "half_pixel" if half_pixel else "output_half_pixel"
        feeds["batch"] = batch
        want = built_in("RoiAlign", 16, feeds, mode=name, coordinate_transformation_mode=where, **size)
        close(got, want, 1e-4)


@given(seeds, small, st.integers(1, 8))
def test_inverse(seed: int, n: int, size: int) -> None:
    x = tensor(np.random.default_rng(seed), n, size, size) + 3 * np.eye(size, dtype=np.float32)
    (got,) = run("::InverseTRT", {"x": x})
    want = np.linalg.inv(x.astype(np.float64))
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6 * np.abs(want).max())


@given(seeds, small, small, small, small, small)
def test_qkv_attention(seed: int, b: int, q: int, k: int, size: int, values: int) -> None:
    rng = np.random.default_rng(seed)
    given_ = tensor(rng, b, q, size), tensor(rng, b, k, size), tensor(rng, b, k, values)
    (got,) = run("::QKVTRT", dict(zip("qkv", given_, strict=True)))
    close(got, F.scaled_dot_product_attention(*(torch.from_numpy(t) for t in given_)))


@given(seeds, small, small, st.integers(0, 2), st.integers(0, 2), st.booleans())
def test_planar_grid_sampler(seed: int, n: int, c: int, mode: int, padding: int, align: bool) -> None:
    rng = np.random.default_rng(seed)
    x, grid = tensor(rng, n, c, 4, 8), rng.uniform(-12, 12, (n, 2, 3, 5)).astype(np.float32)
    attributes = {"interpolation_mode": mode, "padding_mode": padding, "align_corners": int(align)}
    (got,) = run("::GridSampler2DTRT", {"x": x, "grid": grid}, **attributes)
    names = ("bilinear", "nearest", "bicubic")[mode], ("zeros", "border", "reflection")[padding]
    points = torch.from_numpy(grid).permute(0, 2, 3, 1) / 10
    close(got, F.grid_sample(torch.from_numpy(x), points, *names, align_corners=align), 1e-4)
