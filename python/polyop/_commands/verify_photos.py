# SPDX-License-Identifier: Apache-2.0
"""Compares two models on photos for the program's `verify --images`: their outputs, and what detectors find.

The request has "model" and "provider"; "reference", the "kind" and the "value" of --against, or truth and a file of
annotations; "images", folders, files or patterns; "detections": both must find something; "image_options", the texts of
--layout and so on, and "set"; "draw", a folder or ""; "page": a page will show the worst photo; "memory", the limit of
Memory; "iou"; "rtol" and "atol"; "threads", "accelerate" and "libraries".

The reply has the "tensors" as `verify --json`, and for detectors the agreement and the photos that differ most.
bridge.py documents the protocol.

A file with attached steps takes the photos' pixels. To another one whose outputs a head of `polyop attach` recognizes,
the steps are attached in a temporary file, which also has the model's own outputs.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyop._commands.bridge import serve
from polyop._commands.errors import CommandError, ExitCode, usage
from polyop.errors import PolyopError

if TYPE_CHECKING:
    import numpy as np

    from polyop.attaching.drawing import Detection
    from polyop.verifying.sides import Arrays, How, Side

MAX_WORST = 8
"""The number of photos that are listed and drawn."""
_DETECTIONS, _MAP = "detection_boxes", "segmentation"
_TYPES = {"float32": "f32", "float16": "f16", "float64": "f64", "int64": "i64", "int32": "i32", "uint8": "u8"}


def verify_photos(request: dict[str, Any]) -> dict[str, Any]:
    from polyop.attaching.errors import AttachError
    from polyop.batch.errors import BatchError, SampleError

    try:
        with tempfile.TemporaryDirectory(prefix="polyop-", ignore_cleanup_errors=True) as folder:
            return _compare(request, Path(folder))
    except (BatchError, SampleError) as error:
        raise CommandError(ExitCode.BAD_FILE, str(error), error.hint) from None
    except AttachError as error:
        raise CommandError(ExitCode.FAILED, str(error), error.hint) from error


def _compare(request: dict[str, Any], folder: Path) -> dict[str, Any]:
    from polyop.batch.images import read
    from polyop.batch.memory import Memory

    photos = photos_of(request["images"])
    model = open_model(
        Path(request["model"]), _how(request, "onnxruntime", request["provider"]), request, folder / "model"
    )
    reference, truth = _reference(request, model, folder)
    sides = [model] if reference is None else [model, reference]
    of_detections = all(side.finds for side in sides)
    if request["detections"] and not of_detections:
        side = next(side for side in sides if not side.finds)
        raise CommandError(ExitCode.FAILED, f"{side.path}: {side.why}", side.hint)
    if truth is not None and not model.finds:
        raise CommandError(ExitCode.FAILED, f"{model.path}: {model.why}", model.hint)
    if of_detections and len({side.is_map for side in sides}) > 1:
        raise CommandError(
            ExitCode.FAILED, "expected two models with boxes or two with maps of classes, got one of each"
        )
    maps = _Maps(request, folder, [side.names for side in sides]) if of_detections and model.is_map else None
    if maps is not None and truth is not None:
        raise CommandError(
            ExitCode.FAILED, f"--truth: expected a model with boxes, got a map of classes of {model.path}"
        )
    tensors = _Tensors(request)
    expected: list[Sequence[Detection]] = []
    found: list[Sequence[Detection]] = []
    for photo in photos:
        pixels = read(photo.read_bytes(), str(photo), Memory(request["memory"]))
        ours = model.run(photo, pixels)
        theirs = reference.run(photo, pixels) if reference is not None else {}
        if reference is not None:
            tensors.add(model.own(ours), reference.own(theirs), photo)
        if maps is not None:
            maps.add(photo, theirs, ours)
        elif of_detections:
            found.append(model.detections(ours))
            expected.append(truth.of(photo) if truth is not None else sides[-1].detections(theirs))
    runtime = {"runtime": model.side.runtime, "reference_runtime": "" if reference is None else reference.side.runtime}
    notes = list(dict.fromkeys(note for side in sides for note in side.notes))
    if not of_detections:
        reasons = {f"{side.path.name}: {side.why.partition('. ')[0]}": None for side in sides if not side.finds}
        notes += [f"detections are not compared: {why}" for why in reasons]
    reply = {"photos": len(photos), **runtime, "notes": notes, "tensors": tensors.as_json()}
    if maps is not None:
        return reply | maps.as_json()
    decide = request["detections"] or truth is not None or not tensors.are_compared
    if of_detections and (decide or any(map(len, expected)) or any(map(len, found))):
        return reply | _agreement(request, photos, expected, found)
    if of_detections:
        notes.append("neither of the models has detections on these photos: the outputs decide")
    if not tensors.are_compared:
        raise CommandError(ExitCode.FAILED, f"nothing was compared on {len(photos)} photo(s): all tensors are empty")
    return reply


# ---- Models ----


@dataclass
class _Model:
    """A side. takes: the values of its inputs for a photo. why, hint: why it has no detections."""

    path: Path
    side: Side
    takes: Callable[[Path, np.ndarray], Arrays]
    names: tuple[str, ...] = ()  # of classes
    finds: bool = False
    why: str = ""
    hint: str = ""
    notes: list[str] = field(default_factory=list)
    has_run: bool = False

    @property
    def is_map(self) -> bool:
        return _MAP in self.side.outputs

    def run(self, photo: Path, pixels: np.ndarray) -> Arrays:
        from polyop.verifying.sides import InOnnxRuntime

        try:
            feeds = self.takes(photo, pixels)
            if not self.has_run and isinstance(self.side, InOnnxRuntime) and (where := self.side.where(feeds)):
                self.notes.append(where)
            self.has_run = True
            return self.side.run(feeds)
        except PolyopError:
            raise
        except Exception as error:  # runtimes' own types are not public
            raise CommandError(ExitCode.FAILED, f"{self.path} in {self.side.runtime}, {photo}: {error}") from error

    def detections(self, outputs: Arrays) -> list[Detection]:
        from polyop.attaching.drawing import detections

        return detections(outputs, self.names)

    def own(self, outputs: Arrays) -> Arrays:
        """Returns the outputs that are compared by element: not lists of detections, whose length may differ."""
        from polyop.attaching.results import RESULTS

        return {name: array for name, array in outputs.items() if not (self.finds and name in RESULTS)}


def _how(request: dict[str, Any], kind: str, value: str) -> How:
    from polyop.verifying.sides import How

    return How(kind, value, request["threads"], tuple(request["libraries"]), request["accelerate"])


def _reference(request: dict[str, Any], model: _Model, folder: Path) -> tuple[_Model | None, Any]:
    """Returns the other model or the annotations."""
    from polyop.attaching.truth import Truth
    from polyop.verifying.sides import KINDS

    kind, value = request["reference"]["kind"], request["reference"]["value"]
    if kind == "truth":
        return None, Truth(Path(value), model.names)
    if kind not in (*KINDS, "engine"):
        raise usage(f"--against {kind}: expected a reference that runs photos, got {kind}={value}")
    how = _how(request, kind, value)
    how = replace(how, provider=request["reference"].get("provider", "")) if kind == "onnx" else how
    try:
        return open_model(Path(how.file or request["model"]), how, request, folder / "reference"), None
    except PolyopError as error:
        raise CommandError(
            getattr(error, "code", ExitCode.FAILED), f"--against {how.text}: {error}", error.hint
        ) from error


def open_model(path: Path, how: How, request: dict[str, Any], folder: Path) -> _Model:
    """Loads a side, with attached steps if its head is known. folder: for a file with these steps."""
    from polyop.attaching import KEY
    from polyop.optimizing.running import runtime_error
    from polyop.verifying.sides import open_side, without_file

    attached, why, hint, metadata = path, "", "", _metadata(path)
    if KEY not in metadata and path.suffix.lower() == ".onnx":
        attached, why, hint = _attached(path, request, folder)
        metadata = metadata if why else _metadata(attached)
    try:
        side = open_side(attached, without_file(how))
    except (PolyopError, OSError, ImportError):
        raise
    except Exception as error:  # runtimes' own types are not public
        raise CommandError(ExitCode.FAILED, f"{path} in {how.text}: {runtime_error(error)}") from error
    finds = _DETECTIONS in side.outputs or _MAP in side.outputs
    if not finds:
        why = why or "it has no attached head"
        hint = hint or "`polyop attach --image` writes a file that takes pixels and gives boxes"
    notes = [f"the steps of `polyop attach` were added to {path.name}"] if attached != path else []
    pixels = _pixel_input(attached, side) if finds else None
    takes = (lambda photo, rgb: {pixels: rgb[None]}) if pixels else _reader(path, request)
    return _Model(path, side, takes, _names(metadata), finds, why, hint, notes)


def _metadata(path: Path) -> dict[str, str]:
    if path.suffix.lower() != ".onnx":
        return {}
    from polyop._commands.models import check_model

    return {entry.key: entry.value for entry in check_model(str(path)).metadata_props}


def _attached(path: Path, request: dict[str, Any], folder: Path) -> tuple[Path, str, str]:
    """Returns a file with the steps of `polyop attach` and the model's own outputs; or the path, and why not."""
    import onnx

    from polyop._onnx.files import read_model
    from polyop.attaching import AttachError, ImageSteps, attach

    given = _image_options(request)
    resize, letterbox = given.pop("resize"), given.pop("letterbox")
    fit, size = "resize" if resize else "letterbox" if letterbox else None, resize or letterbox
    steps = ImageSteps(fit=fit, size=None if size == "model" else size, **given)
    folder.mkdir()
    file = folder / path.name
    try:
        attach(path, file, image=steps)
    except AttachError as error:
        return path, str(error), error.hint
    model, attached = read_model(path), read_model(file)
    tensors = {name for node in attached.graph.node for name in node.output}
    own = [output for output in model.graph.output if output.name in tensors]
    taken = {output.name for output in attached.graph.output}
    attached.graph.output.extend(output for output in own if output.name not in taken)
    onnx.save(attached, file)
    return file, "", ""


