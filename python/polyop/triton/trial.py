# SPDX-License-Identifier: Apache-2.0
"""Runs a model on synthetic inputs to find whether it can batch requests, and the ranks of its outputs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from polyop.batch.errors import describe_error
from polyop.batch.interface import Model, Tensor
from polyop.batch.runner import Runner, why_one_by_one

_EXTENTS = (64, 256, 16, 4, 2)  # of dynamic dimensions, in the order of the trials


def batches(model: Model) -> tuple[bool, str]:
    """Returns True if requests may run in a batch, and the reason if not."""
    if why := why_one_by_one(list(model.inputs.values()), list(model.outputs.values())):
        return False, f"requests run one by one: {why}"
    error: Exception | None = None
    why = ""
    for extent in _EXTENTS:
        runner = Runner(model, {}, tuple(model.outputs), 2)
        answers = runner.run([synthetic_inputs(model, extent, seed) for seed in (0, 1)])
        error = next((answer for answer in answers if isinstance(answer, Exception)), None)
        if error is None:
            return runner.batch > 1, runner.note.replace("one sample at a time", "requests run one by one")
        why = describe_error(error)
    return (
        True,
        f"not tested whether requests may run in a batch: the model rejects synthetic inputs: {why[:200]}",
    )


def with_ranks(model: Model) -> list[Tensor]:
    """Returns the outputs. Those without a shape get the rank that they have in a trial, if one succeeds."""
    outputs = list(model.outputs.values())
    if all(tensor.shape for tensor in outputs):
        return outputs
    for extent in _EXTENTS:
        try:
            arrays = model.run(synthetic_inputs(model, extent, 0), list(model.outputs))
        except Exception:  # the next size may work
            continue
        return [t if t.shape else replace(t, shape=(None,) * arrays[t.name].ndim) for t in outputs]
    return outputs


def synthetic_inputs(model: Model, extent: int, seed: int) -> dict[str, np.ndarray]:
    """Returns random inputs, with one row if the first dimension is dynamic. Integers are 0 or 1."""
    rng = np.random.default_rng(seed)
    result = {}
    for tensor in model.inputs.values():
        shape = [e if isinstance(e, int) else 1 if d == 0 else extent for d, e in enumerate(tensor.shape)]
        values = rng.random(shape) if tensor.dtype.kind == "f" else rng.integers(0, 2, shape)
        result[tensor.name] = values.astype(tensor.dtype)
    return result
