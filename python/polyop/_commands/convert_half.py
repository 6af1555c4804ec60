# SPDX-License-Identifier: Apache-2.0
"""`polyop convert --half`: finds the nodes that must stay in single precision (polyop.verifying.halving), converts the
others, and compares the file with the model, as `polyop verify` does, before it is written.

Samples are photos (--images), the files of a folder (--calibration), or synthetic. If both sides find something on
photos, the detections decide, else the outputs.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyop._base.progress import bars
from polyop._commands import terminal
from polyop._commands.errors import CommandError, ExitCode, usage

if TYPE_CHECKING:
    from onnx import ModelProto

    from polyop.attaching.drawing import Detection
    from polyop.verifying.halving import Halved, Loss
    from polyop.verifying.sides import Arrays

MAX_LOSS = 0.005  # of the mean average precision
MAX_ERROR = 0.01  # of outputs, relative to the scale of each
_SYNTHETIC = 3  # runs


@dataclass
class _Samples:
    """model: what is measured: the model, perhaps with steps before and after. of_detections: these decide."""

    model: ModelProto
    feeds: list[Arrays]
    limit: float
    of_detections: bool = False
    names: tuple[str, ...] = ()
    truth: list[Sequence[Detection]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def loss(self, expected: Sequence[Arrays]) -> Loss:
        from polyop.verifying.halving import tensor_loss

        if not self.of_detections:
            return tensor_loss(expected)
        from polyop.attaching.agreement import compare
        from polyop.attaching.drawing import detections

        def found(outputs: Sequence[Arrays]) -> list[list[Detection]]:
            return [detections(of_photo, self.names) for of_photo in outputs]

        own = found(expected)
        if not any(own):
            raise CommandError(
                ExitCode.FAILED, f"the model finds nothing on {len(own)} photo(s): nothing can be lost",
                "photos with objects",
            )  # fmt: skip
        if not self.truth:
            return lambda outputs: 1 - compare(own, found(outputs), 0.5).coco_precision
        best = compare(self.truth, own, 0.5).coco_precision
        return lambda outputs: max(0.0, best - compare(self.truth, found(outputs), 0.5).coco_precision)


@contextmanager
def halved_file(options: argparse.Namespace) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yields a temporary file in half precision, and a report. Raises CommandError or HalfError if it would lose too
    much."""
    import onnx

    from polyop._onnx.files import data_folder, external_files, read_model
    from polyop.portable import add_functions
    from polyop.verifying.halving import Halving, prepared
    from polyop.verifying.sides import How, open_side

    path = Path(options.model)
    original = read_model(path)
    onnx.load_external_data_for_model(original, str(data_folder(path, external_files(original, path))))
    model = prepared(original)
    with tempfile.TemporaryDirectory(prefix="polyop-", ignore_cleanup_errors=True) as folder, ExitStack() as stack:
        single = Path(folder, "single", path.name)
        single.parent.mkdir()
        onnx.save(model, single)
        samples = _samples(options, model, single, Path(folder))
        side = open_side(samples.model, How(threads=0))
        expected = [side.run(feed) for feed in samples.feeds]
        del side
        more: dict[str, Any] = {"step": step} if (step := bars(stack)) else {}
        halving = Halving(model, samples.model, samples.feeds, samples.loss(expected), samples.limit, **more)
        halved = halving.run()
        if any(record for record in original.functions):
            add_functions(halved.model, only={f"{f.domain}::{f.name}" for f in original.functions})
        file = Path(folder, path.name)
        onnx.save(halved.model, file)
        lines = [*samples.lines, *_compared(options, samples, expected, single, file, Path(folder))]
        yield file, _report(halved, samples, lines)


# ---- Samples ----


def _samples(options: argparse.Namespace, model: ModelProto, single: Path, folder: Path) -> _Samples:
    from polyop._commands.inputs import read_samples

    if options.images:
        return _photos(options, model, single, folder)
    limit = MAX_ERROR if options.loss is None else options.loss
    if options.calibration:
        feeds = list(read_samples(options, model, Path(options.calibration)))
        return _Samples(model, feeds, limit, lines=[f"{len(feeds)} sample(s) of {options.calibration}"])
    return _Samples(
        model, list(_synthetic(model)), limit,
        lines=["the samples were random: give photos with --images, or inputs with --calibration"],
    )  # fmt: skip


def _synthetic(model: ModelProto) -> Iterator[Arrays]:
    import onnx_ir as ir

    from polyop.optimizing.inputs import candidates
    from polyop.verifying.sides import How, open_side

    graph, side = ir.from_proto(model).graph, open_side(model, How())
    shapes: dict[str, Sequence[int]] = {}
    for seed in range(_SYNTHETIC):
        error: Exception | None = None
        for feeds in candidates(graph, {}, shapes, seed):
            try:
                side.run(feeds)
            except Exception as raised:  # runtimes' own types are not public
                error = error or raised
                continue
            shapes = {name: array.shape for name, array in feeds.items()}
            yield feeds
            break
        else:
            raise CommandError(
                ExitCode.FAILED, f"the model rejects all inputs that were tried: {error}", "--images or --calibration"
            )


