# SPDX-License-Identifier: Apache-2.0
"""Runs samples together where that gives what each gives alone."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

import numpy as np

from polyop.batch.interface import Model, Tensor

Arrays = dict[str, np.ndarray]
_MAX_DIFFERENCE = 1e-3  # between a result in a batch and alone, relative to the output's largest value
AUTOMATIC = 8  # samples per batch by default


class Runner:
    """Runs samples, each with a value for every input that is not a constant, in batches where possible.

    Joins samples of the same shapes along the first dimension if that has one name in all inputs and outputs
    (`why_one_by_one`), and splits the results. The shapes do not tell whether a batch computes the same (points are not
    images), so the first batch is compared with its samples run one by one. If results differ, all samples run one by
    one from then on, and `note` gives the reason. Thread-safe.
    """

    def __init__(
        self, model: Model, constants: Mapping[str, np.ndarray], outputs: Sequence[str], batch: int = 0
    ) -> None:
        """batch: the maximum number of samples in a batch; 0: automatic."""
        self.model, self.constants, self.outputs = model, dict(constants), tuple(outputs)
        self.free = [tensor for name, tensor in model.inputs.items() if name not in constants]
        self.note = ""
        self.largest = 0  # the largest batch so far
        self._deciding = threading.Lock()
        self._decided = False
        self._joins = [t.name for t in self.free]
        constant = [tensor for name, tensor in model.inputs.items() if name in constants]
        why = why_one_by_one(self.free, [model.outputs[name] for name in outputs], constant)
        self.batch = 1 if why or not self.free else batch or AUTOMATIC
        if why:
            self.note = f"one sample at a time: {why}"

    def signature(self, sample: Arrays) -> tuple[object, ...]:
        """Returns a key; samples with equal keys may be joined."""
        return tuple(sample[name].shape[1:] for name in self._joins)

    def run(self, samples: Sequence[Arrays | Exception]) -> list[Arrays | Exception]:
        """Returns a result for each sample, or the exception if reading it or running the model failed."""
        groups: dict[object, list[int]] = {}
        for i, sample in enumerate(samples):
            if not isinstance(sample, Exception):
                groups.setdefault(self.signature(sample), []).append(i)
        answers = list(samples)
        for group in groups.values():
            for at in range(0, len(group), self.batch):
                part = group[at : at + self.batch]
                arrays = [sample for sample in (samples[i] for i in part) if not isinstance(sample, Exception)]
                for i, answer in zip(part, self._run_same_shapes(arrays), strict=True):
                    answers[i] = answer
        return answers

    def _run_same_shapes(self, samples: list[Arrays]) -> list[Arrays | Exception]:
        if len(samples) == 1 or self.batch == 1:
            return [self._run_one(sample) for sample in samples]
        if not self._decided:
            with self._deciding:
                if not self._decided:
                    return self._compare_first_batch(samples)
            return self._run_same_shapes(samples)
        try:
            return [*self._run_batch(samples)]
        except Exception:  # an invalid sample does not affect the others
            return [self._run_one(sample) for sample in samples]

    def _compare_first_batch(self, samples: list[Arrays]) -> list[Arrays | Exception]:
        results = [self._run_one(sample) for sample in samples]
        alone = [result for result in results if not isinstance(result, Exception)]
        if len(alone) < len(results):
            return results
        try:
            why = _difference(self._run_batch(samples), alone)
        except Exception as error:
            why = f"the model rejects a batch of {len(samples)} ({' '.join(str(error).split())[:200]})"
        if why:
            self.batch, self.note = 1, f"one sample at a time: {why}"
        self._decided = True
        return results

    def _run_one(self, sample: Arrays) -> Arrays | Exception:
        self.largest = max(self.largest, 1)
        try:
            return self.model.run({**self.constants, **sample}, self.outputs)
        except Exception as error:  # ONNX Runtime's error types are not public
            return error

    def _run_batch(self, samples: list[Arrays]) -> list[Arrays]:
        counts = [len(sample[self._joins[0]]) for sample in samples]
        for name in self._joins:
            if [len(sample[name]) for sample in samples] != counts:
                raise ValueError(f"input '{name}': expected {counts} rows as in '{self._joins[0]}'")
        joined = {name: np.concatenate([sample[name] for sample in samples]) for name in self._joins}
        answer = self.model.run({**self.constants, **joined}, self.outputs)
        for name, array in answer.items():
            if array.shape[:1] != (sum(counts),):
                raise ValueError(f"output '{name}': expected {sum(counts)} rows, got {array.shape[:1]}")
        self.largest = max(self.largest, len(samples))
        ends = np.cumsum(counts)[:-1]
        parts = {name: np.split(array, ends) for name, array in answer.items()}
        return [{name: part[i] for name, part in parts.items()} for i in range(len(samples))]


def why_one_by_one(inputs: Sequence[Tensor], outputs: Sequence[Tensor], constants: Sequence[Tensor] = ()) -> str:
    """Returns why samples cannot be joined along the first dimension, or "".

    The first dimensions must have one name, because only the name tells that an output has a row for each of an input's
    rows: three images may have three detections together by chance. `constants` are inputs that all samples share.
    """
    tensors = [*inputs, *outputs]
    closed = next((t for t in tensors if not t.shape or t.is_fixed(0)), None)
    if closed is not None:
        return f"expected a dynamic first dimension of '{closed.name}', got {closed}"
    other = next((t for t in tensors if t.shape[0] is None or t.shape[0] != tensors[0].shape[0]), None)
    if other is not None:
        expected = f"one name for the first dimensions of '{tensors[0].name}' and '{other.name}'"
        return f"expected {expected}, got {tensors[0]} and {other}"
    shared = next((t for t in constants if t.shape and t.shape[0] == tensors[0].shape[0]), None) if tensors else None
    return f"the constant '{shared.name}' has the samples' first dimension '{shared.shape[0]}'" if shared else ""


def _difference(got: Sequence[Arrays], expected: Sequence[Arrays]) -> str:
    """Returns how the results differ, or "" if they agree."""
    for g, w in zip(got, expected, strict=True):
        for name, array in w.items():
            if g[name].shape != array.shape:
                return f"'{name}' has shape {list(g[name].shape)} in a batch, {list(array.shape)} alone"
            if array.dtype.kind == "f":
                tolerance = _MAX_DIFFERENCE * float(np.abs(array[np.isfinite(array)]).max(initial=0))
                agrees = np.allclose(g[name], array, rtol=0, atol=tolerance, equal_nan=True)
            else:  # exactly: `allclose` converts integers to floats
                agrees = np.array_equal(g[name], array)
            if not agrees:
                return f"'{name}' differs between a batch and single samples"
    return ""
