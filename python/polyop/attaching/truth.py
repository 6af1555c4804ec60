# SPDX-License-Identifier: Apache-2.0
"""The true objects of photos, from annotations in COCO's form."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from polyop.attaching.drawing import Detection
from polyop.attaching.errors import AttachError
from polyop.errors import one_line


@dataclass(frozen=True)
class TrueObject(Detection):
    """crowd: a region of many objects of the class: detections inside are neither right nor wrong."""

    crowd: bool = False


class Truth:
    """The annotations of a file: {"images": [{"id", "file_name"}], "categories": [{"id", "name"}], "annotations":
    [{"image_id", "category_id", "bbox": [x, y, width, height], "iscrowd"}]}.

    A box of five numbers is rotated, as Detectron2 writes it: (cx, cy, width, height, degrees counter-clockwise).
    """

    def __init__(self, path: Path, classes: Sequence[str]) -> None:
        """classes: the names of the model's classes. If each category has the name of one, these decide; otherwise
        class i is the category of the i-th smallest id, as models of COCO's 80 classes have it."""
        self._path = path
        self._files: dict[str, Any] = {}
        self._objects: dict[Any, list[TrueObject]] = {}
        try:
            self._take(json.loads(path.read_bytes()), classes)
        except OSError as error:
            raise AttachError(f"{path}: {error.strerror or error}") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            why = f"{error} is missing" if isinstance(error, KeyError) else one_line(error)
            raise AttachError(f"{path}: expected annotations in COCO's form, got another file: {why}") from error

    def _take(self, content: dict[str, Any], classes: Sequence[str]) -> None:
        for image in content["images"]:
            for name in {image["file_name"], Path(image["file_name"]).name}:
                self._files[name] = image["id"]
        categories = {category["id"]: str(category["name"]) for category in content["categories"]}
        if set(categories.values()) <= set(classes):
            labels = {id_: classes.index(name) for id_, name in categories.items()}
        else:
            labels = {id_: rank for rank, id_ in enumerate(sorted(categories))}
        for annotation in content["annotations"]:
            label, name = labels.get(annotation["category_id"]), categories.get(annotation["category_id"], "")
            if label is None:
                raise ValueError(f"an annotation has category {annotation['category_id']}, which is none of categories")
            crowd = bool(annotation.get("iscrowd", 0))
            of_image = self._objects.setdefault(annotation["image_id"], [])
            of_image.append(TrueObject(label, name, 1.0, _box(annotation["bbox"]), crowd=crowd))

    def of(self, photo: Path) -> list[TrueObject]:
        """Returns the objects of a photo. Raises AttachError if the file does not have it."""
        if photo.name not in self._files:
            raise AttachError(f"{self._path}: expected an image with the file_name '{photo.name}', got none")
        return self._objects.get(self._files[photo.name], [])


def _box(numbers: Sequence[float]) -> np.ndarray:
    """Returns a box as Detection has it. Raises ValueError or TypeError if there are not 4 or 5 finite numbers."""
    box = np.array([float(number) for number in numbers])
    if len(box) not in (4, 5) or not np.isfinite(box).all():
        raise ValueError(f"expected boxes of 4 or 5 finite numbers, got {numbers}")
    if len(box) == 4:
        return np.concatenate([box[:2], box[:2] + box[2:]])
    box[4] = -math.radians(box[4])
    return box
