# SPDX-License-Identifier: Apache-2.0
"""Which head of a detector the outputs of a model are: by their shapes, their names and the model's metadata."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil

import onnx

from polyop.attaching.errors import AttachError

TASKS = ("detect", "segment", "pose", "obb", "map")
_YOLO_STRIDES = ((8, 16, 32), (8, 16, 32, 64))
_RETINANET_STRIDES = (8, 16, 32, 64, 128)
_ANCHORS_OF_YOLO, ANCHORS_OF_RETINANET = 3, 9  # per cell
_COUNTS = (100, 300)  # of the detections of models that need no suppression
_CLASSES_OF_DETR = (91 + 1, 250 + 1)  # COCO's, and those of panoptic models: the last class is "no object"


@dataclass(frozen=True)
class Head:
    """What a head's outputs contain, and how its models expect an image."""

    expects: str
    best_class: bool = True  # a box has its best class only
    is_final: bool = False  # the model suppresses
    fit: str = "letterbox"  # or "resize"
    corner: bool = False  # the image is in the upper left corner of the letterbox
    border: float | None = 114  # the letterbox' gray, as Ultralytics has it; None: 0 after the normalization
    color: str = "RGB"
    range: tuple[float, float] = (0, 1)
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)


_RESIZED = Head("", best_class=False, fit="resize")
_IMAGENET = replace(_RESIZED, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
_MMDETECTION = Head(
    "", is_final=True, corner=True, border=None, range=(0, 255), mean=(123.675, 116.28, 103.53),
    std=(58.395, 57.12, 57.375),
)  # fmt: skip
HEADS = {
    "yolov5": Head("[N, B, 5 + C]: centre, size, objectness and class scores of 3 anchors per cell; YOLOv5, v6 and v7"),
    "yolov7": Head("as yolov5"),
    "yolov8": Head("[N, 4 + C, B]: centre, size and class scores; YOLOv8, v9, v11 and v12"),
    "yolov10": Head("[N, K, 6]: corners, score and class, already suppressed; YOLOv10 and 26", is_final=True),
    "yolov26": Head("as yolov10", is_final=True),
    "yolox": Head(
        "[N, B, 5 + C]: as yolov5, relative to the cells of strides 8, 16 and 32",
        corner=True,
        color="BGR",
        range=(0, 255),
    ),
    "ssd": replace(
        _RESIZED,
        expects="[N, B, 4] and [N, B, C]: corners as fractions of the image and class scores, of which class 0 is the "
        "background",
    ),
    "retinanet": replace(
        _IMAGENET, expects="[N, A, 4] and [N, A, C]: offsets from 9 anchors per cell of strides 8 to 128, and logits"
    ),
    "detr": replace(
        _IMAGENET,
        expects="[N, Q, 4] and [N, Q, C + 1]: centre and size as fractions of the image, and logits for a softmax whose "
        "last class is no object",
        is_final=True,
    ),
    "rtdetr": replace(
        _RESIZED,
        expects="[N, Q, 4] and [N, Q, C]: as detr, with logits for sigmoids; RT-DETR",
        is_final=True,
    ),
    "efficientnms": Head(
        "[N, 1], [N, K, 4], [N, K] and [N, K]: the number of detections, corners, scores and classes", is_final=True
    ),
    "mmdet": replace(_MMDETECTION, expects="[N, K, 5] and integers [N, K]: corners with the score, and classes"),
    "mmrotate": replace(
        _MMDETECTION, expects="[N, K, 6] and integers [N, K]: centre, size, angle and score, and classes"
    ),
    "torchvision": Head(
        "[K, 4], [K] and integers [K]: corners, scores and classes of one image", is_final=True, corner=True
    ),
    "mmseg": replace(
        _MMDETECTION,
        expects="integers [N, 1, H, W] or [N, H, W]: the class of each pixel; or [N, C, H, W]: their logits",
        fit="resize",
    ),
}
_RANKS = {
    **dict.fromkeys(("ssd", "retinanet", "detr", "rtdetr"), (3, 3)),
    "efficientnms": (2, 2, 2, 3),
    **dict.fromkeys(("mmdet", "mmrotate"), (2, 3)),
    "torchvision": (1, 1, 2),
    "mmseg": (4,),
}
"""The ranks of a head's outputs, in ascending order; those of heads that are not named are (3,)."""


@dataclass(frozen=True)
class Tensor:
    """An input or output. None: a dimension that is not fixed."""

    name: str
    shape: tuple[int | None, ...]
    type: int = onnx.TensorProto.FLOAT

    def __str__(self) -> str:
        return f"{self.name} [{', '.join('?' if d is None else str(d) for d in self.shape)}]"


@dataclass(frozen=True)
class Layout:
    """A recognized head."""

    head: str
    why: str
    tensors: tuple[Tensor, ...]
    """Of yolo heads: the predictions and, of segmentation models, the prototypes. Of pairs: boxes and scores. Of models
    that return a mask for each detection, these are the last one."""
    classes: int | None
    task: str = "detect"
    points: tuple[int, int] = (0, 0)
    """The number of key points, and of their coordinates."""
    names: tuple[str, ...] = ()

    @property
    def masks(self) -> Tensor | None:
        """The masks of the detections, if the model returns them instead of prototypes."""
        return self.tensors[-1] if self.task == "segment" and self.head in _OF_TOOLBOXES else None

    @property
    def extra(self) -> int:
        """The number of columns after the class scores: coefficients of masks, coordinates of points, or the angle."""
        if self.task == "segment":
            return self.tensors[1].shape[1] or 0
        return {"pose": self.points[0] * self.points[1], "obb": 1}.get(self.task, 0)


@dataclass(frozen=True)
class Model:
    """What is recognized from. extents: the height and width of the input, if they are fixed."""

    outputs: Sequence[Tensor]
    metadata: Mapping[str, str]
    extents: tuple[int, int] | None
    task: str | None = None
    points: tuple[int, int] | None = None
    hint: str = field(default="", compare=False)  # names in the file: of the producer, the graph and the outputs

    def cells(self, strides: Sequence[int]) -> int:
        """Returns the number of cells of all strides, or -1 if the extents are not known."""
        if self.extents is None:
            return -1
        return sum(ceil(self.extents[0] / s) * ceil(self.extents[1] / s) for s in strides)

    def is_count(self, boxes: int | None, anchors: int) -> bool:
        """Returns True if the number of boxes is that of a YOLO with `anchors` anchors per cell."""
        return any(boxes == anchors * self.cells(strides) for strides in _YOLO_STRIDES)

    def names(self) -> tuple[str, ...]:
        """Returns the names of the classes that Ultralytics' exporter writes."""
        found = _literal(self.metadata.get("names", ""))
        if isinstance(found, dict) and all(isinstance(i, int) for i in found):
            if (last := max(found, default=-1)) > _MAX_CLASSES:
                raise AttachError(f"metadata 'names': expected numbers of classes up to {_MAX_CLASSES}, got {last}")
            return tuple(str(found.get(i, i)) for i in range(last + 1))
        return tuple(map(str, found)) if isinstance(found, (list, tuple)) else ()


_MAX_CLASSES = 100_000
"""More than any data set has: a small file may claim any number."""


def _literal(text: str) -> object:
    """Returns the value of a literal of Python or of JSON, or None."""
    for parse in (ast.literal_eval, json.loads):
        try:
            return parse(text)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
    return None


def size_in(metadata: Mapping[str, str]) -> tuple[int, int] | None:
    """Returns the height and width that Ultralytics' exporter writes, or None."""
    found = _literal(metadata.get("imgsz", ""))
    is_pair = isinstance(found, (list, tuple)) and len(found) == 2 and all(isinstance(e, int) and e > 0 for e in found)
    return (found[0], found[1]) if is_pair else None  # type: ignore[index]


def recognize(model: Model, head: str = "auto") -> Layout:
    """Returns the head. Raises AttachError if the outputs fit none, or more than one."""
    if head == "auto":
        head, why = _choose(model)
    else:
        why = "it was given"
    layout = _fitted(model, head, why)
    if layout is None:
        raise _no_head(model, f"head {head}: the model's outputs do not fit", [head])
    return layout


def _no_head(model: Model, message: str, heads: Sequence[str]) -> AttachError:
    found = "; ".join(map(str, model.outputs)) or "none"
    expected = "; ".join(f"{name}: {HEADS[name].expects}" for name in heads)
    return AttachError(f"{message}. Outputs: {found}. Expected {expected}", "--head NAME says which head it is")


_NEAREST = 3


def _nearest(model: Model) -> list[str]:
    """Returns the heads whose outputs have the most similar ranks."""
    ranks = Counter(len(t.shape) for t in model.outputs)

    def distance(name: str) -> int:
        expected = Counter(_RANKS.get(name, (3,)))
        return (expected - ranks).total() + (ranks - expected).total()

    own = [name for name, head in HEADS.items() if not head.expects.startswith("as ")]
    return sorted(own, key=distance)[:_NEAREST]


def _choose(model: Model) -> tuple[str, str]:
    """Returns the head and the reason."""
    if _efficient(model) is not None:
        return "efficientnms", "four outputs are the number of detections, boxes, scores and classes"
    for name, fit in _OF_TOOLBOXES.items():
        if (final := fit(model)) is not None:
            return name, f"the outputs are {' and '.join(map(str, final))}"
    if (of_pixels := _map(model)) is not None and (of_pixels.type in INTEGERS or _NAMES_OF_MAPS.search(model.hint)):
        return "mmseg", f"the only output is {of_pixels}, {_content(of_pixels)}"
    if (pair := _pair(model)) is not None:
        return _choose_of_pair(model, *pair)
    tensor = next((t for t in model.outputs if len(t.shape) == 3), None)
    if tensor is None:
        raise _no_head(model, "the model's outputs fit no head", _nearest(model))
    _, rows, columns = tensor.shape
    is_ultralytics = "task" in model.metadata and "names" in model.metadata
    if (
        rows in _COUNTS
        and columns is not None
        and (columns == 6 or (is_ultralytics and 6 < columns < len(model.names()) + 4))
    ):
        return "yolov10", f"{tensor} is {rows} rows of corners, score and class"
    if columns is not None and model.is_count(columns, 1):
        return "yolov8", f"{tensor} has a column for each of the {columns} cells"
    if rows is not None and model.is_count(rows, _ANCHORS_OF_YOLO):
        return "yolov5", f"{tensor} has 3 rows for each of the {rows // _ANCHORS_OF_YOLO} cells"
    if is_ultralytics and rows is not None and rows < 4 + len(model.names()) + 1000 and _is_taller(columns, rows):
        return "yolov8", "its metadata is Ultralytics', and it has a row for each coordinate and class"
    if rows is not None and model.is_count(rows, 1):
        if "yolox" in model.hint.lower():
            return "yolox", f"{tensor} has a row for each of the {rows} cells, and names in the file say YOLOX"
        raise _no_head(
            model,
            f"the head is not certain: {tensor} has a row for each of the {rows} cells, as YOLOX without decoding and "
            "YOLOv6 with decoding have, and nothing in the file names either",
            ["yolox", "yolov5"],
        )
    raise _no_head(model, "the model's outputs fit no head", _nearest(model))


def _is_taller(columns: int | None, rows: int) -> bool:
    return columns is None or columns > rows


def _choose_of_pair(model: Model, boxes: Tensor, scores: Tensor) -> tuple[str, str]:
    names = f"{boxes.name} {scores.name}".lower()
    if boxes.shape[1] == ANCHORS_OF_RETINANET * model.cells(_RETINANET_STRIDES):
        return "retinanet", f"{boxes} has 9 rows for each cell of strides 8 to 128"
    if "pred_boxes" in names and "logits" in names:
        if scores.shape[2] in _CLASSES_OF_DETR:
            return "detr", f"{scores} has a class more than COCO"
        raise _no_head(
            model,
            f"the head is not certain: whether the last class of {scores} is 'no object' is not in the file",
            ["detr", "rtdetr"],
        )
    if "boxes" in names and ("scores" in names or "conf" in names):
        return "ssd", f"the outputs are named {boxes.name} and {scores.name}"
    raise _no_head(model, "the head is not certain", ["ssd", "retinanet", "detr", "rtdetr"])


def _pair(model: Model) -> tuple[Tensor, Tensor] | None:
    """Returns the boxes [N, B, 4] and the scores [N, B, C], or None."""
    of_three = [t for t in model.outputs if len(t.shape) == 3]
    of_four = [t for t in of_three if t.shape[2] == 4]
    boxes = next((t for t in of_four if "box" in t.name.lower()), of_four[0] if of_four else None)
    others = [t for t in of_three if boxes is not None and t is not boxes and t.shape[1] == boxes.shape[1]]
    return (boxes, others[0]) if boxes is not None and others else None


def _efficient(model: Model) -> tuple[Tensor, Tensor, Tensor, Tensor] | None:
    def named(part: str, rank: int) -> Tensor | None:
        return next((t for t in model.outputs if part in t.name.lower() and len(t.shape) == rank), None)

    number, boxes, scores, classes = named("num", 2), named("box", 3), named("score", 2), named("class", 2)
    if number is None or boxes is None or scores is None or classes is None:
        return None
    return number, boxes, scores, classes


def _rows_and_labels(model: Model, columns: int) -> tuple[Tensor, Tensor] | None:
    """Returns rows [N, K, columns] of real numbers and the integers [N, K], or None."""
    for rows in model.outputs:
        for labels in model.outputs:
            if (
                len(rows.shape) == 3
                and rows.shape[2] == columns
                and rows.type not in INTEGERS
                and len(labels.shape) == 2
                and labels.type in INTEGERS
                and (None in (rows.shape[1], labels.shape[1]) or rows.shape[1] == labels.shape[1])
            ):
                return rows, labels
    return None


def _of_one_image(model: Model) -> tuple[Tensor, Tensor, Tensor] | None:
    """Returns the boxes [K, 4], the scores [K] and the integers [K], or None."""
    vectors = [t for t in model.outputs if len(t.shape) == 1]
    boxes = [t for t in model.outputs if len(t.shape) == 2 and t.shape[1] == 4]
    labels, scores = ([t for t in vectors if (t.type in INTEGERS) == whole] for whole in (True, False))
    return (boxes[0], scores[0], labels[0]) if len(boxes) == len(scores) == len(labels) == 1 else None


def _map(model: Model) -> Tensor | None:
    """Returns the only output, if it has the class of each pixel or their logits."""
    if len(model.outputs) != 1:
        return None
    tensor = model.outputs[0]
    if tensor.type in INTEGERS:
        is_map = len(tensor.shape) == 3 or (len(tensor.shape) == 4 and tensor.shape[1] == 1)
    else:
        is_map = len(tensor.shape) == 4 and tensor.shape[1] != 1
    return tensor if is_map else None


def _content(tensor: Tensor) -> str:
    return (
        "a class for each pixel" if tensor.type in INTEGERS else "logits for each pixel, and names in the file say so"
    )


_NAMES_OF_MAPS = re.compile(r"(?i)mmseg|segmentation|semantic|segmentor|(?<![a-z])seg(?![a-z])")
INTEGERS = (onnx.TensorProto.INT64, onnx.TensorProto.INT32)
_OF_TOOLBOXES: dict[str, Callable[[Model], tuple[Tensor, ...] | None]] = {
    "mmdet": partial(_rows_and_labels, columns=5),
    "mmrotate": partial(_rows_and_labels, columns=6),
    "torchvision": _of_one_image,
}


def _fitted(model: Model, head: str, why: str) -> Layout | None:
    """Returns the layout of the outputs as those of a head, or None if they do not fit."""
    names = model.names()
    if head == "mmseg":
        of_pixels = _map(model)
        if of_pixels is None or model.task not in (None, "map"):
            return None
        classes = None if of_pixels.type in INTEGERS else of_pixels.shape[1]
        return Layout(head, why, (of_pixels,), classes, "map", names=names)
    if model.task == "map":
        return None
    if head == "efficientnms":
        found = _efficient(model)
        return None if found is None else Layout(head, why, found, None, names=names)
    if head in _OF_TOOLBOXES:
        final = _OF_TOOLBOXES[head](model)
        masks = next((t for t in model.outputs if len(t.shape) == 4), None) if head != "mmrotate" else None
        if final is None or (model.task == "segment" and masks is None):
            return None
        if masks is None or model.task == "detect":
            return Layout(head, why, final, None, "obb" if head == "mmrotate" else "detect", names=names)
        return Layout(head, why, (*final, masks), None, "segment", names=names)
    if head in ("ssd", "retinanet", "detr", "rtdetr"):
        pair = _pair(model)
        return None if pair is None else Layout(head, why, pair, pair[1].shape[2], names=names)
    tensor = next((t for t in model.outputs if len(t.shape) == 3), None)
    if tensor is None:
        return None
    task = model.task or _task_of(model)
    prototypes = next((t for t in model.outputs if len(t.shape) == 4), None)
    if task == "segment" and prototypes is None:
        return None
    tensors = (tensor, prototypes) if task == "segment" and prototypes is not None else (tensor,)
    layout = Layout(head, why, tensors, None, task, _points_of(model, task), names)
    width = tensor.shape[1 if head == "yolov8" else 2]
    if width is None:
        return None
    if HEADS[head].is_final:
        return layout if width == 6 + layout.extra else None
    classes = width - (4 if head == "yolov8" else 5) - layout.extra
    if classes < 1 or (names and len(names) != classes):
        return None
    return Layout(head, why, tensors, classes, task, layout.points, names)


def _task_of(model: Model) -> str:
    stated = model.metadata.get("task", "")
    if stated in TASKS:
        return stated
    return "segment" if len(model.outputs) > 1 and any(len(t.shape) == 4 for t in model.outputs) else "detect"


def _points_of(model: Model, task: str) -> tuple[int, int]:
    if task != "pose":
        return 0, 0
    found = model.points or _literal(model.metadata.get("kpt_shape", ""))
    if isinstance(found, (list, tuple)) and len(found) == 2 and found[1] in (2, 3):
        return int(found[0]), int(found[1])
    raise AttachError(
        "task pose: expected the number of key points, which the model's metadata lacks", "--points 17x3 says it"
    )
