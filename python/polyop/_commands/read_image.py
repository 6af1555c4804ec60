# SPDX-License-Identifier: Apache-2.0
"""Decodes an image for the program, which decodes the frequent kinds itself.

The request has "file", its "name" for messages, "memory", the limit of Memory, and "pixels", the .npy
file to write: [H, W, 3], 8-bit RGB. bridge.py
documents the protocol.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from polyop._commands.bridge import serve
from polyop._commands.errors import CommandError, ExitCode


def read_image(request: dict[str, Any]) -> dict[str, Any]:
    from polyop.batch import images
    from polyop.batch.errors import SampleError
    from polyop.batch.memory import Memory

    try:
        pixels = images.read(Path(request["file"]).read_bytes(), request["name"], Memory(request["memory"]))
    except SampleError as error:
        raise CommandError(ExitCode.BAD_FILE, str(error), error.hint) from None
    np.save(request["pixels"], pixels)
    return {}


if __name__ == "__main__":
    serve(read_image, "pip install 'polyop[batch]'")
