# SPDX-License-Identifier: Apache-2.0
"""Finds and reads text: rapidocr's detector and recognizer in ONNX Runtime, and polyop's rotated RoIAlign for crops.

The detector gives a map of text. Each region of it becomes a rotated box, whose crop polyop samples from the photo; the
recognizer reads all crops at once.

python examples/text/main.py FOLDER [PHOTO]     the default photo is scikit-image's page
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import onnxruntime as ort
from PIL import Image, ImageDraw, ImageFont
from scipy import ndimage, spatial

import polyop
import polyop.numpy
from polyop.attaching.drawing import Detection
from polyop.batch.images import read

MODELS = Path(__file__).resolve().parents[2] / ".deps" / "text" / "rapidocr" / "models"
SHORT_SIDE = 736  # of the detector's image
IS_TEXT, MIN_SCORE = 0.3, 0.5  # of the map's pixels, and of the mean of a region
GROWTH = 1.6  # the detector finds the middle of a line: a box grows by this part of its area by its perimeter
LINE_HEIGHT = 48  # of the recognizer's crops


def text_map(detector: ort.InferenceSession, photo: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the map [h, w] of text, and the photo's pixels per pixel of it, (x, y)."""
    height, width = photo.shape[:2]
    scale = max(SHORT_SIDE / min(height, width), 1)
    extents = [max(round(n * scale / 32), 1) * 32 for n in (width, height)]
    resized = np.asarray(Image.fromarray(photo).resize(extents, Image.Resampling.BILINEAR))
    image = (resized[..., ::-1] / 255 - (0.485, 0.456, 0.406)) / (0.229, 0.224, 0.225)
    (found,) = detector.run(None, {"x": image.transpose(2, 0, 1)[None].astype(np.float32)})
    return found[0, 0], np.array([width, height]) / extents


def rotated_box(points: np.ndarray) -> np.ndarray:
    """Returns the smallest box around points [n, 2]: (cx, cy, width, height, angle), its width along the text."""
    corners = points[spatial.ConvexHull(points, qhull_options="QJ").vertices]
    edges = np.diff(corners, axis=0, append=corners[:1])
    angles = np.arctan2(edges[:, 1], edges[:, 0])
    axes = np.stack([np.cos(angles), np.sin(angles)], -1)  # a side of the smallest box lies on an edge of the hull
    along, across = corners @ axes.T, corners @ np.stack([-axes[:, 1], axes[:, 0]])
    best = np.argmin(np.ptp(along, 0) * np.ptp(across, 0))
    extents = [np.ptp(along[:, best]), np.ptp(across[:, best])]
    middle = np.array([along[:, best].max() + along[:, best].min(), across[:, best].max() + across[:, best].min()]) / 2
    axis, normal = axes[best], np.array([-axes[best, 1], axes[best, 0]])
    angle = angles[best]
    if extents[0] < extents[1]:
        extents, angle = extents[::-1], angle + np.pi / 2
    return np.array([*(middle[0] * axis + middle[1] * normal), *extents, (angle + np.pi / 2) % np.pi - np.pi / 2])


def lines(found: np.ndarray, pixels: np.ndarray) -> np.ndarray:
    """Returns the rotated boxes [n, 5] of the lines of text in the photo, from top to bottom."""
    regions, count = ndimage.label(found > IS_TEXT, np.ones((3, 3)))
    means = ndimage.mean(found, regions, range(1, count + 1))
    boxes = []
    for i, part in enumerate(ndimage.find_objects(regions)):
        rows, columns = np.nonzero(regions[part] == i + 1)
        if means[i] < MIN_SCORE or len(rows) < 9:
            continue
        points = np.stack([columns + part[1].start, rows + part[0].start], -1) + 0.5
        box = rotated_box(points)
        box[2:4] += GROWTH * box[2] * box[3] / (box[2] + box[3])  # both sides grow by area / perimeter
        boxes.append([*(box[:2] * pixels), *(box[2:4] * pixels.mean()), box[4]])
    return np.array(sorted(boxes, key=lambda box: box[1])).reshape(-1, 5)


def recognize(recognizer: ort.InferenceSession, photo: np.ndarray, boxes: np.ndarray) -> list[tuple[str, float]]:
    """Returns the text of each box, and the mean score of its characters."""
    names = recognizer.get_modelmeta().custom_metadata_map["character"].splitlines()
    characters = ["", *names, " "]
    image = np.ascontiguousarray(photo[..., ::-1].transpose(2, 0, 1)[None] / np.float32(127.5) - 1)
    widths = [int(np.ceil(LINE_HEIGHT * box[2] / box[3])) for box in boxes]
    crops = np.zeros((len(boxes), 3, LINE_HEIGHT, max(widths)), np.float32)
    for crop, box, width in zip(crops, boxes, widths, strict=True):
        roi = np.array([[0, *box]], np.float32)
        crop[..., :width] = polyop.numpy.roi_align_rotated(
            image, roi, (LINE_HEIGHT, width), aligned=True, clockwise=True
        )[0]
    (scores,) = recognizer.run(None, {"x": crops})
    found = []
    for of_line in scores:
        best = of_line.argmax(1)
        read_at = np.flatnonzero((best != 0) & (best != np.concatenate([[0], best[:-1]])))
        sure = of_line[read_at, best[read_at]].mean() if len(read_at) else 0.0
        found.append(("".join(characters[i] for i in best[read_at]), float(sure)))
    return found


def drawn(photo: np.ndarray, boxes: np.ndarray, texts: list[tuple[str, float]]) -> Image.Image:
    """Returns the photo with the boxes, and next to it the texts where they are in the photo."""
    image = Image.new("RGB", (2 * photo.shape[1], photo.shape[0]), "white")
    image.paste(Image.fromarray(photo))
    canvas = ImageDraw.Draw(image)
    for box, (text, score) in zip(boxes, texts, strict=True):
        corners = Detection(0, text, score, box).outline()
        canvas.line([*corners, corners[0]], fill=(220, 40, 40), width=1)
        left, top = min(x for x, _ in corners) + photo.shape[1], box[1]
        font = ImageFont.load_default(9)
        canvas.text((min(left, image.width - canvas.textlength(text, font)), top), text, (0, 0, 0), font, anchor="lm")
    return image


def main(folder: Path, photo: np.ndarray) -> None:
    detector, recognizer = (polyop.session(MODELS / f"PP-OCRv6_{kind}_small.onnx") for kind in ("det", "rec"))
    begin = time.perf_counter()
    found, pixels = text_map(detector, photo)
    boxes = lines(found, pixels)
    texts = recognize(recognizer, photo, boxes) if len(boxes) else []
    milliseconds = (time.perf_counter() - begin) * 1e3
    for text, score in texts:
        print(f"{score:.2f}  {text}")
    drawn(photo, boxes, texts).save(folder / "text.png")
    print(f"{len(texts)} lines of text in {milliseconds:.0f} ms; wrote {folder / 'text.png'}")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    if len(sys.argv) == 3:
        main(target, read(Path(sys.argv[2]).read_bytes(), sys.argv[2]))
    else:
        from skimage import data

        main(target, np.repeat(data.page()[..., None], 3, 2))
