# SPDX-License-Identifier: Apache-2.0
"""Detections and regions of a file with an attached head, and drawings of them on the photo."""

from __future__ import annotations

import colorsys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from polyop.attaching.errors import AttachError
from polyop.attaching.maps import SEGMENTATION, bounds, classes_of

_GOLDEN = 0.618034  # hues of consecutive classes are far apart
_MASK_OPACITY = 0.45


@dataclass(frozen=True)
class Detection:
    """box: corners, or (cx, cy, width, height, angle). points: [P, 2 or 3]; mask: [H, W]. is_region: all pixels of a
    class in a map; the score is their share of the photo."""

    label: int
    name: str
    score: float
    box: np.ndarray
    points: np.ndarray | None = None
    mask: np.ndarray | None = None
    is_region: bool = False

    def as_json(self) -> dict[str, Any]:
        points = {} if self.points is None else {"points": self.points.tolist()}
        score = "share" if self.is_region else "score"
        return {"class": self.label, "name": self.name, score: self.score, "box": self.box.tolist(), **points}

    def outline(self) -> list[tuple[float, float]]:
        """Returns the corners of the box, in order."""
        if len(self.box) == 4:
            x1, y1, x2, y2 = map(float, self.box)
            return [(x1, y1), (x2, y1), (x2, y2), (x1, y2)]
        x, y, width, height, angle = map(float, self.box)
        along = np.array([np.cos(angle), np.sin(angle)]) * width / 2
        across = np.array([-np.sin(angle), np.cos(angle)]) * height / 2
        corners = (-along - across, along - across, along + across, -along + across)
        return [(x + float(dx), y + float(dy)) for dx, dy in corners]


def detections(outputs: Mapping[str, np.ndarray], names: Sequence[str]) -> list[Detection]:
    """Returns the detections of the first image, from outputs in EfficientNMS' form or with the rows in use only, or
    the regions of its map."""
    if SEGMENTATION in outputs:
        return regions(outputs[SEGMENTATION][0], names)
    missing = [n for n in ("detection_boxes", "detection_scores", "detection_classes") if n not in outputs]
    if missing:
        raise AttachError(
            f"expected the outputs detection_boxes, detection_scores and detection_classes, got {', '.join(outputs)}",
            "`polyop attach` writes files with these outputs",
        )
    if "image_indices" in outputs:
        used = np.flatnonzero(outputs["image_indices"] == 0)
        of_image = {name: value[used] for name, value in outputs.items() if name.startswith("detection_")}
    else:
        count = int(outputs["num_detections"][0].item())
        of_image = {name: value[0, :count] for name, value in outputs.items() if name.startswith("detection_")}
    labels = of_image["detection_classes"].astype(int).tolist()
    points, masks = of_image.get("detection_points"), of_image.get("detection_masks")
    return [
        Detection(
            label,
            names[label] if label < len(names) else str(label),
            float(of_image["detection_scores"][i]),
            of_image["detection_boxes"][i],
            None if points is None else points[i],
            None if masks is None else masks[i],
        )
        for i, label in enumerate(labels)
    ]


def regions(labels: np.ndarray, names: Sequence[str]) -> list[Detection]:
    """Returns the pixels of each class in a map [H, W], the largest region first."""
    found = []
    for label, share in classes_of(labels):
        mask = labels == label
        name = names[label] if 0 <= label < len(names) else str(label)
        found.append(Detection(label, name, share, bounds(mask), mask=mask, is_region=True))
    return found


def draw(pixels: np.ndarray, found: Sequence[Detection]) -> np.ndarray:
    """Returns the pixels [H, W, 3] with masks, boxes, points and labels, the best detection on top."""
    result = pixels.astype(np.float32)
    for detection in reversed(found):
        if detection.mask is not None and detection.mask.shape == pixels.shape[:2]:
            inside = detection.mask.astype(bool)
            result[inside] += (np.array(_color(detection.label)) - result[inside]) * _MASK_OPACITY
    image = Image.fromarray(result.round().astype(np.uint8))
    canvas = ImageDraw.Draw(image)
    width = max(1, round(max(image.size) / 400))
    font = ImageFont.load_default(max(10, 6 * width))
    for detection in reversed(found):
        _draw_one(canvas, detection, width, font)
    return np.asarray(image)


def _color(label: int) -> tuple[int, int, int]:
    r, g, b = colorsys.hsv_to_rgb(label * _GOLDEN % 1, 0.85, 1)
    return round(r * 255), round(g * 255), round(b * 255)


def _inner(mask: np.ndarray | None) -> tuple[float, float]:
    """Returns the pixel of a mask that is nearest to the mask's centre: a place for its name."""
    assert mask is not None
    rows, columns = np.nonzero(mask)
    nearest = int(np.argmin((rows - rows.mean()) ** 2 + (columns - columns.mean()) ** 2))
    return float(columns[nearest]), float(rows[nearest])


def _draw_one(canvas: ImageDraw.ImageDraw, detection: Detection, width: int, font: Any) -> None:
    color = _color(detection.label)
    corners = [_inner(detection.mask)] if detection.is_region else detection.outline()
    if not detection.is_region:
        canvas.line([*corners, corners[0]], fill=color, width=width, joint="curve")
    for point in [] if detection.points is None else detection.points:
        if len(point) == 2 or point[2] > 0.5:
            x, y, radius = float(point[0]), float(point[1]), 2 * width
            canvas.ellipse((x - radius, y - radius, x + radius, y + radius), fill=color)
    text = detection.name if detection.is_region else f"{detection.name} {detection.score:.2f}"
    x, y = min(corners)[0], min(c[1] for c in corners)
    left, top, right, bottom = canvas.textbbox((0, 0), text, font=font)
    y = max(0.0, y - (bottom - top) - 2 * width)
    canvas.rectangle((x, y, x + right - left + 2 * width, y + bottom - top + 2 * width), fill=color)
    dark = sum(color) > 380
    canvas.text((x + width - left, y + width - top), text, fill=(0, 0, 0) if dark else (255, 255, 255), font=font)
