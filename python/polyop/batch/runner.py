"""Runs samples together where that gives what each gives alone."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

import numpy as np

from polyop.batch.interface import Model

Arrays = dict[str, np.ndarray]
_LARGEST_DEPARTURE = 1e-3  # of a result in a batch from that alone, in proportion to the output's largest value
AUTOMATIC = 8  # samples in a batch where nothing is said


class Runner:
    """Answers samples, each a value for every input that is not a constant.

    Samples of the same shapes are joined along the first dimension where the model leaves it open, and the results are
    split again. Whether a model computes the same then cannot be read from its shapes (points are not pictures), so the first batch
    is compared with its samples alone; where they depart, every sample is run alone from then on, and `note` says why.
    It may be called by several threads.
    """

    def __init__(
        self, model: Model, constants: Mapping[str, np.ndarray], outputs: Sequence[str], batch: int = 0
    ) -> None:
        """batch: the most samples that are joined; 0 chooses."""
        self.model, self.constants, self.outputs = model, dict(constants), tuple(outputs)
        self.free = [tensor for name, tensor in model.inputs.items() if name not in constants]
        self.note = ""
        self.largest = 0  # the most samples in one run so far
        self._deciding = threading.Lock()
        self._decided = False
        self._joins = [t.name for t in self.free]
        tensors = [*self.free, *(model.outputs[name] for name in outputs)]
        closed = [t for t in tensors if not t.shape or t.is_fixed(0)]
        self.batch = 1 if closed or not self.free else batch or AUTOMATIC
        if closed:
            self.note = f"one sample at a time: '{closed[0].name}' is {closed[0]}, which has no open first dimension"

    def signature(self, sample: Arrays) -> tuple[object, ...]:
        """Samples of equal signatures may be joined."""
        return tuple(sample[name].shape[1:] for name in self._joins)

    def run(self, samples: Sequence[Arrays | Exception]) -> list[Arrays | Exception]:
        """An answer for each; what the model refuses is an exception in its place, as is a sample that could not be read."""
        groups: dict[object, list[int]] = {}
        for i, sample in enumerate(samples):
            if not isinstance(sample, Exception):
                groups.setdefault(self.signature(sample), []).append(i)
        answers = list(samples)
        for group in groups.values():
            for at in range(0, len(group), self.batch):
                part = group[at : at + self.batch]
                for i, answer in zip(part, self._run_alike([samples[i] for i in part]), strict=True):
                    answers[i] = answer
        return answers

    def _run_alike(self, samples: list[Arrays]) -> list[Arrays | Exception]:
        if len(samples) == 1 or self.batch == 1:
            return [self._alone(sample) for sample in samples]
        if not self._decided:
            with self._deciding:
                if not self._decided:
                    return self._decide(samples)
            return self._run_alike(samples)
        try:
            return self._together(samples)
        except Exception:  # one that the model refuses shall not take the others along
            return [self._alone(sample) for sample in samples]

    def _decide(self, samples: list[Arrays]) -> list[Arrays | Exception]:
        alone = [self._alone(sample) for sample in samples]
        if any(isinstance(answer, Exception) for answer in alone):
            return alone
        try:
            why = _departure(self._together(samples), alone)
        except Exception as error:
            why = f"the model refuses {len(samples)} together ({' '.join(str(error).split())[:200]})"
        if why:
            self.batch, self.note = 1, f"one sample at a time: {why}"
        self._decided = True
        return alone

    def _alone(self, sample: Arrays) -> Arrays | Exception:
        self.largest = max(self.largest, 1)
        try:
            return self.model.run({**self.constants, **sample}, self.outputs)
        except Exception as error:  # ONNX Runtime's own types are not public
            return error

    def _together(self, samples: list[Arrays]) -> list[Arrays]:
        joined = {name: np.concatenate([sample[name] for sample in samples]) for name in self._joins}
        counts = [len(sample[self._joins[0]]) for sample in samples]
        answer = self.model.run({**self.constants, **joined}, self.outputs)
        for name, array in answer.items():
            if array.shape[:1] != (sum(counts),):
                raise ValueError(f"output '{name}' has {array.shape[:1]} rows, not {sum(counts)}")
        self.largest = max(self.largest, len(samples))
        ends = np.cumsum(counts)[:-1]
        parts = {name: np.split(array, ends) for name, array in answer.items()}
        return [{name: part[i] for name, part in parts.items()} for i in range(len(samples))]


def _departure(got: Sequence[Arrays], want: Sequence[Arrays]) -> str:
    """How results departs from others, or ""."""
    for g, w in zip(got, want, strict=True):
        for name, array in w.items():
            if g[name].shape != array.shape:
                return f"'{name}' has the shape {list(g[name].shape)} in a batch, {list(array.shape)} alone"
            finite = np.abs(array[np.isfinite(array)]) if array.dtype.kind == "f" else np.abs(array.astype(np.float64))
            tolerance = _LARGEST_DEPARTURE * float(finite.max(initial=0)) if array.dtype.kind == "f" else 0
            if not np.allclose(g[name], array, rtol=0, atol=tolerance, equal_nan=True):
                return f"'{name}' is another in a batch than alone"
    return ""
