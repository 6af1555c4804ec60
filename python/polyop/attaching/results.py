# SPDX-License-Identifier: Apache-2.0
"""The outputs of a file with an attached head: coordinates, key points and masks of detections."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import TensorProto, ValueInfoProto, helper

from polyop.attaching.decoding import Decoded, Input, as_real
from polyop.attaching.heads import INTEGERS, Layout, Tensor
from polyop.attaching.maps import SEGMENTATION
from polyop.attaching.nodes import Nodes
from polyop.attaching.photo import Photo, boxes_in, points_in
from polyop.attaching.suppressing import Detections, in_use, where_valid

RESULTS = (
    "num_detections", "image_indices", "detection_boxes", "detection_scores", "detection_classes", "detection_points",
    "detection_masks", SEGMENTATION,
)  # fmt: skip


@dataclass(frozen=True)
class Result:
    """An output. form: its dimensions after those of images and detections."""

    name: str
    value: str
    type: int
    form: tuple[int | str, ...] = ()


def results(
    b: Nodes, layout: Layout, decoded: Decoded, found: Detections, image: Input, photo: Photo | None
) -> list[Result]:
    """Writes the nodes of the results, each a value [N, K, ...]."""
    rotated = layout.task == "obb"
    boxes = found.boxes if photo is None else boxes_in(b, photo, found.boxes, rotated)
    boxes = where_valid(b, found.valid, boxes, 3)
    tensors = [
        Result("detection_boxes", boxes, TensorProto.FLOAT, (5 if rotated else 4,)),
        Result("detection_scores", found.scores, TensorProto.FLOAT),
        Result("detection_classes", found.labels, TensorProto.INT32),
    ]
    if layout.task == "pose":
        tensors.append(_points(b, layout, b.rows(decoded.extra, found.numbers), found, photo))
    if layout.masks is not None:
        tensors.append(_own_masks(b, layout, layout.masks, found, image, photo))
    elif layout.task == "segment":
        tensors.append(_masks(b, layout.tensors[1], b.rows(decoded.extra, found.numbers), boxes, found, image, photo))
    return tensors


def _points(b: Nodes, layout: Layout, rows: str, found: Detections, photo: Photo | None) -> Result:
    """Returns key points [N, K, P, 2 or 3]: x, y and, if the model has it, the visibility."""
    count, width = layout.points
    points = b("Reshape", rows, b.constant([0, 0, count, width]))
    if photo is not None:
        moved = points_in(b, photo, b.columns(points, 0, 2), clip=False)
        points = b.concat(moved, b.columns(points, 2, 3)) if width == 3 else moved
    return Result("detection_points", where_valid(b, found.valid, points, 4), TensorProto.FLOAT, (count, width))


def _masks(
    b: Nodes, tensor: Tensor, coefficients: str, boxes: str, found: Detections, image: Input, photo: Photo | None
) -> Result:
    """Returns masks u8 [N, M, height, width] of the photo, else of the prototypes' cells. M is the largest number of
    detections of an image, at least 1."""
    prototypes = as_real(b, tensor)
    rows, corners, valid = _of_the_detections(b, found, coefficients, boxes, found.valid)
    cells = b.extents(prototypes, 2, 4)
    flat = b("Reshape", prototypes, b.constant([0, 0, -1]))
    shape = b.concat(b.extents(rows, 0, 2), cells, axis=0)
    logits = b("Reshape", b("MatMul", rows, flat), shape)
    if photo is None:
        ratio = b("Div", image.size, b.cast(b("Gather", cells, b.constant([1, 0]), axis=0), TensorProto.FLOAT))
        x, y = (_centers(b, cells, i, ratio) for i in (0, 1))
    else:
        x, y = pixel_centers(b, photo.size)
        logits = sampled(b, logits, photo, x, y, image)
    inside = _inside(b, corners, x, y)
    is_on = b("And", b("Greater", logits, b.real(0)), inside)
    return _as_result(b, is_on, valid)


def _of_the_detections(b: Nodes, found: Detections, *values: str) -> list[str]:
    """Returns the first M rows of values [N, K, ...]: the largest number of detections of an image, at least 1."""
    largest = b.extreme("ReduceMax", b.cast(found.number, TensorProto.INT64), 0, keepdims=False)
    count = b("Max", largest, b.constant([1]))
    first, axis = b.constant([0]), b.constant([1])
    return [b("Slice", value, first, count, axis) for value in values]


def _as_result(b: Nodes, is_on: str, valid: str) -> Result:
    mask = b.cast(b("And", is_on, b("Unsqueeze", valid, b.constant([2, 3]))), TensorProto.UINT8)
    return Result("detection_masks", mask, TensorProto.UINT8, ("height", "width"))


_LARGEST_OF_A_BOX = 64  # masks that cover a box have at most this height and width
_MIN_SIDE = 1e-6


def _own_masks(
    b: Nodes, layout: Layout, tensor: Tensor, found: Detections, image: Input, photo: Photo | None
) -> Result:
    """Returns masks u8 [N, M, height, width] of the photo, else of the model's input, from a mask of probabilities for
    each detection: of its box (28 x 28, as MMDeploy exports Mask R-CNN), or of the model's whole input."""
    masks = as_real(b, tensor)
    if layout.head == "torchvision":
        masks = b("Transpose", masks, perm=[1, 0, 2, 3])
    sides = tuple(side or 0 for side in tensor.shape[2:])
    of_boxes = 0 < min(sides) <= max(sides) <= _LARGEST_OF_A_BOX and sides != image.extents
    rows, corners, valid = _of_the_detections(b, found, b.rows(masks, found.numbers), found.boxes, found.valid)
    if photo is None:
        height_first = b("Gather", image.size, b.constant([1, 0]), axis=0)
        size = b.cast(height_first, TensorProto.INT64)
    else:
        size = photo.size
    x, y = pixel_centers(b, size)
    if of_boxes:
        if photo is not None:
            ends = (b.columns(corners, i, i + 2) for i in (0, 2))
            corners = b.concat(*(points_in(b, photo, end, clip=False) for end in ends))
        of_rows, of_columns = _shares(b, corners, y, 1, sides[0]), _shares(b, corners, x, 0, sides[1])
        rows = b("MatMul", b("MatMul", of_rows, rows), b("Transpose", of_columns, perm=[0, 1, 3, 2]))
    elif photo is not None:
        rows = sampled(b, rows, photo, x, y, image)
    return _as_result(b, b("GreaterOrEqual", rows, b.real(0.5)), valid)


