# SPDX-License-Identifier: Apache-2.0
"""Attaches the steps before and after a detector to its file: from a photo's pixels to boxes in these pixels.

docs/attach.md has the details.

heads        which head the outputs are
decoding     their boxes and scores
suppressing  the choice of detections
photo        the steps before the model, and the way back to the photo's pixels
results      the outputs
maps         the regions of maps of classes, and their agreement
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from polyop._onnx.atomic_file import prepare_folder, write_atomically
from polyop._onnx.files import copy_external_files, read_model
from polyop._onnx.function_bodies import rename
from polyop._onnx.graph import opset_of
from polyop.attaching.decoding import Input, decode
from polyop.attaching.errors import AttachError
from polyop.attaching.heads import HEADS, TASKS, Head, Layout, Model, Tensor, recognize, size_in
from polyop.attaching.nodes import Nodes
from polyop.attaching.photo import Photo, Preparation, prepare
from polyop.attaching.results import RESULTS, outputs, results, segmentation
from polyop.attaching.suppressing import (
    NODE,
    ROTATED_NODE,
    SOFT_METHODS,
    SOFT_NODE,
    THRESHOLDS,
    Rules,
    suppress,
    threshold_inputs,
    value_infos,
)
from polyop.portable import add_functions, raise_opset

__all__ = ["HEADS", "KEY", "TASKS", "AttachError", "Attached", "ImageSteps", "attach"]

KEY = "polyop.detections"
"""Of the metadata of a file with an attached head: JSON with the head, the task, the form and the classes' names."""
IMAGE = "photo"
"""The name of the input of pixels."""
_OPSET = 16  # the oldest with the nodes that are written
_LABELS = {"best": True, "all": False}


@dataclass(frozen=True)
class ImageSteps:
    """How the model expects an image; None keeps what the head's models expect.

    size: the height and width, if the model's input has none. fit: "letterbox" or "resize".
    """

    fit: str | None = None
    size: tuple[int, int] | None = None
    layout: str | None = None
    color: str | None = None
    range: tuple[float, float] | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Attached:
    """What was attached. needs_polyop: the file runs with polyop's library only, for the given reason."""

    head: str
    why: str
    task: str
    classes: int | None
    outputs: tuple[str, ...]
    image: str = ""
    needs_polyop: str = ""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def lines(self) -> list[str]:
        count = "" if self.classes is None else f", {self.classes} classes"
        text = [f"head: {self.head} ({self.task}{count}), because {self.why}"]
        text += [f"image: {self.image}"] if self.image else []
        text += [f"outputs: {', '.join(self.outputs)}"]
        return text + ([f"the file needs polyop's library: {self.needs_polyop}"] if self.needs_polyop else [])


def attach(
    model: str | Path,
    output: str | Path,
    *,
    head: str = "auto",
    task: str | None = None,
    points: tuple[int, int] | None = None,
    score_threshold: float = 0.25,
    iou_threshold: float = 0.5,
    max_detections: int = 100,
    classes: Sequence[int | str] | None = None,
    agnostic: bool = False,
    labels: str | None = None,
    soft: str | None = None,
    sigma: float = 0.5,
    threshold_inputs: bool = False,
    flat: bool = False,
    image: ImageSteps | None = None,
    anchors: np.ndarray | None = None,
    names: Sequence[str] | None = None,
) -> Attached:
    """Writes a file that returns detections instead of a detector's raw outputs.

    Args:
        head: one of HEADS, or "auto".
        task, points: one of TASKS, and the number of key points and of their coordinates, if the file does not say
            them.
        classes: the only classes that are detected.
        agnostic: boxes of different classes suppress each other, too.
        labels: "best" gives a box its best class only, "all" each class above the threshold; None chooses as is usual
            for the head.
        soft, sigma: "linear" or "gaussian" soft suppression, which lowers the scores of overlapping boxes instead of
            removing them, for one image; the file needs polyop's library.
        threshold_inputs: the thresholds and the maximum are inputs of the graph, with these default values.
        flat: the outputs have only the rows in use.
        image: the file takes pixels u8[1, H, W, 3] of any size and returns coordinates of the photo.
        anchors: corners [A, 4] in pixels of the input, for ssd and retinanet.
        names: the names of the classes.

    Raises OSError, FileError, or AttachError if the outputs fit no head or an option does not fit the model.
    """
    path, output = Path(model), Path(output)
    prepare_folder(output)
    proto = read_model(path)
    report = _attach(
        proto, head=head, task=task, points=points,
        rules=_Thresholds(
            score_threshold, iou_threshold, max_detections, agnostic, labels, threshold_inputs, soft, sigma
        ),
        classes=classes, flat=flat, image=image, anchors=anchors, names=names,
    )  # fmt: skip
    copy_external_files(proto, path, output.parent)
    write_atomically(output, proto.SerializeToString())
    return report


