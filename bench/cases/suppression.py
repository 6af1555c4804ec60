# SPDX-License-Identifier: Apache-2.0
"""Suppression of boxes."""

from __future__ import annotations

import numpy as np
from harness import Case, Contest, Run, bytes_of, in_openvino, session


def boxes_of(kind: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns boxes around few centres, everywhere in the image, or nearly disjoint; scores without ties."""
    rng = np.random.default_rng(3)
    if kind == "clustered":
        centre = rng.uniform(0, 1000, (count // 100, 2)).repeat(100, 0) + rng.normal(0, 6, (count // 100 * 100, 2))
        size = rng.uniform(40, 80, (len(centre), 2))
    else:
        centre = rng.uniform(0, 1000 if kind == "spread" else 10000, (count, 2))
        size = rng.uniform(10, 60, (count, 2))
    boxes = np.concatenate([centre - size / 2, centre + size / 2], 1).astype(np.float32)
    return boxes, (rng.permutation(len(boxes)) / len(boxes)).astype(np.float32)


def first_output(run: Run) -> Run:
    return lambda: [run()[0]]


def nms(kind: str, count: int = 10_000) -> Case:
    def make(threads: int) -> Contest:
        boxes, scores = boxes_of(kind, count)
        ours = session(
            "mmcv::NonMaxSuppression",
            {"boxes": boxes, "scores": scores},
            threads,
            attributes={"iou_threshold": 0.5, "offset": 0},
        )
        feeds = {"b": boxes[None], "s": scores[None, None], "n": np.array([count]), "iou": np.array([0.5], np.float32)}
        built_in = session("NonMaxSuppression", feeds, threads, opset=11)
        feeds = [boxes[None], scores[None, None]]
        constants = [count, np.float32(0.5), np.float32(-1)]  # without the last one, a score of 0 is too low
        openvino = in_openvino("NonMaxSuppression", 9, feeds, threads, constants)
        rivals = {"ONNX Runtime NonMaxSuppression": built_in, "OpenVINO NonMaxSuppression": first_output(openvino)}
        return Contest(ours, rivals, bytes_of(boxes, scores), same=lambda a, b: np.array_equal(a[0], b[0][:, 2]))

    return Case("nms", f"{count:,} {kind} boxes", make)


def soft_nms(method: int) -> Case:
    def make(threads: int) -> Contest:
        boxes, scores = boxes_of("clustered", 5000)
        attributes = {"iou_threshold": 0.3, "sigma": 0.5, "min_score": 1e-3, "method": method, "offset": 0}
        ours = session(
            "mmcv::SoftNonMaxSuppression",
            {"boxes": boxes, "scores": scores},
            threads,
            ["dets", "keep"],
            attributes=attributes,
        )
        rivals = {}
        if method == 2:  # OpenVINO's weight is exp(-IoU^2 / (2 sigma))
            rivals["OpenVINO NonMaxSuppression"] = in_openvino(
                "NonMaxSuppression", 9, [boxes[None], scores[None, None]], threads,
                constants=[len(boxes), np.float32(1), np.float32(1e-3), np.float32(0.25)],
            )  # fmt: skip
        return Contest(ours, rivals, bytes_of(boxes, scores), same=scores_fall_alike)

    name = ("naive", "linear", "gaussian")[method]
    return Case("soft_nms", f"5,000 boxes, {name}", make, {"MMCV (elsewhere)": ((56, 56), (78, 78))[method - 1]})


def scores_fall_alike(ours: list[np.ndarray], theirs: list[np.ndarray]) -> bool:
    """Compares results that are products of hundreds of factors and round differently: boxes may change order, and a
    few at the minimum score may be missing.
    """
    mine, other = ours[0][:, 4], theirs[1][:, 2]
    both = min(len(mine), len(other))
    return abs(len(mine) - len(other)) <= 5 and np.allclose(mine[:both], other[:both], rtol=1e-3)


def rotated_boxes_of(kind: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    boxes, scores = boxes_of(kind, count)
    angle = np.random.default_rng(4).uniform(-np.pi, np.pi, (len(boxes), 1))
    middle, size = (boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]
    return np.concatenate([middle, size * [1, 0.5], angle], 1).astype(np.float32), scores


def nms_rotated(kind: str, elsewhere: float) -> Case:
    def make(threads: int) -> Contest:
        boxes, scores = rotated_boxes_of(kind, 2000)
        feeds = {"boxes": boxes[None], "scores": scores[None, None]}
        attributes = {"iou_threshold": 0.5, "score_threshold": -1.0}
        ours = session("mmdeploy::NMSRotated", feeds, threads, attributes=attributes)
        openvino = in_openvino("NMSRotated", 13, list(feeds.values()), threads,
                               constants=[len(boxes), np.float32(0.5), np.float32(-1)], clockwise=True)  # fmt: skip
        return Contest(ours, {"OpenVINO NMSRotated": first_output(openvino)}, bytes_of(boxes, scores),
                       same=nearly_the_same_boxes)  # fmt: skip

    return Case("nms_rotated", f"2,000 {kind} boxes", make, {"MMDeploy (elsewhere)": (elsewhere, elsewhere)})


def nearly_the_same_boxes(ours: list[np.ndarray], theirs: list[np.ndarray]) -> bool:
    """An IoU at the threshold may be decided differently in double precision and in float."""
    mine, other = set(ours[0][:, 2].tolist()), set(theirs[0][:, 2].tolist())
    return len(mine ^ other) <= len(mine) // 200


def nms_match(kind: str, elsewhere: float) -> Case:
    def make(threads: int) -> Contest:
        boxes, scores = boxes_of(kind, 2000)
        feeds = {"boxes": boxes[None], "scores": scores[None, None]}
        thresholds = {"iou": np.array([0.5], np.float32), "score": np.array([0], np.float32)}
        ours = session("mmdeploy::NMSMatch", {**feeds, **thresholds}, threads)
        return Contest(ours, {}, bytes_of(boxes, scores))

    return Case("nms_match", f"2,000 {kind} boxes", make, {"MMDeploy (elsewhere)": (elsewhere, elsewhere)})


def nearly_the_same_rows(ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Detections with equal scores may change order, and one of them may be the last that fits."""
    mine, other = (sorted(map(tuple, rows.tolist())) for rows in (ours, theirs))
    return len(mine) == len(other) and len({*mine} ^ {*other}) <= 2


def multiclass_nms(boxes: np.ndarray, by_class: np.ndarray, top_k: int, threads: int) -> Run:
    """OpenVINO's operator, of one image: a row of class, score and box for each of the 100 best detections."""
    return in_openvino(
        "MulticlassNms", 9, [boxes[None], by_class], threads, sort_result_type="score", sort_result_across_batch=False,
        output_type="i64", iou_threshold=0.5, score_threshold=0.25, nms_top_k=top_k, keep_top_k=100, background_class=-1,
        normalized=True, nms_eta=1.0,
    )  # fmt: skip


def batched_nms() -> Case:
    """A detector's head: 8,400 boxes, 80 classes, mostly low scores, at most 100 detections per image."""

    def make(threads: int) -> Contest:
        rng = np.random.default_rng(5)
        boxes, _ = boxes_of("spread", 8400)
        scores = (rng.random((1, 8400, 80)) ** 8).astype(np.float32)
        attributes = {
            "background_label_id": -1, "num_classes": 80, "topk": 1000, "keep_topk": 100, "score_threshold": 0.25,
            "iou_threshold": 0.5, "is_normalized": 0, "clip_boxes": 0,
        }  # fmt: skip
        feeds = {"boxes": boxes[None, :, None], "scores": scores}
        ours = session("mmdeploy::TRTBatchedNMS", feeds, threads, ["dets", "labels"], attributes=attributes)
        by_class = np.ascontiguousarray(scores.transpose(0, 2, 1))
        feeds = {"b": boxes[None], "s": by_class, "n": np.array([1000]), "iou": np.array([0.5], np.float32),
                 "t": np.array([0.25], np.float32)}  # fmt: skip
        suppress = session("NonMaxSuppression", feeds, threads, opset=11)

        def standard() -> list[np.ndarray]:
            rows = suppress()[0].numpy()
            score = by_class[0, rows[:, 1], rows[:, 2]]
            best = np.argsort(-score, kind="stable")[:100]
            return [np.concatenate([boxes[rows[best, 2]], score[best, None]], 1)[None]]

        multiclass = multiclass_nms(boxes, by_class, 1000, threads)

        def in_our_order() -> list[np.ndarray]:
            return [multiclass()[0][None][:, :, [2, 3, 4, 5, 1]]]

        rivals = {"ONNX Runtime NonMaxSuppression + top k": standard, "OpenVINO MulticlassNms": in_our_order}
        return Contest(ours, rivals, bytes_of(boxes, scores), same=lambda a, b: nearly_the_same_rows(a[0][0], b[0][0]))

    return Case("batched_nms", "8,400 boxes x 80 classes, 100 detections", make)


def efficient_nms() -> Case:
    """The same head, with the detections of all classes in one pass."""

    def make(threads: int) -> Contest:
        rng = np.random.default_rng(5)
        boxes, _ = boxes_of("spread", 8400)
        scores = (rng.random((1, 8400, 80)) ** 8).astype(np.float32)
        attributes = {
            "score_threshold": 0.25, "iou_threshold": 0.5, "max_output_boxes": 100, "background_class": -1,
            "score_activation": 0, "box_coding": 0,
        }  # fmt: skip
        names = ["num", "boxes", "scores", "classes"]
        ours = session("TRT::EfficientNMS_TRT", {"b": boxes[None], "s": scores}, threads, names, attributes=attributes)
        by_class = np.ascontiguousarray(scores.transpose(0, 2, 1))
        feeds = {"b": boxes[None], "s": by_class, "n": np.array([100]), "iou": np.array([0.5], np.float32),
                 "t": np.array([0.25], np.float32)}  # fmt: skip
        suppress = session("NonMaxSuppression", feeds, threads, opset=11)

        def standard() -> list[np.ndarray]:
            rows = suppress()[0].numpy()
            score = by_class[0, rows[:, 1], rows[:, 2]]
            return [boxes[rows[np.argsort(-score, kind="stable")[:100], 2]]]

        multiclass = multiclass_nms(boxes, by_class, -1, threads)

        def boxes_alone() -> list[np.ndarray]:
            return [multiclass()[0][:, 2:]]

        rivals = {"ONNX Runtime NonMaxSuppression + top k": standard, "OpenVINO MulticlassNms": boxes_alone}
        return Contest(ours, rivals, bytes_of(boxes, scores), same=lambda a, b: nearly_the_same_rows(a[1][0], b[0]))

    return Case("efficient_nms", "8,400 boxes x 80 classes, 100 detections", make)


CASES = [
    *(nms(kind) for kind in ("clustered", "spread", "disjoint")),
    soft_nms(1),
    soft_nms(2),
    nms_rotated("clustered", 20),
    nms_rotated("spread", 130),
    nms_match("clustered", 4.1),
    nms_match("spread", 16.7),
    batched_nms(),
    efficient_nms(),
]