def _pixel_input(path: Path, side: Side) -> str:
    if len(side.inputs) != 1:
        raise CommandError(
            ExitCode.FAILED,
            f"{path}: expected one input, of pixels u8[1, H, W, 3], got {', '.join(side.inputs) or 'none'}",
            "`polyop attach --image` writes a file with such an input",
        )
    return side.inputs[0]


def _reader(path: Path, request: dict[str, Any]) -> Callable[[Path, np.ndarray], Arrays]:
    """Returns a function that makes the inputs of a model without attached steps from a photo, as -i does."""
    from polyop._commands.inputs import read_inputs
    from polyop._commands.models import check_model, inputs_of

    if path.suffix.lower() != ".onnx":
        path = Path(request["model"])
    model = check_model(str(path))
    of_images = [value.name for value in inputs_of(model) if len(value.type.tensor_type.shape.dim) == 4]
    if len(of_images) != 1:
        raise CommandError(
            ExitCode.FAILED,
            f"{path}: expected one input of images, of rank 4, got {', '.join(of_images) or 'none'}",
            "--set NAME=… gives the values of other inputs",
        )
    texts = {name: text or None for name, text in request["image_options"].items()}
    options = argparse.Namespace(**texts, set=request["set"], memory=request["memory"], input=[])

    def takes(photo: Path, pixels: np.ndarray) -> Arrays:
        options.input = [f"{of_images[0]}={photo}"]
        return read_inputs(options, model, {})

    return takes


