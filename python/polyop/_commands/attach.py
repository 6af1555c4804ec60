# SPDX-License-Identifier: Apache-2.0
"""`polyop attach`: polyop.attaching is the implementation."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from polyop._commands import terminal
from polyop._commands.arguments import add_image_options, add_json_option, choice, image_options, integer, real
from polyop._commands.errors import CommandError, ExitCode, usage
from polyop._commands.models import check_model, check_output
from polyop._commands.numbers import parse_shape

if TYPE_CHECKING:
    import numpy as np

    from polyop.attaching import ImageSteps

SUMMARY = "Put what comes before and after a detector into its file"
NEEDS = "pip install 'polyop[optimize]'"
FOOTER = """\
The file that is written returns detections: its outputs are those of TensorRT's EfficientNMS, in the pixels of the
model's input, or with --image in those of the photo. It runs in any ONNX Runtime, faster with polyop's library. Rotated
boxes need the library. Files of segmentation models return `segmentation`, the class of each pixel.

Examples:
  polyop attach yolov8n.onnx -o app.onnx --image
  polyop attach yolov5s.onnx -o app.onnx --score 0.4 --classes person,2 --names coco --flat
  polyop attach net.onnx -o app.onnx --head yolox --image --letterbox 416x416
  polyop run app.onnx photo.jpg --draw found.png"""

_HEADS = ("auto", "yolov5", "yolov7", "yolov8", "yolov10", "yolov26", "yolox", "ssd", "retinanet", "detr", "rtdetr",
          "efficientnms", "mmdet", "mmrotate", "torchvision", "mmseg")  # fmt: skip
_MAX_DETECTIONS = 100_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("model", help="the ONNX file of a detector")
    add("-o", "--output", required=True, metavar="FILE", help="the file with the attached steps")
    add(
        "--head",
        type=choice(*_HEADS),
        default="auto",
        metavar="HEAD",
        help=f"what the model's outputs are: {', '.join(_HEADS)} (default: auto, by shapes, names and metadata)",
    )
    add(
        "--task",
        type=choice("detect", "segment", "pose", "obb", "map"),
        metavar="TASK",
        help="detect, segment, pose, obb, or map: a class for each pixel (default: from the model)",
    )
    add("--points", metavar="17x3", help="the number of key points and of their coordinates (default: from the model)")
    add("--score", type=real(0, 1), default=0.25, metavar="X", help="the minimum score (default: 0.25)")
    add("--iou", type=real(1e-6, 1), default=0.5, metavar="X", help="the IoU that suppresses (default: 0.5)")
    add("--max", type=integer(1, _MAX_DETECTIONS), default=100, metavar="N", help="detections per image (default: 100)")
    add("--classes", metavar="C,C,…", help="detect only these classes, numbers or names")
    add("--agnostic", action="store_true", help="boxes of different classes suppress each other, too")
    add(
        "--labels",
        type=choice("best", "all"),
        metavar="WHICH",
        help="best: a box has its best class only; all: each class above --score (default: as is usual for the head)",
    )
    add(
        "--soft",
        type=choice("linear", "gaussian"),
        metavar="METHOD",
        help="lower the scores of overlapping boxes, linear or gaussian, instead of removing them; needs polyop's library",
    )
    add("--sigma", type=real(1e-6), default=0.5, metavar="X", help="of --soft gaussian (default: 0.5)")
    add(
        "--thresholds-as-inputs",
        action="store_true",
        help="score_threshold, iou_threshold and max_detections are inputs of the graph; the options are their defaults",
    )
    add("--flat", action="store_true", help="outputs with only the rows in use, instead of a fixed number of rows")
    add("--anchors", metavar="FILE", help="for ssd and retinanet: a .npy file of corners [A, 4] in pixels")
    add("--names", metavar="FILE", help="a text file with the name of a class in each line, or coco")
    add("--image", action="store_true", help="take pixels u8[1, H, W, 3] of a photo, and return its coordinates")
    add_image_options(parser)
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    check_model(options.model)
    check_output(options.model, options.output)
    from polyop.attaching import AttachError, attach
    from polyop.attaching.names import read_names

    try:
        report = attach(
            options.model,
            options.output,
            head=options.head,
            task=options.task,
            points=_points(options.points),
            score_threshold=options.score,
            iou_threshold=options.iou,
            max_detections=options.max,
            classes=options.classes.split(",") if options.classes else None,
            agnostic=options.agnostic,
            labels=options.labels,
            soft=options.soft,
            sigma=options.sigma,
            threshold_inputs=options.thresholds_as_inputs,
            flat=options.flat,
            image=_image_steps(options),
            anchors=_read_anchors(options.anchors) if options.anchors else None,
            names=read_names(options.names) if options.names else None,
        )
    except AttachError as error:
        raise CommandError(ExitCode.FAILED, f"{options.model}: {error}", error.hint) from error
    if options.json:
        terminal.print_json(report.as_json())
        return ExitCode.OK
    print("\n".join(report.lines()))
    print(f"{terminal.green('wrote')} {options.output} ({terminal.bytes_text(Path(options.output).stat().st_size)})")
    return ExitCode.OK


def _points(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    shape = parse_shape(text, "--points")
    if len(shape) != 2 or shape[0] < 1 or shape[1] not in (2, 3):
        raise usage(f"--points: expected POINTSx2 or POINTSx3, such as 17x3, got '{text}'")
    return shape[0], shape[1]


def _image_steps(options: argparse.Namespace) -> ImageSteps | None:
    from polyop.attaching import ImageSteps

    given = image_options(options)
    if not options.image:
        if any(value is not None for value in given.values()):
            raise usage("--layout, --range, --color, --resize, --letterbox, --mean and --std: expected --image, too")
        return None
    resize, letterbox = given.pop("resize"), given.pop("letterbox")
    size = resize or letterbox
    return ImageSteps(
        fit="resize" if resize else "letterbox" if letterbox else None, size=None if size == "model" else size, **given
    )


def _read_anchors(path: str) -> np.ndarray:
    import numpy as np

    from polyop.errors import FileError

    try:
        anchors = np.load(path, allow_pickle=False)
    except ValueError as error:
        raise FileError(f"'{path}': expected a .npy file of numbers, got another file") from error
    if not isinstance(anchors, np.ndarray) or anchors.dtype.kind not in "fiu":
        raise FileError(f"'{path}': expected a .npy file of numbers, got another file")
    return anchors.astype(np.float64)
