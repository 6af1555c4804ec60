# SPDX-License-Identifier: Apache-2.0
"""Draws and lists detections for the program.

The request has "runs", .npz files of a photo's pixels as "photo" and of the model's outputs for it; "files", the names
of the photos, if there are several; "drawings", the file of each photo's drawing, or nothing; "noted", the text of the
model's metadata about its head; and the options "names" and "csv", each "" if it was not given. The reply has
"detections", a list for each run. bridge.py documents the protocol.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from polyop._commands.bridge import serve
from polyop._commands.errors import CommandError, ExitCode


def draw_detections(request: dict[str, Any]) -> dict[str, Any]:
    from polyop._onnx.atomic_file import write_atomically
    from polyop.attaching.drawing import detections, draw
    from polyop.attaching.errors import AttachError
    from polyop.attaching.listing import csv_text
    from polyop.attaching.names import read_names
    from polyop.batch.images import encode

    names = read_names(request["names"]) if request["names"] else noted_names(request["noted"])
    found = []
    for i, run in enumerate(request["runs"]):
        with np.load(run) as file:
            arrays = dict(file)
        photo = arrays.pop("photo")[0]
        try:
            found.append(detections(arrays, names))
        except AttachError as error:
            raise CommandError(ExitCode.FAILED, f"--draw, --csv, --names: {error}", error.hint) from error
        if request["drawings"]:
            path = Path(request["drawings"][i])
            kind = "png" if path.suffix.lower() == ".png" else "jpg"
            write_atomically(path, encode(draw(photo, found[-1]), kind))
    rows = [[detection.as_json() for detection in of_run] for of_run in found]
    if request["csv"]:
        several = request["files"] if len(rows) > 1 else []
        named = [{"file": name, **row} for name, of_run in zip(several or [""], rows, strict=True) for row in of_run]
        write_atomically(Path(request["csv"]), csv_text(named, ("file",) if several else ()).encode())
    return {"detections": rows}


def noted_names(text: str) -> tuple[str, ...]:
    """Returns the names in the metadata that `polyop attach` writes."""
    try:
        names = json.loads(text)["names"]
    except (ValueError, KeyError, TypeError):
        return ()
    return tuple(map(str, names)) if isinstance(names, list) else ()


if __name__ == "__main__":
    serve(draw_detections, "pip install 'polyop[batch,optimize]'")
