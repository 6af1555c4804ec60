# SPDX-License-Identifier: Apache-2.0
"""Runs a TensorRT engine, for `polyop run` and `polyop verify`.

The request has "engine", and the .npz files "inputs" and "outputs". bridge.py documents the protocol.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polyop._commands.bridge import serve
from polyop._commands.errors import CommandError, ExitCode


def run(request: dict[str, Any]) -> dict[str, Any]:
    import torch

    from polyop.tensorrt import EngineError, TRTWrapper

    engine = request["engine"]
    if not torch.cuda.is_available():
        raise CommandError(ExitCode.NO_RUNTIME, f"{engine}: an engine needs a GPU, and torch finds none")
    try:
        with np.load(request["inputs"]) as arrays:
            results = TRTWrapper(engine)({name: torch.from_numpy(array).cuda() for name, array in arrays.items()})
    except EngineError as error:
        raise CommandError(ExitCode.FAILED, f"{engine}: {error}") from error
    saved: dict[str, Any] = {name: tensor.cpu().numpy() for name, tensor in results.items()}
    np.savez(request["outputs"], **saved)
    return {}


if __name__ == "__main__":
    serve(run, "pip install torch, and tensorrt or tensorrt-rtx")
