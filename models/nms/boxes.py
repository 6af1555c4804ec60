# SPDX-License-Identifier: Apache-2.0
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
from scipy.ndimage import (
    binary_closing,
    binary_fill_holes,
    binary_opening,
    center_of_mass,
    gaussian_filter,
    label,
    maximum_filter,
)
from skimage.filters import threshold_local

if TYPE_CHECKING:
    from rich.console import Console

SIZES = range(44, 90, 4)  # window extents in pixels
STRONGEST = 160
SHOWN = 0.25  # boxes below this score are not drawn
ZOOM = 2
USUAL, STRICT = 0.3, 0.04  # IoU; a few windows of neighbouring coins overlap by more than the strict one
SIGMA = 0.3
NEAR = 16  # distance in pixels within which a box's centre counts as that coin's


def candidates(photo: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns windows that resemble a bright disc on dark ground, as boxes f32[N, 4] and scores f32[N] in 0..1.

    The score is the normalised correlation with a disc: like other detectors, it fires several times per object.
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


def coin_centres(photo: np.ndarray) -> np.ndarray:
    """Returns the centres (x, y) of the coins, f64[N, 2], by segmentation: the ground truth of the detector's boxes."""
    bright = photo > threshold_local(photo, 151) + 8
    discs = binary_opening(binary_fill_holes(binary_closing(bright, iterations=2)), iterations=6)
    regions, count = label(discs)
    return np.array(center_of_mass(discs, regions, range(1, count + 1)))[:, ::-1]


def found(boxes: np.ndarray, centres: np.ndarray) -> int:
    """Returns how many coins have the centre of at least one box near their own."""
    middles = (boxes[:, None, :2] + boxes[:, None, 2:]) / 2
    return int((np.linalg.norm(middles - centres, axis=2) < NEAR).any(0).sum())


def model(path: Path, op_type: str, outputs: list[tuple[str, int]], **attributes: object) -> Path:
    """Returns a model of one `mmcv` node for any number of boxes and scores."""
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
    image = Image.fromarray(photo).convert("RGB").resize((photo.shape[1] * ZOOM, photo.shape[0] * ZOOM))
    draw = ImageDraw.Draw(image)
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
    return image


def draw_suppression(program, out: Path, console: Console) -> Image.Image:
    """Returns the image of the candidates, NMS at two thresholds, and soft-NMS."""
    photo = np.asarray(Image.open(Path(skimage.__file__).parent / "data" / "coins.png").convert("L"))
    boxes, scores = candidates(photo)
    np.save(out / "boxes.npy", boxes)
    np.save(out / "scores.npy", scores)
    feeds = ("-i", f"boxes={out / 'boxes.npy'}", "-i", f"scores={out / 'scores.npy'}")

    def nms(iou: float) -> np.ndarray:
        node = model(
            out / f"nms_{iou:g}.onnx", "NonMaxSuppression", [("keep", TensorProto.INT64)], iou_threshold=iou, offset=0
        )
        keep = out / f"keep_{iou:g}.npy"
        program.run(node, *feeds, "-o", f"keep={keep}")
        return np.load(keep)

    soft = model(
        out / "soft_nms.onnx", "SoftNonMaxSuppression", [("dets", TensorProto.FLOAT), ("keep", TensorProto.INT64)],
        iou_threshold=USUAL, sigma=SIGMA, min_score=0.001, method=2, offset=0,
    )  # fmt: skip
    usual, strict = nms(USUAL), nms(STRICT)
    program.run(soft, *feeds, "-o", f"dets={out / 'dets.npy'}")
    dets = np.load(out / "dets.npy")

    centres = coin_centres(photo)
    results = (
        ("Candidates", boxes, scores),
        (f"NMS, IoU {USUAL:g}", boxes[usual], scores[usual]),
        (f"Strict NMS, IoU {STRICT:g}", boxes[strict], scores[strict]),
        (f"Soft-NMS, sigma {SIGMA:g}", dets[:, :4], dets[:, 4]),
    )
    table = Table(title=f"Boxes on a photo of {len(centres)} coins", title_justify="left")
    for column in ("", "boxes", f"score of {SHOWN:g} or more", "coins found by these"):
        table.add_column(column, justify="left" if not column else "right")
    panel = Panel("Suppression of overlapping detections: mmcv::NonMaxSuppression and mmcv::SoftNonMaxSuppression")
    for name, kept, confidence in results:
        shown = confidence >= SHOWN
        coins = found(kept[shown], centres)
        table.add_row(name, str(len(kept)), str(int(shown.sum())), f"{coins} of {len(centres)}")
        panel.add(
            f"{name}: {int(shown.sum())} boxes, {coins} of {len(centres)} coins", draw_boxes(photo, kept, confidence)
        )
    console.print(table)
    image = panel.draw(columns=2).quantize(48, dither=Image.Dither.NONE)  # grey and orange need few colours
    image.save(out / "nms_compared.png")
    return image
