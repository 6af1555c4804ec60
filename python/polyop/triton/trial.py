"""What a model does with made-up inputs: whether its first dimension counts requests, and the ranks of its outputs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from polyop.batch.errors import said
from polyop.batch.interface import Model, Tensor
from polyop.batch.runner import Runner

_EXTENTS = (64, 256, 16, 4, 2)  # of open dimensions, in the order in which they are tried


def batches(model: Model) -> tuple[bool, str]:
    """Whether requests may run together, and what there is to say about it."""
    tensors = [*model.inputs.values(), *model.outputs.values()]
    closed = next((t for t in tensors if not t.shape or t.is_fixed(0)), None)
    if closed is not None:
        return False, f"requests run one by one: '{closed.name}' is {closed}, which has no open first dimension"
    names = {t.shape[0] for t in tensors if t.shape[0] is not None}
    if len(names) > 1:
        return False, f"requests run one by one: first dimensions are {' and '.join(sorted(map(str, names)))}"
    error: Exception | None = None
    for extent in _EXTENTS:
        runner = Runner(model, {}, tuple(model.outputs), 2)
        answers = runner.run([made_up(model, extent, seed) for seed in (0, 1)])
        error = next((answer for answer in answers if isinstance(answer, Exception)), None)
        if error is None:
            return runner.batch > 1, runner.note.replace("one sample at a time", "requests run one by one")
    return (
        True,
        f"the model did not take made-up inputs, so that requests may run together is not tried: {said(error)[:200]}",
    )


def with_ranks(model: Model) -> list[Tensor]:
    """The outputs, of which those without a shape get the rank that they have in a trial. They stay as they are if
    no trial succeeds."""
    outputs = list(model.outputs.values())
    if all(tensor.shape for tensor in outputs):
        return outputs
    for extent in _EXTENTS:
        try:
            arrays = model.run(made_up(model, extent, 0), list(model.outputs))
        except Exception:  # the next extent may do
            continue
        return [t if t.shape else replace(t, shape=(None,) * arrays[t.name].ndim) for t in outputs]
    return outputs


def made_up(model: Model, extent: int, seed: int) -> dict[str, np.ndarray]:
    """One row of every input whose first extent is open; integers are 0 or 1."""
    rng = np.random.default_rng(seed)
    made = {}
    for tensor in model.inputs.values():
        shape = [e if isinstance(e, int) else 1 if d == 0 else extent for d, e in enumerate(tensor.shape)]
        values = rng.random(shape) if tensor.dtype.kind == "f" else rng.integers(0, 2, shape)
        made[tensor.name] = values.astype(tensor.dtype)
    return made