def _image_options(request: dict[str, Any]) -> dict[str, Any]:
    from polyop._commands.arguments import image_options

    texts = {name: text or None for name, text in request["image_options"].items()}
    return image_options(argparse.Namespace(**texts))


def photos_of(inputs: list[str]) -> list[Path]:
    """Returns the image files, of folders, files or patterns."""
    from polyop.batch.sources import IMAGES, Input

    if not inputs:
        raise usage("--images: expected photos, got none", "--images FOLDER, or 'photos/*.jpg'")
    files = [path for text in inputs for path in Input.parse(text).files(Path("."))]
    photos = [path for path in files if path.suffix.lower() in IMAGES]
    if not photos:
        raise usage(f"--images {' '.join(inputs)}: expected images, got none", f"expected one of {' '.join(IMAGES)}")
    return photos


def _names(metadata: dict[str, str]) -> tuple[str, ...]:
    from polyop._commands.draw_detections import noted_names

    return noted_names(metadata.get("polyop.detections", ""))


# ---- Results ----


class _Tensors:
    """The differences of outputs over all photos."""

    def __init__(self, request: dict[str, Any]) -> None:
        from polyop.verifying.differences import Tolerance

        self._tolerance = Tolerance(request["rtol"], request["atol"])
        self._of: dict[str, list[tuple[Path, str, Any]]] = {}

    def add(self, ours: Arrays, theirs: Arrays, photo: Path) -> None:
        """Raises CommandError if the reference lacks an output. Names that differ are paired by position."""
        from polyop.verifying.differences import difference

        left, others = [n for n in ours if n not in theirs], [n for n in theirs if n not in ours]
        if len(left) != len(others):
            if left:
                raise CommandError(
                    ExitCode.BAD_FILE, f"the reference has no tensor '{left[0]}'", f"it has {', '.join(theirs)}"
                )
            others = []
        pairs = (
            {**{name: name for name in ours}, **dict(zip(left, others, strict=True))} if left else {n: n for n in ours}
        )
        for name, other in pairs.items():
            array = ours[name]
            text = f"{_TYPES.get(array.dtype.name, array.dtype.name)}[{', '.join(map(str, array.shape))}]"
            found = difference(array, theirs[other], self._tolerance)
            self._of.setdefault(name, []).append((photo, text, found))

    @property
    def are_compared(self) -> bool:
        return any(found.count for results in self._of.values() for _, _, found in results)

    def as_json(self) -> list[dict[str, Any]]:
        return [self._as_json(name, results) for name, results in self._of.items()]

    def _as_json(self, name: str, results: list[tuple[Path, str, Any]]) -> dict[str, Any]:
        def excess(result: tuple[Path, str, Any]) -> float:
            return float(result[2].relative())

        photo, text, worst = max(results, key=excess)
        all_of = [found for _, _, found in results]
        count = sum(found.count for found in all_of)
        entry = {
            "tensor": name,
            "node": "",
            "type": text,
            "equal": all(found.ok for found in all_of),
            "count": count,
            "photo": str(photo),
        }
        if worst.mismatch:
            return {**entry, "mismatch": f"{photo}: {worst.mismatch}"}
        relative = worst.relative()
        mean = sum(found.mean * found.count for found in all_of) / count if count else 0.0
        return {
            **entry,
            "max_error": worst.max,
            "mean_error": mean,
            "scale": worst.scale,
            "relative_error": relative if relative != float("inf") else None,
            "differing": sum(found.differing for found in all_of),
        }