def _photos(options: argparse.Namespace, model: ModelProto, single: Path, folder: Path) -> _Samples:
    import onnx

    from polyop._commands.verify_photos import open_model, photos_of
    from polyop.attaching.truth import Truth
    from polyop.batch.images import read
    from polyop.batch.memory import Memory
    from polyop.verifying.sides import How

    photos = photos_of(options.images)
    request = _request(options)
    found = open_model(single, How(), request, folder / "steps")
    attached = folder / "steps" / single.name
    measured = onnx.load(attached) if attached.is_file() else model
    of_detections = found.finds and not found.is_map
    truth: list[Sequence[Detection]] = []
    if options.truth:
        if not of_detections:
            raise usage(f"--truth: expected a detector, got {options.model}: {found.why}", found.hint)
        annotations = Truth(Path(options.truth), found.names)
        truth = [annotations.of(photo) for photo in photos]
    feeds = [found.takes(photo, read(photo.read_bytes(), str(photo), Memory(options.memory))) for photo in photos]
    limit = options.loss if options.loss is not None else MAX_LOSS if of_detections else MAX_ERROR
    notes = [note.replace(single.name, options.model) for note in found.notes]
    why = [] if of_detections else [f"the outputs decide: {found.why or 'a map of classes has no boxes'}"]
    return _Samples(
        measured, feeds, limit, of_detections, found.names, truth, [f"{len(photos)} photo(s)", *notes, *why]
    )


def _request(options: argparse.Namespace) -> dict[str, Any]:
    names = ("layout", "range", "color", "resize", "letterbox", "mean", "std")
    return {
        "model": options.model, "image_options": {name: getattr(options, name) or "" for name in names},
        "set": options.set, "memory": options.memory, "threads": 0, "libraries": [], "accelerate": False,
    }  # fmt: skip


# ---- The file ----


def _compared(
    options: argparse.Namespace, samples: _Samples, expected: Sequence[Arrays], single: Path, file: Path, folder: Path
) -> list[str]:
    """Compares the file with the model in the runtime it is for. Raises CommandError if it loses too much."""
    import onnx

    from polyop._commands.verify_photos import open_model
    from polyop.verifying.sides import How, open_side

    how = How("openvino") if options.runtime == "openvino" else How()
    if samples.of_detections:
        side = open_model(file, how, _request(options), folder / "compared").side
    else:
        side = open_side(file if how.kind == "openvino" else onnx.load(file), how)
    lost = samples.loss(expected)([side.run(feed) for feed in samples.feeds])
    if lost > samples.limit:
        raise CommandError(
            ExitCode.FAILED,
            f"{options.model} in half precision in {side.runtime}: expected a loss of at most {samples.limit:g}, got {lost:.3g}",
        )
    return [f"in {side.runtime}: {_lost(samples, lost)}"]


def _lost(samples: _Samples, lost: float) -> str:
    if not samples.of_detections:
        return f"largest error {lost:.2e} of an output's scale (at most {samples.limit:g})"
    against = "annotations" if samples.truth else "the model's own detections"
    return f"{100 * lost:.2f} points of mAP lost (at most {100 * samples.limit:g}), by {against}"


def _report(halved: Halved, samples: _Samples, lines: list[str]) -> dict[str, Any]:
    rounded = f"rounded as on a device: {_lost(samples, halved.loss)}"
    return {
        "kept": [vars(kept) for kept in halved.kept],
        "nodes_in_half": halved.nodes,
        "casts": halved.casts,
        "loss": halved.loss,
        "limit": samples.limit,
        "of": "mAP" if samples.of_detections else "outputs",
        "runs": halved.runs,
        "lines": [*lines[:-1], rounded, lines[-1]],
    }


def print_report(report: dict[str, Any]) -> None:
    by_operator = Counter((kept["operator"], kept["why"]) for kept in report["kept"])
    shown = [
        [
            kept["node"] if by_operator[kept["operator"], kept["why"]] == 1 else f"{count} nodes",
            kept["operator"],
            kept["why"],
        ]
        for kept in {(k["operator"], k["why"]): k for k in report["kept"]}.values()
        for count in [by_operator[kept["operator"], kept["why"]]]
    ]
    if shown:
        print(terminal.table(["in single precision", "operator", "why"], shown), end="\n\n")
    print(
        f"{report['nodes_in_half']} node(s) in half precision, {len(report['kept'])} in single, {report['casts']} casts"
    )
    print("\n".join(report["lines"]))