@dataclass(frozen=True)
class _Thresholds:
    score: float
    iou: float
    max_detections: int
    agnostic: bool
    labels: str | None
    as_inputs: bool
    soft: str | None
    sigma: float

    def __post_init__(self) -> None:
        if not 0 <= self.score <= 1:
            raise AttachError(f"score_threshold: expected a number in [0, 1], got {self.score}")
        if not 0 < self.iou <= 1:
            raise AttachError(f"iou_threshold: expected a number in (0, 1], got {self.iou}")
        if self.max_detections < 1:
            raise AttachError(f"max_detections: expected at least 1, got {self.max_detections}")
        if self.labels not in (None, *_LABELS):
            raise AttachError(f"labels: expected best or all, got '{self.labels}'")
        if self.soft not in (None, *SOFT_METHODS):
            raise AttachError(f"soft: expected {' or '.join(SOFT_METHODS)}, got '{self.soft}'")
        if not self.sigma > 0:
            raise AttachError(f"sigma: expected a number above 0, got {self.sigma}")
        if self.soft and self.as_inputs:
            raise AttachError("threshold_inputs: soft suppression is a node with attributes")


def _attach(
    proto: onnx.ModelProto, *, head: str, task: str | None, points: tuple[int, int] | None, rules: _Thresholds,
    classes: Sequence[int | str] | None, flat: bool, image: ImageSteps | None, anchors: np.ndarray | None,
    names: Sequence[str] | None,
) -> Attached:  # fmt: skip
    """Attaches to a model, in place."""
    metadata = {entry.key: entry.value for entry in proto.metadata_props}
    if KEY in metadata:
        raise AttachError(
            "the model has attached steps already: expected a file without them", "attach to the original model"
        )
    if head != "auto" and head not in HEADS:
        raise AttachError(f"head: expected auto, {', '.join(HEADS)}, got '{head}'")
    if task not in (None, *TASKS):
        raise AttachError(f"task: expected {', '.join(TASKS)}, got '{task}'")
    if anchors is not None and (anchors.ndim != 2 or anchors.shape[1] != 4):
        raise AttachError(f"anchors: expected corners [A, 4], got shape {list(anchors.shape)}")
    raise_opset(proto, _OPSET)
    _free_names(proto.graph)
    given = _image_input(proto)
    layout_of_input, extents = _layout_and_extents(given)
    if image is not None:
        layout_of_input = image.layout or layout_of_input
        extents = _size(given, extents, image, metadata)
    hint = " ".join(
        [proto.producer_name, proto.graph.name, proto.graph.doc_string, *(o.name for o in proto.graph.output)]
    )
    layout = recognize(Model(_tensors(proto), metadata, extents, task, points, hint), head)
    if names is not None and layout.classes not in (None, len(names), len(names) + 1):
        raise AttachError(f"names: expected {layout.classes}, one per class, got {len(names)}")
    chosen = _rules(rules, layout, classes, tuple(names or layout.names))
    if rules.as_inputs and layout.task == "obb":
        raise AttachError("threshold_inputs: rotated boxes are suppressed by a node with attributes")
    if rules.soft and (HEADS[layout.head].is_final or layout.task == "obb"):
        raise AttachError("soft: expected a head of corners that the model does not suppress")
    if rules.soft and layout.tensors[0].shape[0] != 1:
        raise AttachError(f"soft: expected outputs for one image, got {layout.tensors[0]}")
    if layout.task == "map":
        _check_map(rules, classes, flat)
    if rules.agnostic and layout.task == "obb":
        raise AttachError("agnostic: rotated boxes are suppressed per class")
    return _write(
        proto, layout, chosen, given, layout_of_input, extents, image, anchors, flat, tuple(names or layout.names)
    )


