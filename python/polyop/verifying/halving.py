# SPDX-License-Identifier: Apache-2.0
"""Half precision that keeps a model's results: which nodes must stay in single precision, by calibration.

Nodes whose values are too large for half precision on the samples stay as they are. If the results of the others in
half precision are too far from the model's, ranges of nodes are tried in half precision alone, and halved, until single
nodes remain that lose much by themselves. What is measured computes as a device does (rounding.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import TensorProto

from polyop._onnx.catalogue import is_node
from polyop._onnx.graph import graphs_of, nodes_in, opset_of
from polyop.errors import PolyopError
from polyop.tensorrt.half import blocked_operators, to_fp16, with_types
from polyop.verifying.differences import Tolerance, difference
from polyop.verifying.rounding import Overflow, bad_constants, name_nodes, names_in, overflows, rounded, with_ranges
from polyop.verifying.sides import Arrays, How, open_side

MAX_RUNS = 300  # of all samples
_MIN_OPSET = 13
_LACKING = {
    True: "polyop's kernel has no half precision",
    False: "ONNX Runtime's converter keeps it in single precision",
}

Loss = Callable[[Sequence[Arrays]], float]
"""Returns how far the results of the samples are from the model's; 0 if they are equal."""


class HalfError(PolyopError):
    """A model cannot be converted to half precision within the limit."""


@dataclass(frozen=True)
class Kept:
    """A node that stays in single precision, and why."""

    node: str
    operator: str
    why: str


@dataclass
class Halved:
    """model: in half precision. loss: of its results, rounded as on a device. runs: of all samples."""

    model: onnx.ModelProto
    kept: list[Kept]
    loss: float
    runs: int
    nodes: int = 0  # that compute in half precision
    casts: int = 0


