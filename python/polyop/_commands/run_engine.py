# SPDX-License-Identifier: Apache-2.0
"""Runs a TensorRT engine, for `polyop run`, `verify` and `bench`.

The request has "engine", the .npz files "inputs" and "outputs", and how often to run (timed_runs); the reply has
"load_seconds" and the "seconds" of every timed run, which include copies to the GPU and back. bridge.py documents the
protocol.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from polyop._commands.bridge import feeds_of, serve, timed_runs
from polyop._commands.errors import CommandError, ExitCode
from polyop.verifying.sides import InTensorRt


def run(request: dict[str, Any]) -> dict[str, Any]:
    from polyop.tensorrt import EngineError

    engine = Path(request["engine"])
    feeds = feeds_of(request)
    results: dict[str, Any] = {}
    try:
        start = time.perf_counter()
        side = InTensorRt(engine)
        load_seconds = time.perf_counter() - start
        seconds = timed_runs(lambda: results.update(side.run(feeds)), request)
    except EngineError as error:
        raise CommandError(ExitCode.FAILED, f"{engine}: {error}") from error
    np.savez(request["outputs"], **results)
    return {"load_seconds": load_seconds, "seconds": seconds}


if __name__ == "__main__":
    serve(run, "pip install torch, and tensorrt or tensorrt-rtx")