def _check_map(rules: _Thresholds, classes: Sequence[int | str] | None, flat: bool) -> None:
    """Raises AttachError for options of detections."""
    given = {
        "classes": classes is not None, "agnostic": rules.agnostic, "labels": rules.labels, "soft": rules.soft,
        "threshold_inputs": rules.as_inputs, "flat": flat,
    }  # fmt: skip
    if wrong := [name for name, value in given.items() if value]:
        raise AttachError(f"{', '.join(wrong)}: expected a head with boxes, got a map of classes")


def _free_names(graph: onnx.GraphProto) -> None:
    """Renames the model's tensors that have the names of inputs and outputs that are attached."""
    taken = {IMAGE, *THRESHOLDS, *RESULTS}

    def new(name: str) -> str:
        return f"{name}/of_model" if name in taken else name

    for node in graph.node:
        rename(node, new)
    for named in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
        named.name = new(named.name)


def _rules(rules: _Thresholds, layout: Layout, classes: Sequence[int | str] | None, names: tuple[str, ...]) -> Rules:
    best = HEADS[layout.head].best_class if rules.labels is None else _LABELS[rules.labels]
    numbers = None if classes is None else tuple(_class(c, layout, names) for c in classes)
    return Rules(
        rules.score, rules.iou, rules.max_detections, rules.agnostic, best, numbers,
        background=0 if layout.head == "ssd" else -1, as_inputs=rules.as_inputs, soft=rules.soft, sigma=rules.sigma,
    )  # fmt: skip


def _class(which: int | str, layout: Layout, names: tuple[str, ...]) -> int:
    if isinstance(which, str) and which in names:
        return names.index(which)
    number = int(which) if isinstance(which, int) or which.isdecimal() else -1
    if number < 0 or (layout.classes is not None and number >= layout.classes):
        known = f"a name of {', '.join(names)}" if names else "a number"
        limit = "" if layout.classes is None else f" below {layout.classes}"
        raise AttachError(f"classes: expected {known}{limit}, got '{which}'")
    return number


def _image_input(proto: onnx.ModelProto) -> Tensor:
    """Returns the first input of rank 4, or else an image [3, H, W] without a batch, as torchvision's detectors have
    it."""
    initializers = {t.name for t in proto.graph.initializer}
    found = [t for t in map(_tensor, proto.graph.input) if t.name not in initializers]
    image = next((t for t in found if len(t.shape) == 4), None)
    image = image or next((t for t in found if len(t.shape) == 3 and t.shape[0] == 3), None)
    if image is None:
        raise AttachError(
            f"the model's inputs: expected an image of rank 4, or [3, H, W], got {'; '.join(map(str, found)) or 'none'}"
        )
    return image


def _tensor(info: onnx.ValueInfoProto) -> Tensor:
    kind = info.type.tensor_type
    shape = tuple(d.dim_value if d.HasField("dim_value") else None for d in kind.shape.dim)
    return Tensor(info.name, shape, kind.elem_type)


def _tensors(proto: onnx.ModelProto) -> list[Tensor]:
    """Returns the outputs, with inferred shapes where the file has none."""
    if any(None in t.shape or not t.shape for t in map(_tensor, proto.graph.output)):
        proto = onnx.shape_inference.infer_shapes(proto, data_prop=True)
    return [_tensor(info) for info in proto.graph.output]


def _layout_and_extents(image: Tensor) -> tuple[str, tuple[int, int] | None]:
    if len(image.shape) == 3:
        height, width = image.shape[1:]
        return "NCHW", (height, width) if height and width else None
    layout = "NHWC" if image.shape[3] in (1, 3) and image.shape[1] not in (1, 3) else "NCHW"
    height, width = image.shape[2:] if layout == "NCHW" else image.shape[1:3]
    return layout, (height, width) if height and width else None


def _size(
    image: Tensor, extents: tuple[int, int] | None, steps: ImageSteps, metadata: dict[str, str]
) -> tuple[int, int]:
    if extents is not None and steps.size not in (None, extents):
        raise AttachError(f"image: expected the size of input {image}, got {steps.size}")
    size = extents or steps.size or size_in(metadata)
    if size is None:
        raise AttachError(
            f"image: expected a fixed height and width of input {image}, got none", "--letterbox 640x640 says the size"
        )
    return size


