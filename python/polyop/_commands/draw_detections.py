# SPDX-License-Identifier: Apache-2.0
"""Draws and lists detections for the program.

The request has "arrays", an .npz file of the photo's pixels as "photo" and of the model's outputs; "noted", the text of
the model's metadata about its head; and the options "names", "draw" and "csv", each "" if it was not given. The reply
has "detections". bridge.py documents the protocol.
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
    with np.load(request["arrays"]) as file:
        arrays = dict(file)
    photo = arrays.pop("photo")[0]
    try:
        found = detections(arrays, names)
    except AttachError as error:
        raise CommandError(ExitCode.FAILED, f"--draw, --csv, --names: {error}", error.hint) from error
    if request["draw"]:
        path = Path(request["draw"])
        write_atomically(path, encode(draw(photo, found), "png" if path.suffix.lower() == ".png" else "jpg"))
    rows = [detection.as_json() for detection in found]
    if request["csv"]:
        write_atomically(Path(request["csv"]), csv_text(rows).encode())
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