def _shares(b: Nodes, corners: str, centers: str, axis: int, cells: int) -> str:
    """Returns the shares [N, M, pixels, cells] of a mask's cells in each pixel, by linear interpolation across the box;
    outside of it they end in 0."""
    low, high = (b.columns(corners, i, i + 1) for i in (axis, axis + 2))
    side = b("Max", b("Sub", high, low), b.real(_MIN_SIDE))
    position = b("Sub", b("Mul", b("Div", b("Sub", centers, low), side), b.real(cells)), b.real(0.5))
    distance = b("Abs", b("Sub", b("Unsqueeze", position, b.constant([3])), b.real(range(cells))))
    return b("Relu", b("Sub", b.real(1), distance))


def _centers(b: Nodes, size: str, axis: int, ratio: str) -> str:
    """Returns the positions of the centres of all columns (axis 0) or rows (axis 1): [W] or [H]."""
    count = b("Squeeze", b.columns(size, 1 - axis, 2 - axis, axis=0))
    cells = b.cast(b("Range", b.constant(0), count, b.constant(1)), TensorProto.FLOAT)
    return b("Mul", b("Add", cells, b.real(0.5)), b.columns(ratio, axis, axis + 1, axis=0))


def pixel_centers(b: Nodes, size: str) -> tuple[str, str]:
    """Returns the positions of the centres of the columns [W] and of the rows [H] of an image of this size."""
    one = b.real([1, 1])
    return _centers(b, size, 0, one), _centers(b, size, 1, one)