class _Maps:
    """The maps of both models on all photos."""

    def __init__(self, request: dict[str, Any], folder: Path, names: Sequence[tuple[str, ...]]) -> None:
        """names: of the model's classes and of the reference's. The folder keeps the maps, if they may be drawn."""
        from polyop.attaching.maps import MapAgreement

        self._request, self._folder, self._names = request, folder, names
        self._agreement = MapAgreement()
        self._photos: list[Path] = []

    def add(self, photo: Path, theirs: Arrays, ours: Arrays) -> None:
        import numpy as np

        expected, found = theirs[_MAP][0], ours[_MAP][0]
        if expected.shape != found.shape:
            raise CommandError(
                ExitCode.FAILED, f"{photo}: expected maps of one size, got {expected.shape} and {found.shape}"
            )
        self._agreement.add(expected, found)
        if self._request["draw"] or self._request["page"]:
            np.savez_compressed(self._folder / f"{len(self._photos)}.npz", expected=expected, found=found)
        self._photos.append(photo)

    def as_json(self) -> dict[str, Any]:
        equal = self._agreement.equal_pixels
        order = sorted(range(len(equal)), key=lambda i: equal[i])
        worst = [i for i in order[:MAX_WORST] if equal[i] < 1]
        draws, page = self._request["draw"], self._request["page"]
        listed = [
            {
                "photo": str(self._photos[i]),
                "equal_pixels": equal[i],
                "drawing": _draw(self._request, rank, self._photos[i], *self._regions(i)) if draws else "",
            }
            for rank, i in enumerate(worst)
        ]
        return {
            "classes": self._agreement.classes,
            "mean_iou": self._agreement.mean_iou,
            "equal_pixels": sum(equal) / len(equal),
            "worst": listed,
            "shown": _shown(self._request, self._photos[order[0]], *self._regions(order[0])) if page else {},
        }

    def _regions(self, i: int) -> tuple[list[Detection], list[Detection]]:
        import numpy as np

        from polyop.attaching.drawing import regions

        with np.load(self._folder / f"{i}.npz") as maps:
            return regions(maps["expected"], self._names[-1]), regions(maps["found"], self._names[0])


