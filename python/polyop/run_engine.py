"""Runs an engine on saved inputs: what `polyop run` and `polyop verify` call.

python -m polyop.run_engine ENGINE INPUTS.npz OUTPUTS.npz
"""

from __future__ import annotations

import sys

import numpy as np


def main(engine: str, inputs: str, outputs: str) -> None:
    import torch

    from polyop.tensorrt import EngineError, TRTWrapper

    if not torch.cuda.is_available():
        raise SystemExit(f"{engine}: an engine runs on a GPU, and torch finds none here")
    try:
        with np.load(inputs) as arrays:
            results = TRTWrapper(engine)({name: torch.from_numpy(array).cuda() for name, array in arrays.items()})
    except EngineError as error:
        raise SystemExit(f"{engine}: {error}") from None
    np.savez(outputs, **{name: tensor.cpu().numpy() for name, tensor in results.items()})


if __name__ == "__main__":
    main(*sys.argv[1:])
