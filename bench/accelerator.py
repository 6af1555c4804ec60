# SPDX-License-Identifier: Apache-2.0
"""The accelerator: the same file with and without it."""

from __future__ import annotations

import numpy as np
from benchmark import Case, Contest
from contenders import Run, bytes_of, first_output, in_openvino, nearly_all_equal, normal, session


def accelerated(
    title: str, node: str, feeds: dict[str, np.ndarray], opset: int = 16, tolerance: float = 1e-3, **attributes: object
) -> Case:
    def make(threads: int) -> Contest:
        built_in, ours = (
            session(node, feeds, threads, opset=opset, attributes=attributes, accelerate=a) for a in (False, True)
        )
        rivals = {f"ONNX Runtime {node}": built_in, **openvinos_own(node, feeds, attributes, threads)}
        same = nearly_all_equal if attributes.get("mode") == "nearest" else None
        return Contest(ours, rivals, bytes_of(*feeds.values()), tolerance=tolerance, same=same)

    return Case("accelerator", f"{node}, {title}", make)


def openvinos_own(
    node: str, feeds: dict[str, np.ndarray], attributes: dict[str, object], threads: int
) -> dict[str, Run]:
    """Returns OpenVINO's equivalent operator, or None."""
    arrays = list(feeds.values())
    match node:
        case "RoiAlign":
            bins = {"pooled_h": attributes["output_height"], "pooled_w": attributes["output_width"]}
            kept = {name: attributes[name] for name in ("sampling_ratio", "spatial_scale")}
            run = in_openvino("ROIAlign", 9, [*arrays[:2], arrays[2].astype(np.int32)], threads, **bins, **kept,
                              mode="avg", aligned_mode="half_pixel_for_nn")  # fmt: skip
            return {"OpenVINO ROIAlign": run}
        case "GridSample" if arrays[0].ndim == 4:
            run = in_openvino(
                "GridSample", 9, arrays, threads, mode=attributes["mode"], padding_mode="zeros", align_corners=False
            )
            return {"OpenVINO GridSample": run}
        case "NonMaxSuppression":
            thresholds = [int(arrays[2][0]), arrays[3][0], arrays[4][0]]
            run = in_openvino(
                "NonMaxSuppression", 9, arrays[:2], threads, constants=thresholds, sort_result_descending=False
            )
            return {"OpenVINO NonMaxSuppression": first_output(run)}
    return {}


def accelerated_roi_align(channels: int, size: int, count: int) -> Case:
    rng = np.random.default_rng(1)
    low = rng.uniform(0, 0.7 * size * 4, (count, 2))
    rois = np.concatenate([low, low + rng.uniform(8, size, (count, 2))], 1).astype(np.float32)
    feeds = {"x": normal(0, 1, channels, size, size), "rois": rois, "of": np.zeros(count, np.int64)}
    return accelerated(f"{channels}x{size}x{size}, {count} rois", "RoiAlign", feeds,
                       output_height=7, output_width=7, sampling_ratio=2, spatial_scale=0.25)  # fmt: skip


def accelerated_grid_sample(shape: tuple[int, ...], mode: str, opset: int = 16) -> Case:
    axes = len(shape) - 1
    grid = np.random.default_rng(1).uniform(-1, 1, (1, *shape[1:], axes)).astype(np.float32)
    title = f"{mode}, {'x'.join(map(str, shape))}"
    return accelerated(title, "GridSample", {"x": normal(0, 1, *shape), "grid": grid}, opset, mode=mode)


def accelerated_nms(classes: int, count: int, max_boxes: int, score: float) -> Case:
    rng = np.random.default_rng(1)
    corner = rng.uniform(0, 640, (1, count, 2))
    boxes = np.concatenate([corner, corner + rng.uniform(10, 120, (1, count, 2))], 2).astype(np.float32)
    scores = (rng.uniform(0, 1, (1, classes, count)) ** 4).astype(np.float32)
    given = {"n": np.array([max_boxes]), "iou": np.array([0.5], np.float32), "score": np.array([score], np.float32)}
    title = f"{classes} classes, {count} boxes, {max_boxes} of each"
    return accelerated(title, "NonMaxSuppression", {"b": boxes, "s": scores, **given}, 11, tolerance=0)


def accelerated_instance_norm(*shape: int) -> Case:
    feeds = {"x": normal(0, *shape), "scale": normal(1, shape[1]), "B": normal(2, shape[1])}
    return accelerated("x".join(map(str, shape)), "InstanceNormalization", feeds)


def accelerated_deform_conv(channels: int, size: int, kernel: int, modulated: bool) -> Case:
    """A convolution of as many channels, as in BiRefNet's decoder (kernels 1, 3, 7) and DCNv2 backbones."""
    rng = np.random.default_rng(1)
    points, half = kernel * kernel, kernel // 2
    feeds = {
        "x": normal(0, 1, channels, size, size),
        "w": normal(1, channels, channels, kernel, kernel) / (channels * points) ** 0.5,
        "o": rng.normal(0, 1.5, (1, 2 * points, size, size)).astype(np.float32),
        "b": normal(2, channels),
        **({"m": rng.random((1, points, size, size)).astype(np.float32)} if modulated else {}),
    }
    title = f"{channels}x{size}x{size}, {kernel}x{kernel}{', modulated' if modulated else ''}"
    return accelerated(title, "DeformConv", feeds, 19, pads=[half] * 4, kernel_shape=[kernel] * 2)


CASES = [
    accelerated_roi_align(256, 100, 300),
    accelerated_roi_align(3, 16, 2),
    *(accelerated_grid_sample((64, 128, 128), mode) for mode in ("bilinear", "nearest", "bicubic")),
    accelerated_grid_sample((16, 32, 32, 32), "linear", 20),
    accelerated_grid_sample((1, 8, 8), "bilinear"),
    accelerated_nms(1, 8400, 300, 0.25),
    accelerated_nms(80, 8400, 100, 0.25),
    accelerated_nms(1, 100, 10, 0.25),
    accelerated_instance_norm(1, 64, 256, 256),
    accelerated_instance_norm(4, 256, 16, 16),
    *(accelerated_deform_conv(64, 64, kernel, True) for kernel in (1, 3, 7)),
    accelerated_deform_conv(256, 32, 3, False),
]
