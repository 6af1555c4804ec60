# SPDX-License-Identifier: Apache-2.0
"""Compares the detections of two files for the program's `verify --task detection`.

The request has "model"; "reference", onnx, openvino or truth, and its "file"; "inputs", the texts of -i; "draw", a
folder or ""; "memory", the limit of Memory; "iou"; "threads"; and "libraries". The reply has the agreement, and the
photos that differ most. bridge.py documents the protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyop._commands.bridge import serve
from polyop._commands.errors import CommandError, ExitCode, usage

if TYPE_CHECKING:
    import numpy as np

    from polyop.attaching.drawing import Detection

MAX_WORST = 8
"""The number of photos that are listed and drawn."""
Detector = Callable[["np.ndarray"], "list[Detection]"]


def verify_detections(request: dict[str, Any]) -> dict[str, Any]:
    from polyop.attaching.agreement import compare
    from polyop.attaching.errors import AttachError
    from polyop.batch.errors import BatchError, SampleError
    from polyop.batch.images import read
    from polyop.batch.memory import Memory

    model, classes = _in_onnxruntime(request["model"], request)
    names: list[Path] = []
    expected: list[Sequence[Detection]] = []
    found: list[Sequence[Detection]] = []
    try:
        reference = _reference(request, classes)
        for photo in _photos(request["inputs"]):
            pixels = read(photo.read_bytes(), str(photo), Memory(request["memory"]))
            names.append(photo)
            expected.append(reference(photo, pixels))
            found.append(model(pixels))
        agreement = compare(expected, found, request["iou"])
    except (BatchError, SampleError) as error:
        raise CommandError(ExitCode.BAD_FILE, str(error), error.hint) from None
    except AttachError as error:
        raise CommandError(ExitCode.FAILED, str(error), error.hint) from error
    if not any(photo.expected or photo.found for photo in agreement.photos):
        raise CommandError(
            ExitCode.FAILED,
            f"nothing was compared: neither the reference nor the model has objects on {len(names)} photo(s)",
            "photos with objects, or a lower score in `polyop attach`",
        )
    order = sorted(range(len(names)), key=lambda i: -agreement.photos[i].differing)
    worst = [i for i in order[:MAX_WORST] if agreement.photos[i].differing]
    listed = []
    for rank, i in enumerate(worst):
        of_photo = agreement.photos[i]
        drawing = _draw(request, rank, names[i], expected[i], found[i]) if request["draw"] else ""
        listed.append(
            {
                "photo": str(names[i]),
                "missing": of_photo.expected - of_photo.matched,
                "additional": of_photo.found - of_photo.matched,
                "drawing": drawing,
            }
        )
    return {
        "photos": len(names),
        "expected": sum(p.expected for p in agreement.photos),
        "found": sum(p.found for p in agreement.photos),
        "matched": sum(p.matched for p in agreement.photos),
        "average_precision": agreement.average_precision,
        "coco_precision": agreement.coco_precision,
        "worst": listed,
    }


def _reference(request: dict[str, Any], classes: tuple[str, ...]) -> Callable[[Path, np.ndarray], Sequence[Detection]]:
    """Returns a function of a photo and its pixels that gives what the reference has there."""
    if request["reference"] == "truth":
        from polyop.attaching.truth import Truth

        truth = Truth(Path(request["file"]), classes)
        return lambda photo, pixels: truth.of(photo)
    other, _ = {"onnx": _in_onnxruntime, "openvino": _in_openvino}[request["reference"]](request["file"], request)
    return lambda photo, pixels: other(pixels)


def _photos(inputs: list[str]) -> list[Path]:
    """Returns the image files of -i, which may be a folder, a file or a pattern."""
    from polyop.batch.sources import IMAGES, Input

    if not inputs:
        raise usage("--task detection: expected photos, got none", "-i FOLDER, or -i 'photos/*.jpg'")
    files = [path for text in inputs for path in Input.parse(text).files(Path("."))]
    photos = [path for path in files if path.suffix.lower() in IMAGES]
    if not photos:
        raise usage(f"-i {' '.join(inputs)}: expected images, got none", f"expected one of {' '.join(IMAGES)}")
    return photos


def _in_onnxruntime(path: str, request: dict[str, Any]) -> tuple[Detector, tuple[str, ...]]:
    """Returns the file as a function of pixels, and the names of its classes."""
    import onnxruntime as ort

    from polyop._session import session

    options = ort.SessionOptions()
    options.intra_op_num_threads = request["threads"]
    options.log_severity_level = 4  # errors are exceptions, whose text is escaped
    for library in request["libraries"]:
        options.register_custom_ops_library(library)
    created = session(path, options=options)
    names = [output.name for output in created.get_outputs()]
    inputs = [(given.name, given.type, given.shape) for given in created.get_inputs()]
    photo = _photo_input(path, [name for name, kind, shape in inputs if kind == "tensor(uint8)" and len(shape) == 4])
    classes = _names(created.get_modelmeta().custom_metadata_map)
    return _detector(
        lambda pixels: dict(zip(names, created.run(names, {photo: pixels}), strict=True)), classes
    ), classes


def _in_openvino(path: str, request: dict[str, Any]) -> tuple[Detector, tuple[str, ...]]:
    import polyop.openvino
    from polyop._commands.run_openvino import readable

    core = polyop.openvino.core()
    for library in request["libraries"]:
        core.add_extension(library)
    try:
        with readable(path) as file:
            config = {"INFERENCE_PRECISION_HINT": "f32"}
            compiled = core.compile_model(core.read_model(file), "CPU", config)
    except RuntimeError as error:  # OpenVINO raises it for any fault
        raise CommandError(ExitCode.FAILED, f"{path}: {error}") from error
    photo = _photo_input(path, [p.any_name for p in compiled.inputs if p.element_type.get_type_name() == "u8"])

    def run(pixels: np.ndarray) -> dict[str, np.ndarray]:
        result = compiled({photo: pixels})
        return {port.any_name: result[port] for port in compiled.outputs}

    return _detector(run, ()), ()


def _photo_input(path: str, names: list[str]) -> str:
    if len(names) != 1:
        raise CommandError(
            ExitCode.FAILED,
            f"{path}: expected an input of pixels u8[1, H, W, 3], got {', '.join(names) or 'none'}",
            "`polyop attach --image` writes a file with such an input",
        )
    return names[0]


def _names(metadata: dict[str, str]) -> tuple[str, ...]:
    from polyop._commands.draw_detections import noted_names

    return noted_names(metadata.get("polyop.detections", ""))


def _detector(run: Callable[[np.ndarray], dict[str, np.ndarray]], names: tuple[str, ...]) -> Detector:
    from polyop.attaching.drawing import detections

    return lambda pixels: detections(run(pixels[None]), names)


def _draw(
    request: dict[str, Any], rank: int, photo: Path, expected: Sequence[Detection], found: Sequence[Detection]
) -> str:
    """Writes the photo with the reference's detections, and next to it with the model's. Returns the file."""
    import numpy as np

    from polyop._onnx.atomic_file import prepare_folder, write_atomically
    from polyop.attaching.drawing import draw
    from polyop.batch.images import encode, read
    from polyop.batch.memory import Memory

    pixels = read(photo.read_bytes(), str(photo), Memory(request["memory"]))
    file = Path(request["draw"]) / f"{rank + 1}_{photo.stem}.png"
    prepare_folder(file)
    write_atomically(file, encode(np.concatenate([draw(pixels, expected), draw(pixels, found)], 1), "png"))
    return str(file)


if __name__ == "__main__":
    serve(verify_detections, "pip install 'polyop[batch,optimize]'")
