"""NMS and soft-NMS drawn on a photo of coins that a sliding-window detector found many times each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx
import skimage
from onnx import TensorProto, helper
from panel import Panel, font
from PIL import Image, ImageDraw
from rich.table import Table
from scipy.ndimage import gaussian_filter, maximum_filter

if TYPE_CHECKING:
    from rich.console import Console

SIZES = range(44, 90, 4)  # window extents in pixels
STRONGEST = 160
SHOWN = 0.25  # boxes below this score are not drawn
ZOOM = 2
THRESHOLD = 0.04  # windows of neighbouring coins overlap by more: NMS loses some, soft-NMS does not


def candidates(photo: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Windows that look like a bright disc on dark ground, as boxes f32[N, 4] and scores f32[N] in 0..1.

    The score is the normalised correlation with a disc: a detector that fires several times an object,
    as detectors do.
    """
    level = photo.astype(np.float64) - gaussian_filter(photo.astype(np.float64), 40)
    boxes, scores = [], []
    for size in SIZES:
        axis = np.linspace(-1.5, 1.5, size)
        disc = (np.hypot(*np.meshgrid(axis, axis)) < 1).astype(np.float64)
        disc = (disc - disc.mean()) / disc.std()
        windows = np.lib.stride_tricks.sliding_window_view(level, (size, size))[::2, ::2]
        spread = windows.std((2, 3)) + 12  # the constant keeps flat ground from scoring
        response = np.einsum("yxij,ij->yx", windows - windows.mean((2, 3), keepdims=True), disc) / size**2 / spread
        peaks = (response == maximum_filter(response, 5)) & (response > 0.35)
        for y, x in np.argwhere(peaks):
            boxes.append((2 * x, 2 * y, 2 * x + size, 2 * y + size))
            scores.append(response[y, x])
    order = np.argsort(scores)[::-1][:STRONGEST]
    return np.array(boxes, np.float32)[order], np.array(scores, np.float32)[order]


def model(path: Path, op_type: str, outputs: list[tuple[str, int]], **attributes: object) -> Path:
    """A model of one `mmcv` node over boxes and scores of any number."""
    node = helper.make_node(op_type, ["boxes", "scores"], [name for name, _ in outputs], domain="mmcv", **attributes)
    inputs = [
        helper.make_tensor_value_info("boxes", TensorProto.FLOAT, ["N", 4]),
        helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["N"]),
    ]
    infos = [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs]
    graph = helper.make_graph([node], op_type, inputs, infos)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mmcv", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def draw_boxes(photo: np.ndarray, boxes: np.ndarray, scores: np.ndarray) -> Image.Image:
    picture = Image.fromarray(photo).convert("RGB").resize((photo.shape[1] * ZOOM, photo.shape[0] * ZOOM))
    draw = ImageDraw.Draw(picture)
    small = font(13, bold=True)
    for box, score in sorted(zip(boxes, scores, strict=True), key=lambda item: item[1]):
        if score < SHOWN:
            continue
        strength = min(1.0, max(0.0, (float(score) - SHOWN) / (0.9 - SHOWN)))
        colour = (255, int(210 * (1 - strength)) + 30, 40)
        corner = [float(v) * ZOOM for v in box]
        draw.rectangle(corner, outline=colour, width=2)
        text = f"{score:.2f}"
        draw.rectangle(
            (corner[0], corner[1], corner[0] + draw.textlength(text, small) + 6, corner[1] + 17), fill=colour
        )
        draw.text((corner[0] + 3, corner[1] + 1), text, (20, 20, 20), small)
    return picture


def draw_suppression(program, out: Path, console: Console) -> Image.Image:
    """Returns the picture of candidates, NMS and soft-NMS side by side."""
    photo = np.asarray(Image.open(Path(skimage.__file__).parent / "data" / "coins.png").convert("L"))
    boxes, scores = candidates(photo)
    np.save(out / "boxes.npy", boxes)
    np.save(out / "scores.npy", scores)
    feeds = ("-i", f"boxes={out / 'boxes.npy'}", "-i", f"scores={out / 'scores.npy'}")

    hard = model(
        out / "nms.onnx", "NonMaxSuppression", [("keep", TensorProto.INT64)], iou_threshold=THRESHOLD, offset=0
    )
    program.run(hard, *feeds, "-o", f"keep={out / 'keep.npy'}")
    keep = np.load(out / "keep.npy")

    soft = model(
        out / "soft_nms.onnx", "SoftNonMaxSuppression", [("dets", TensorProto.FLOAT), ("keep", TensorProto.INT64)],
        iou_threshold=THRESHOLD, sigma=0.3, min_score=0.001, method=2, offset=0,
    )  # fmt: skip
    program.run(soft, *feeds, "-o", f"dets={out / 'dets.npy'}")
    dets = np.load(out / "dets.npy")

    table = Table(title="Boxes on the photo of 24 coins", title_justify="left")
    for column in ("", "boxes", f"with a score of {SHOWN} or more"):
        table.add_column(column, justify="left" if not column else "right")
    rows = (
        ("candidates", scores),
        (f"NMS, IoU {THRESHOLD}", scores[keep]),
        ("soft-NMS, gaussian, sigma 0.3", dets[:, 4]),
    )
    for name, kept in rows:
        table.add_row(name, str(len(kept)), str(int((kept >= SHOWN).sum())))
    console.print(table)

    panel = Panel("Suppression of overlapping detections: mmcv::NonMaxSuppression and mmcv::SoftNonMaxSuppression")
    panel.add(f"{len(boxes)} candidates", draw_boxes(photo, boxes, scores))
    panel.add(f"NMS loses neighbours: {len(keep)} of 24 coins", draw_boxes(photo, boxes[keep], scores[keep]))
    panel.add(
        f"Soft-NMS only lowers their scores: {int((dets[:, 4] >= SHOWN).sum())} of 24",
        draw_boxes(photo, dets[:, :4], dets[:, 4]),
    )
    picture = panel.draw(columns=3)
    picture.save(out / "nms_compared.png")
    return picture