def prepared(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns a copy with names for all nodes, and without functions: polyop's nodes stay, others' nodes are inlined.

    Raises HalfError if the model is not of float32.
    """
    from onnx.inliner import inline_local_functions

    if opset_of(model) < _MIN_OPSET:
        raise HalfError(f"expected opset {_MIN_OPSET} or newer, got {opset_of(model)}")
    result = onnx.ModelProto()
    result.CopyFrom(model)
    del result.functions[:]
    result.functions.extend(f for f in model.functions if not is_node(f.domain, f.name))
    if result.functions:
        result = inline_local_functions(result)
    for info in (*result.graph.input, *result.graph.output):
        if info.type.tensor_type.elem_type == TensorProto.FLOAT16:
            raise HalfError(f"expected a model in single precision, got '{info.name}' in half precision")
    kinds = {t.data_type for g in graphs_of(result.graph) for t in g.initializer}
    if TensorProto.FLOAT16 in kinds:
        raise HalfError("expected a model in single precision, got weights in half precision")
    name_nodes(result)
    return result


@dataclass
class Halving:
    """model: prepared. measured: the same, perhaps with steps before and after it, which stay in single precision.
    feeds: of the samples. limit: the most that may be lost."""

    model: onnx.ModelProto
    measured: onnx.ModelProto
    feeds: Sequence[Arrays]
    loss: Loss
    limit: float
    step: Callable[[str, int, int], None] = lambda phase, done, steps: None
    runs: int = 0
    _seen: dict[frozenset[str], float] = field(default_factory=dict)

    def run(self) -> Halved:
        blocked = blocked_operators()
        nodes = [n for n in nodes_in(self.model.graph.node) if n.op_type != "Constant"]
        own = set(names_in(self.model.graph.node))
        self._steps = frozenset(name for name in names_in(self.measured.graph.node) if name not in own)
        self._units = [names_in([n]) for n in self.model.graph.node if n.op_type not in (*blocked, "Constant")]
        whole = {name: unit for n in self.model.graph.node for unit in [names_in([n])] for name in unit}
        kept: dict[str, str] = {}
        for overflow in [*self._overflows(), *bad_constants(self.model)]:
            for name in whole.get(overflow.node, ()):  # with the nodes around it: an If is in one precision
                kept.setdefault(name, overflow.why)
        share = self.limit / 2
        while (lost := self._lost(kept)) > self.limit:
            found = self._sensitive(0, len(self._units), frozenset(kept), share)
            if not found:
                share /= 4
                if share < self.limit / 1e4:
                    raise HalfError(
                        f"half precision loses {lost:.3g}, expected at most {self.limit:g}; no nodes were found to keep"
                    )
            kept |= found
        model = to_fp16(self.model, kept)
        operators = {n.name: n.op_type for n in nodes}
        listed = [Kept(name, operators.get(name, ""), why) for name, why in kept.items() if name in operators]
        listed += [
            Kept(n.name, n.op_type, _LACKING[is_node(n.domain, n.op_type)])
            for n in nodes if n.op_type in blocked and n.name not in kept
        ]  # fmt: skip
        casts = sum(n.op_type == "Cast" for n in nodes_in(model.graph.node))
        before = sum(n.op_type == "Cast" for n in nodes)
        return Halved(model, listed, lost, self.runs, _nodes_in_half(model), casts - before)

    def _overflows(self) -> list[Overflow]:
        model, probed = with_ranges(self.measured)
        if not probed:
            raise HalfError("the model computes nothing in single precision")
        side = open_side(model, How())
        self.runs += 1
        return list(overflows(probed, [side.run(feed) for feed in self.feeds]))

    def _lost(self, kept: Collection[str]) -> float:
        """Returns the loss if all but these nodes compute in half precision."""
        key = frozenset(kept)
        if key not in self._seen:
            if self.runs >= MAX_RUNS:
                raise HalfError(
                    f"half precision loses too much in too many nodes: no solution within {MAX_RUNS} runs of the samples",
                    "a larger --loss, or a model that was trained in half precision",
                )
            self.step("calibrating", self.runs, MAX_RUNS)
            self.runs += 1
            side = open_side(rounded(to_fp16(self.measured, key | self._steps)), How())
            self._seen[key] = self.loss([side.run(feed) for feed in self.feeds])
        return self._seen[key]

    def _alone(self, begin: int, end: int, kept: frozenset[str]) -> float:
        """Returns the loss if only these units compute in half precision."""
        others = [name for i, unit in enumerate(self._units) if not begin <= i < end for name in unit]
        return self._lost(kept.union(others))

    def _sensitive(self, begin: int, end: int, kept: frozenset[str], share: float) -> dict[str, str]:
        """Returns the nodes of a range that lose more than `share` alone, and why they are kept."""
        if begin == end or all(name in kept for unit in self._units[begin:end] for name in unit):
            return {}
        lost = self._alone(begin, end, kept)
        if lost <= share:
            return {}
        if end - begin == 1:
            why = f"alone in half precision it loses {lost:.3g}"
            return {name: why for name in self._units[begin] if name not in kept}
        middle = (begin + end) // 2
        found = self._sensitive(begin, middle, kept, share) | self._sensitive(middle, end, kept, share)
        if found:
            return found
        # Neither half loses as much: the loss adds up.
        left, right = self._alone(begin, middle, kept), self._alone(middle, end, kept)
        begin, end, most = (begin, middle, left) if left >= right else (middle, end, right)
        if most > 0:
            return self._sensitive(begin, end, kept, most / 2)
        why = f"with others in half precision it loses {lost:.3g}"
        return {name: why for unit in self._units[begin:end] for name in unit if name not in kept}


def _nodes_in_half(model: onnx.ModelProto) -> int:
    """Returns the number of nodes that read or write values of half precision, without casts."""
    count = 0
    for graph in graphs_of(with_types(model).graph):
        halves = {t.name for t in graph.initializer if t.data_type == TensorProto.FLOAT16}
        infos = (*graph.input, *graph.output, *graph.value_info)
        halves |= {i.name for i in infos if i.type.tensor_type.elem_type == TensorProto.FLOAT16}
        count += sum(n.op_type != "Cast" and not halves.isdisjoint((*n.input, *n.output)) for n in graph.node)
    return count


def tensor_loss(expected: Sequence[Mapping[str, np.ndarray]]) -> Loss:
    """Returns a loss of tensors: the largest error relative to the scale of a tensor, or the share of integers that
    differ. Raises HalfError if no element is a number, which would prove nothing."""
    arrays = [a for of_sample in expected for a in of_sample.values() if isinstance(a, np.ndarray)]
    if not any(np.isfinite(a).any() if a.dtype.kind == "f" else a.size for a in arrays):
        raise HalfError("the results of the samples are empty, NaN or infinite: nothing would be compared")

    def loss(found: Sequence[Arrays]) -> float:
        return max(
            (_apart(got[name], want) for got, of_sample in zip(found, expected, strict=True) for name, want in of_sample.items()),
            default=0.0,
        )  # fmt: skip

    return loss


def _apart(got: object, want: object) -> float:
    found = difference(got, want, Tolerance(0.0, 0.0))
    is_real = isinstance(want, np.ndarray) and want.dtype.kind == "f"
    if found.mismatch or is_real:
        return found.relative()
    return found.differing / found.count if found.count else 0.0