def _preparation(head: Head, steps: ImageSteps, layout: str, size: tuple[int, int]) -> Preparation:
    return Preparation(
        steps.fit or head.fit, head.corner, head.border, size, layout, steps.color or head.color, steps.range or head.range,
        steps.mean or head.mean, steps.std or head.std,
    )  # fmt: skip


def _write(
    proto: onnx.ModelProto, layout: Layout, rules: Rules, given: Tensor, layout_of_input: str,
    extents: tuple[int, int] | None, image: ImageSteps | None, anchors: np.ndarray | None, flat: bool,
    names: tuple[str, ...],
) -> Attached:  # fmt: skip
    """Writes the nodes."""
    graph, opset = proto.graph, opset_of(proto)
    before, b = Nodes(opset, "attached/before"), Nodes(opset, "attached/after")
    photo: Photo | None = None
    text = ""
    if image is not None:
        assert extents is not None  # `_size` raises otherwise
        how = _preparation(HEADS[layout.head], image, layout_of_input, extents)
        photo, value = prepare(before, IMAGE, given, how)
        if len(given.shape) == 3:
            value = before("Squeeze", value, before.constant([0]))
        _take_pixels(proto, given, before, value)
        text = str(how)
    start = len(given.shape) - 2 if layout_of_input == "NCHW" else 1
    size = b("Gather", b.cast(b.extents(given.name, start, start + 2), TensorProto.FLOAT), b.constant([1, 0]), axis=0)
    source = Input(extents, size)
    images = _images(given)
    if layout.task == "map":
        infos = [segmentation(b, layout, source, photo, images)]
    else:
        decoded = decode(b, layout, source, anchors)
        found = suppress(b, decoded, rules, layout.classes, layout.task == "obb")
        tensors = results(b, layout, decoded, found, source, photo)
        rows: int | str = "detections" if decoded.labels or rules.as_inputs else rules.max_detections
        infos = outputs(b, found, tensors, flat, images, rows)
    graph.node.extend(b.nodes)
    del graph.output[:]
    graph.output.extend(infos)
    if rules.as_inputs:
        graph.initializer.extend(threshold_inputs(rules))
        graph.input.extend(value_infos(rules))
    form = "map" if layout.task == "map" else "flat" if flat else "efficientnms"
    noted = {"head": layout.head, "task": layout.task, "form": form, "names": list(names)}
    _note(proto, KEY, noted)
    why = _add_functions(proto)
    return Attached(layout.head, layout.why, layout.task, layout.classes, tuple(i.name for i in infos), text, why)


def _images(given: Tensor) -> int | str:
    """Returns the size of the batch of an image input, or its name."""
    return 1 if len(given.shape) == 3 else given.shape[0] or "images"


def _take_pixels(proto: onnx.ModelProto, given: Tensor, before: Nodes, value: str) -> None:
    """Replaces the model's image input by an input of pixels."""
    graph = proto.graph
    before.nodes.append(helper.make_node("Identity", [value], [given.name], f"{before.prefix}/input"))
    old = list(graph.node)
    del graph.node[:]
    graph.node.extend([*before.nodes, *old])
    position = next(i for i, info in enumerate(graph.input) if info.name == given.name)
    shape: list[int | str] = [_images(given), "height", "width", 3]
    graph.input[position].CopyFrom(helper.make_tensor_value_info(IMAGE, TensorProto.UINT8, shape))
    _note(proto, f"polyop.image.{IMAGE}", {"layout": "NHWC", "range": [0, 255], "color": "RGB"})


def _note(proto: onnx.ModelProto, key: str, value: object) -> None:
    proto.metadata_props.append(onnx.StringStringEntryProto(key=key, value=json.dumps(value)))


def _add_functions(proto: onnx.ModelProto) -> str:
    """Gives the attached nodes their functions. Returns why one has none, or ""."""
    domains = {name.partition("::")[0] for name in (NODE, ROTATED_NODE, SOFT_NODE)} & {
        n.domain for n in proto.graph.node
    }
    imported = {o.domain for o in proto.opset_import}
    proto.opset_import.extend(helper.make_opsetid(domain, 1) for domain in sorted(domains - imported))
    records = add_functions(proto, only=[NODE, ROTATED_NODE, SOFT_NODE])
    missing = [record for record in records if not record.given]
    return f"{missing[0].name}: {' '.join(missing[0].why.split())}" if missing else ""
