# SPDX-License-Identifier: Apache-2.0
"""Finds the first node whose output differs, for the program's `verify --bisect`.

The request has "model" and "provider"; "reference", the "kind" and the "value" of --against; "tensors", the outputs
that differ; "inputs", an .npz file of the model's inputs; "output", the file to write, or ""; "rtol" and "atol";
"threads", "accelerate" and "libraries". The reply has the "lines" to print, and what they say as fields. bridge.py
documents the protocol.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from polyop._commands.bridge import serve
from polyop._commands.errors import CommandError, ExitCode, usage

if TYPE_CHECKING:
    from polyop.verifying.bisecting import Found, Search
    from polyop.verifying.sides import How


def bisect(request: dict[str, Any]) -> dict[str, Any]:
    from polyop.verifying import bisecting
    from polyop.verifying.networks import Network
    from polyop.verifying.sides import KINDS, How, files_of, without_file

    kind, value = request["reference"]["kind"], request["reference"]["value"]
    if kind not in KINDS:
        raise usage(
            f"--bisect: expected a reference whose inner values can be outputs, got {kind}",
            f"one of {', '.join(KINDS[1:])}",
        )
    of_file = request["reference"].get("provider", "")
    shared = (request["threads"], tuple(request["libraries"]), request["accelerate"])
    hows = (
        How("onnxruntime", request["provider"], *shared),
        How(kind, value, *shared, of_file if kind == "onnx" else ""),
    )
    networks = []
    for how in hows:
        _, model, folder = files_of(how, Path(request["model"]))
        networks.append(Network(model, folder))
    with np.load(request["inputs"]) as arrays:
        feeds = dict(arrays)
    sides = bisecting.Sides(networks[0], networks[1], (hows[0], without_file(hows[1])), feeds, request["atol"])
    found, search = bisecting.bisect(sides, request["tensors"], request["rtol"])
    seen = [
        {"tensor": name, "position": networks[0].producer.get(name, 0), "relative_error": _number(apart)}
        for name, apart in search.known.items()
    ]
    runs = {"runs": sides.runs, "limit": sides.limit, "most_outputs": bisecting.PROBES + 1, "seen": seen}
    if found is None:
        why = f"no output is off by more than {sides.limit:.1e} of its scale: rounding, of which no node is the first"
        return {**runs, "lines": [f"bisect: {why}"]}
    files = _write(request, found, hows)
    return {**runs, **_report(found, search, hows, files)}


def _number(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _write(request: dict[str, Any], found: Found, hows: tuple[How, How]) -> list[Path]:
    """Writes our part, its inputs, and the reference's part if that is another."""
    import onnx

    from polyop._onnx.atomic_file import AtomicFile, prepare_folder, write_atomically

    file = Path(request["output"] or f"{Path(request['model']).stem}-first.onnx")
    ours, theirs = (onnx.ModelProto.FromString(part.SerializeToString()) for part in found.parts)
    for part, folder in zip((ours, theirs), found.folders, strict=True):
        onnx.load_external_data_for_model(part, str(folder or ""))
    files = [file, file.with_suffix(".npz")]
    prepare_folder(file)
    write_atomically(files[0], ours.SerializeToString())
    with AtomicFile(files[1]) as partial, partial.open("wb") as stream:
        inputs: dict[str, Any] = dict(found.feeds)
        np.savez(stream, **inputs)
    if hows[1].kind == "onnx":
        files.append(file.with_name(f"{file.stem}-reference{file.suffix}"))
        write_atomically(files[2], theirs.SerializeToString())
    return files


def _alone(found: Found, hows: tuple[How, How], files: list[Path], atol: float) -> float:
    """Returns how far the files are apart, read again."""
    from polyop.verifying.bisecting import apart
    from polyop.verifying.differences import Tolerance, difference
    from polyop.verifying.sides import open_side, without_file

    with np.load(files[1]) as arrays:
        feeds = dict(arrays)
    got, want = (
        next(iter(open_side(file, without_file(how)).run(feeds).values()))
        for file, how in zip((files[0], files[-1] if len(files) > 2 else files[0]), hows, strict=True)
    )
    return apart(difference(got, want, Tolerance(0.0, atol)), got, atol)


def _report(found: Found, search: Search, hows: tuple[How, How], files: list[Path]) -> dict[str, Any]:
    from polyop.verifying.bisecting import PROBES

    sides = search.sides
    alone = _alone(found, hows, files, sides.atol)
    if sides.differs(found.alone) != sides.differs(alone):
        raise CommandError(
            ExitCode.FAILED,
            f"{files[0]}: expected the file to differ as its nodes do in memory, got {alone:.1e} of the scale",
        )
    against = str(files[2]) if len(files) > 2 else hows[1].text
    provider = f" --provider {shlex.quote(hows[0].value)}" if hows[0].value else ""
    provider += f" --against-provider {shlex.quote(hows[1].provider)}" if hows[1].provider else ""
    given = f" -i {shlex.quote(str(files[1]))}" if found.feeds else ""
    command = f"polyop verify {shlex.quote(str(files[0]))}{given}{provider} --against {shlex.quote(against)}"
    where = f" inside of {' / '.join(found.path)}" if found.path else ""
    node = found.nodes[-1]
    lines = [
        f"first node whose output differs: {node}, tensor '{found.tensor}'{where}",
        f"  off by {_text(found.apart)} of its scale; its inputs agree within {_text(found.of_inputs)}",
    ]
    if found.by_position:
        lines.append("  the files have other names here: the tensors are paired by the order of nodes")
    if len(found.nodes) > 1:
        shown = ", ".join(found.nodes[:8]) + (f", … ({len(found.nodes)})" if len(found.nodes) > 8 else "")
        lines.append(f"  between them are the nodes {shown}")
    if found.unseen:
        lines.append(
            f"  {len(found.unseen)} tensor(s) cannot be looked at: as outputs they fail, have no partner, or make the "
            "difference vanish, because the runtime fuses their nodes"
        )
    lines.append(
        f"  found in {sides.runs} runs of each side, each with at most {PROBES + 1} outputs; a tensor differs if it is off "
        f"by more than {sides.limit:.1e} of its scale"
    )
    written = " and ".join(map(str, files))
    if sides.differs(alone):
        lines.append(f"wrote {written}: alone, from equal inputs, off by {_text(alone)} of the scale")
    else:
        lines.append(f"wrote {written}; from equal inputs they agree: the node enlarges the rounding of its inputs")
    lines.append(f"  {command}")
    return {
        "node": node, "tensor": found.tensor, "inside": list(found.path), "nodes": list(found.nodes),
        "relative_error": _number(found.apart), "of_inputs": _number(found.of_inputs), "alone": _number(alone),
        "reproduces": sides.differs(alone), "files": list(map(str, files)), "command": command, "lines": lines,
    }  # fmt: skip


def _text(value: float) -> str:
    return (
        "0"
        if not value
        else f"{value:.2e}"
        if np.isfinite(value)
        else "more than a number says (NaN, infinity, integers or shapes)"
    )


if __name__ == "__main__":
    serve(bisect, "pip install 'polyop[optimize]'")