def sampled(b: Nodes, logits: str, photo: Photo, x: str, y: str, image: Input, nearest: bool = False) -> str:
    """Returns values [N, M, h, w] of the model's whole input at the photo's pixels, interpolated between their cells,
    or those of the nearest cells."""
    parts = []
    for axis, centers in enumerate((x, y)):
        gain, pad, size = (b.columns(v, axis, axis + 1, axis=0) for v in (photo.gain, photo.pad, image.size))
        position = b("Div", b("Add", b("Mul", centers, gain), pad), size)
        parts.append(b("Sub", b("Mul", position, b.real(2)), b.real(1)))
    size = b("Concat", b.extents(logits, 0, 1), photo.size, axis=0)
    columns = b("Expand", parts[0], size)
    rows = b("Expand", b("Unsqueeze", parts[1], b.constant([1])), size)
    grid = b.concat(*(b("Unsqueeze", v, b.constant([3])) for v in (columns, rows)))
    mode = "nearest" if nearest else "linear" if b.opset >= 20 else "bilinear"
    return b("GridSample", logits, grid, mode=mode, padding_mode="border", align_corners=0)


def _inside(b: Nodes, corners: str, x: str, y: str) -> str:
    """Returns True [N, M, H, W] inside the boxes."""
    x1, y1, x2, y2 = (b("Unsqueeze", b.columns(corners, i, i + 1), b.constant([3])) for i in range(4))
    y = b("Unsqueeze", y, b.constant([1]))
    columns = b("And", b("GreaterOrEqual", x, x1), b("Less", x, x2))
    rows = b("And", b("GreaterOrEqual", y, y1), b("Less", y, y2))
    return b("And", columns, rows)


def segmentation(b: Nodes, layout: Layout, image: Input, photo: Photo | None, images: int | str) -> ValueInfoProto:
    """Writes the nodes of the output: the class i32 [N, height, width] of each pixel of the photo, else of the model's
    map. Logits are interpolated before the largest is chosen, as MMSegmentation does; classes are the nearest."""
    tensor = layout.tensors[0]
    is_chosen = tensor.type in INTEGERS
    value = tensor.name
    if is_chosen and len(tensor.shape) == 3:
        value = b("Unsqueeze", value, b.constant([1]))
    if photo is not None or not is_chosen:
        value = b.cast(value, TensorProto.FLOAT)
    if photo is not None:
        x, y = pixel_centers(b, photo.size)
        value = sampled(b, value, photo, x, y, image, nearest=is_chosen)
    value = b("Squeeze", value, b.constant([1])) if is_chosen else b("ArgMax", value, axis=1, keepdims=0)
    b.rename(b.cast(value, TensorProto.INT32), SEGMENTATION)
    return helper.make_tensor_value_info(SEGMENTATION, TensorProto.INT32, [images, "height", "width"])


def outputs(
    b: Nodes, found: Detections, tensors: list[Result], flat: bool, images: int | str, rows: int | str
) -> list[ValueInfoProto]:
    """Names the results as outputs of the graph: in EfficientNMS' form, or only the rows in use."""
    chosen: list[tuple[str, str, int, tuple[int | str, ...]]] = []
    if flat:
        indices = b("NonZero", found.valid)
        image = b.cast(b("Squeeze", b.columns(indices, 0, 1, axis=0), b.constant([0])), TensorProto.INT32)
        chosen.append(("image_indices", image, TensorProto.INT32, ()))
        chosen += [(r.name, in_use(b, found.valid, r.value), r.type, r.form) for r in tensors]
        lead: tuple[int | str, ...] = ("detections",)
    else:
        number = b.cast(found.number, TensorProto.INT32)
        chosen.append(("num_detections", number, TensorProto.INT32, ()))
        chosen += [(r.name, r.value, r.type, r.form) for r in tensors]
        lead = (images, rows)
    infos = []
    for name, value, kind, form in chosen:
        b.rename(value, name)
        before: tuple[int | str, ...] = (images, 1) if name == "num_detections" else lead
        if name == "detection_masks" and not flat:
            before = (images, "masks")
        infos.append(helper.make_tensor_value_info(name, kind, [*before, *form]))
    return infos