def _agreement(
    request: dict[str, Any],
    photos: Sequence[Path],
    expected: Sequence[Sequence[Detection]],
    found: Sequence[Sequence[Detection]],
) -> dict[str, Any]:
    from polyop.attaching.agreement import compare

    agreement = compare(expected, found, request["iou"])
    if not any(photo.expected or photo.found for photo in agreement.photos):
        raise CommandError(
            ExitCode.FAILED,
            f"nothing was compared: neither the reference nor the model has objects on {len(photos)} photo(s)",
            "photos with objects, or a lower score in `polyop attach`",
        )
    moves = [move for photo in agreement.photos for move in photo.moves]
    order = sorted(
        range(len(photos)),
        key=lambda i: (-agreement.photos[i].differing, -max(agreement.photos[i].moves, default=0.0)),
    )
    worst = [i for i in order[:MAX_WORST] if agreement.photos[i].differing]
    listed = []
    for rank, i in enumerate(worst):
        of_photo = agreement.photos[i]
        drawing = _draw(request, rank, photos[i], expected[i], found[i]) if request["draw"] else ""
        listed.append(
            {
                "photo": str(photos[i]),
                "missing": of_photo.expected - of_photo.matched,
                "additional": of_photo.found - of_photo.matched,
                "moved": of_photo.moved,
                "drawing": drawing,
            }
        )
    return {
        "expected": sum(p.expected for p in agreement.photos),
        "found": sum(p.found for p in agreement.photos),
        "matched": sum(p.matched for p in agreement.photos),
        "moved": sum(p.moved for p in agreement.photos),
        "largest_move": max(moves, default=0.0),
        "average_precision": agreement.average_precision,
        "coco_precision": agreement.coco_precision,
        "worst": listed,
        "shown": _shown(request, photos[order[0]], expected[order[0]], found[order[0]]),
    }


def _shown(
    request: dict[str, Any], photo: Path, expected: Sequence[Detection], found: Sequence[Detection]
) -> dict[str, str]:
    """Returns the photo that differs most, in both versions, for a page: JPEG in base64. Only if a page is written."""
    if not request["page"]:
        return {}
    import base64

    from polyop.batch.images import encode

    drawings = _drawn(request, photo, expected, found)
    texts = [base64.b64encode(encode(pixels, "jpg")).decode() for pixels in drawings]
    return {"photo": str(photo), "reference": texts[0], "model": texts[1]}


def _drawn(
    request: dict[str, Any], photo: Path, expected: Sequence[Detection], found: Sequence[Detection]
) -> list[np.ndarray]:
    """Returns the photo with the reference's detections, and with the model's."""
    from polyop.attaching.drawing import draw
    from polyop.batch.images import read
    from polyop.batch.memory import Memory

    pixels = read(photo.read_bytes(), str(photo), Memory(request["memory"]))
    return [draw(pixels, detections) for detections in (expected, found)]


def _draw(
    request: dict[str, Any], rank: int, photo: Path, expected: Sequence[Detection], found: Sequence[Detection]
) -> str:
    """Writes the photo with the reference's detections, and next to it with the model's. Returns the file."""
    import numpy as np

    from polyop._onnx.atomic_file import prepare_folder, write_atomically
    from polyop.batch.images import encode

    file = Path(request["draw"]) / f"{rank + 1}_{photo.stem}.png"
    prepare_folder(file)
    write_atomically(file, encode(np.concatenate(_drawn(request, photo, expected, found), 1), "png"))
    return str(file)


if __name__ == "__main__":
    serve(verify_photos, "pip install 'polyop[batch,optimize]'")
