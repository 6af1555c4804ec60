# SPDX-License-Identifier: Apache-2.0
"""Runs a TensorRT engine, for `polyop run` and `polyop verify`.

The request has "engine", and the .npz files "inputs" and "outputs". bridge.py documents the protocol.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from polyop._commands.bridge import serve
from polyop._commands.errors import CommandError, ExitCode
from polyop.verifying.sides import InTensorRt


def run(request: dict[str, Any]) -> dict[str, Any]:
    from polyop.tensorrt import EngineError

    engine = Path(request["engine"])
    try:
        with np.load(request["inputs"]) as arrays:
            results: dict[str, Any] = dict(InTensorRt(engine).run(arrays))
    except EngineError as error:
        raise CommandError(ExitCode.FAILED, f"{engine}: {error}") from error
    np.savez(request["outputs"], **results)
    return {}


if __name__ == "__main__":
    serve(run, "pip install torch, and tensorrt or tensorrt-rtx")
