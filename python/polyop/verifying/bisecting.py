# SPDX-License-Identifier: Apache-2.0
"""Finds the first node whose output differs between two sides.

If an output of a run differs and the values that it was computed from agree, the fault is between them. A search halves
the nodes between: it makes the values of a few of them outputs and compares. Nodes above a value that agrees are
cleared, those that are not above one that differs, too. At the end the inputs of the node that was found are compared
themselves, because a difference may vanish on its way: if one differs, the search goes on above it.

A run has at most PROBES + 1 outputs, whatever the size of the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from polyop._onnx.graph import subgraphs_of
from polyop.errors import PolyopError, one_line
from polyop.verifying.differences import Difference, Tolerance, difference
from polyop.verifying.networks import Network, Pairs, captured, input_like, like, pair
from polyop.verifying.sides import Arrays, How, open_side

PROBES = 4
_MAX_LIMIT = 0.01  # what differs by more of its scale differs, however far the end is off


class BisectError(PolyopError):
    """The two sides cannot be searched."""


@dataclass
class Sides:
    """Both sides of a graph. limit: what a tensor may differ, relative to its scale; atol: and as it is. outputs: what
    the search starts from, pairs of which a difference in shape is a difference.

    Values have our names.
    """

    ours: Network
    theirs: Network
    hows: tuple[How, How]
    feeds: Arrays
    atol: float
    limit: float = 0.0
    runs: int = 0
    outputs: Collection[str] = ()
    pairs: Pairs = field(init=False)

    def __post_init__(self) -> None:
        self.pairs = pair(self.ours, self.theirs)
        names = zip(self.ours.inputs, self.theirs.inputs, strict=False)
        if len(self.ours.inputs) == len(self.theirs.inputs):  # by position where names differ
            self.feeds = {**{b: self.feeds[a] for a, b in names if a in self.feeds}, **self.feeds}

    def values(self, names: Sequence[str]) -> tuple[Arrays, Arrays]:
        """Runs both sides. Returns tensors of each."""
        self.runs += 1
        ours = self._run(self.ours, list(names), self.hows[0])
        theirs = self._run(self.theirs, [self._pair(name) for name in names], self.hows[1])
        return ours, {name: theirs[self._pair(name)] for name in names}

    def differences(self, names: Sequence[str]) -> dict[str, float]:
        """Returns how far tensors are apart, relative to their scales; infinite for what has no measure, and NaN for
        what cannot be compared."""
        ours, theirs = self.values(names)
        return {name: self._apart(name, ours[name], theirs[name]) for name in names}

    def differs(self, apart: float) -> bool:
        return apart > self.limit

    def _pair(self, name: str) -> str:
        return self.pairs.of.get(name, name)

    def _apart(self, name: str, got: object, want: object) -> float:
        found = difference(got, want, Tolerance(0.0, self.atol))
        if found.mismatch and name not in self.outputs and not self.pairs.same and not self._is_one_operator(name):
            return float("nan")  # perhaps no pair
        return apart(found, got, self.atol)

    def _is_one_operator(self, name: str) -> bool:
        if name not in self.ours.producer or self._pair(name) not in self.theirs.producer:
            return True
        a, b = self.ours.nodes[self.ours.producer[name]], self.theirs.nodes[self.theirs.producer[self._pair(name)]]
        return a.op_type == b.op_type

    def _run(self, network: Network, names: Sequence[str], how: How) -> Arrays:
        given = {name: network.as_input(name, self.feeds[name]) for name in names if name in network.inputs}
        requested = [name for name in dict.fromkeys(names) if name not in given]
        if not requested:
            return given
        side = open_side(network.with_outputs(requested), how, network.folder)
        missing = [name for name in side.inputs if name not in self.feeds]
        if missing:
            raise BisectError(f"no value for the input '{missing[0]}'")
        return {**given, **side.run(self.feeds)}


def apart(found: Difference, got: object, atol: float) -> float:
    """Returns how far two tensors are apart, relative to the scale. Integers are equal or not."""
    is_real = isinstance(got, np.ndarray) and (got.dtype.kind == "f" or got.dtype.name == "bfloat16")
    return float("inf") if found.differing and not is_real else found.relative(atol)


@dataclass(frozen=True)
class Found:
    """The first difference.

    path: the nodes around it, such as "If 'a', then_branch". nodes: of the part, in our graph. apart: how far the
    tensor is off at its place; of_inputs: its input that is off most; alone: how far it is off in the part alone, from
    the reference's inputs.
    """

    path: tuple[str, ...]
    tensor: str
    nodes: tuple[str, ...]
    apart: float
    of_inputs: float
    alone: float
    parts: tuple[onnx.ModelProto, onnx.ModelProto]
    folders: tuple[Path | None, Path | None]
    feeds: Arrays
    by_position: bool
    unseen: tuple[str, ...]  # tensors that change what is computed, or fail, as outputs


class Search:
    def __init__(self, sides: Sides) -> None:
        self.sides = sides
        self.known: dict[str, float] = {}
        self.unseen: dict[str, None] = {}

    def run(self, outputs: Sequence[str]) -> Found | None:
        """Returns the first difference above one of these outputs, or None if none differs by more than the limit."""
        sides = self.sides
        differing = [name for name in outputs if self._look([name]) and sides.differs(self.known[name])]
        differing = [name for name in differing if name in sides.ours.producer]
        if not differing:
            return None
        bad = min(differing, key=lambda name: sides.ours.above(name).bit_count())
        seen = {bad}
        while True:
            bad = self._narrow(bad)
            above = self._inputs_that_differ(bad)
            if above is None or above in seen:
                return self._inner(self._found(bad))
            bad = above
            seen.add(bad)

    def _narrow(self, bad: str) -> str:
        """Returns a tensor that differs, above which nothing is known to differ."""
        network, cleared = self.sides.ours, 0
        while probes := self._probes(bad, cleared):
            if not self._look([*probes, bad]):
                continue
            if not self.sides.differs(self.known[bad]):  # fused nodes are computed otherwise if one can be seen
                self._apart_from(bad, probes)
                continue
            differing = [name for name in probes if self.sides.differs(self.known[name])]
            for name in probes:
                if name not in differing:
                    cleared |= network.above(name)
            if differing:
                bad = min(differing, key=lambda name: network.above(name).bit_count())
        return bad

    def _probes(self, bad: str, cleared: int) -> list[str]:
        """Returns a few tensors that divide the nodes above `bad` that are not cleared."""
        network = self.sides.ours
        open_ = network.above(bad) & ~cleared & ~(1 << network.producer[bad])
        candidates = []
        for name in self.sides.pairs.of:
            index = network.producer[name]
            if name == bad or name in self.unseen or not open_ >> index & 1:
                continue
            if (apart := self.known.get(name)) is not None and not self.sides.differs(apart):
                continue  # its ancestors count as open again: `bad` moved
            candidates.append(((network.above(name) & open_).bit_count(), index, name))
        candidates.sort()
        if len(candidates) <= PROBES:
            return [name for *_, name in candidates]
        total = candidates[-1][0]
        chosen: dict[str, None] = {}
        for k in range(1, PROBES + 1):
            at = next(i for i, (count, *_) in enumerate(candidates) if count >= total * k / (PROBES + 1))
            chosen[candidates[at][-1]] = None
        return list(chosen)

    def _look(self, names: Sequence[str]) -> bool:
        """Compares tensors. What fails, or has no partner of its kind, is never looked at again; returns False then."""
        try:
            found = self.sides.differences(names)
        except Exception as error:  # runtimes' own types are not public
            if len(names) == 1:
                self.unseen[names[0]] = None
                if not self.known:
                    raise BisectError(f"'{names[0]}': {one_line(error)}") from error
                return False
            complete = [self._look([name]) for name in names]
            return all(complete)
        for name, value in found.items():
            if np.isnan(value):
                self.unseen[name] = None
            else:
                self.known[name] = value
        return not any(np.isnan(value) for value in found.values())

    def _apart_from(self, bad: str, probes: Sequence[str]) -> None:
        """Finds which of the probes make the difference vanish, and does not look at these again."""
        for name in probes:
            self.known.pop(name, None)
            if not self._look([name, bad]) or not self.sides.differs(self.known[bad]):
                self.unseen[name] = None
                self.known.pop(name, None)
        self.known[bad] = float("inf")

    # ---- The part ----

    def _stops(self, distance: int, bad: str) -> set[str]:
        """Returns the tensors at which the part above `bad` ends: those of nodes at least this far before it."""
        network = self.sides.ours
        last = network.producer[bad]
        return {
            name
            for name in self.sides.pairs.of
            if name not in self.unseen and name != bad and network.producer[name] <= last - distance
        }

    def _reads(self, bad: str, stops: set[str]) -> list[str]:
        """Returns what both sides' parts read, by our names."""
        pairs = self.sides.pairs.of
        _, ours = self.sides.ours.cone([bad], stops)
        _, theirs = self.sides.theirs.cone([pairs.get(bad, bad)], {pairs[name] for name in stops})
        own = {pairs[name]: name for name in stops}
        inputs = dict(zip(self.sides.theirs.inputs, self.sides.ours.inputs, strict=False))
        inputs |= {name: name for name in self.sides.ours.inputs}
        return list(dict.fromkeys([*ours, *(own.get(name) or inputs[name] for name in theirs)]))

    def _inputs_that_differ(self, bad: str) -> str | None:
        """Returns a tensor right above `bad` that differs, or None."""
        read = [name for name in self._reads(bad, self._stops(0, bad)) if name in self.sides.ours.producer]
        open_ = [name for name in read if name not in self.known]
        for i in range(0, len(open_), PROBES + 1):
            self._look(open_[i : i + PROBES + 1])
        differing = [name for name in read if self.sides.differs(self.known.get(name, 0.0))]
        return min(differing, key=lambda name: self.sides.ours.above(name).bit_count(), default=None)

    def _found(self, bad: str) -> Found:
        """Returns the smallest part before `bad` that differs alone, or that of the node itself."""
        sides, smallest = self.sides, None
        distance, last = 0, sides.ours.producer[bad]
        while True:
            found = self._part(bad, self._stops(distance, bad))
            smallest = smallest or found
            if sides.differs(found.alone) or distance > last:
                return found if sides.differs(found.alone) else smallest
            distance = max(1, 2 * distance)

    def _part(self, bad: str, stops: set[str]) -> Found:
        sides, pairs = self.sides, self.sides.pairs.of
        read = self._reads(bad, stops)
        ours, theirs = self._values(read)
        same = {name: _as(theirs[name], ours[name]) for name in read}  # the reference's values, in our types
        their_feeds = {pairs.get(name, name): theirs[name] for name in read}
        if len(sides.ours.inputs) == len(sides.theirs.inputs):
            names = dict(zip(sides.ours.inputs, sides.theirs.inputs, strict=True))
            their_feeds |= {names[name]: theirs[name] for name in read if name in names}
        parts = (
            sides.ours.part([bad], stops, same),
            sides.theirs.part([pairs.get(bad, bad)], {pairs[name] for name in stops}, their_feeds),
        )
        indices, _ = sides.ours.cone([bad], stops)
        folders = (sides.ours.folder, sides.theirs.folder)
        got, want = (
            open_side(part, how, folder).run(feeds)
            for part, how, folder, feeds in zip(parts, sides.hows, folders, (same, their_feeds), strict=True)
        )
        left, right = got[bad], want[pairs.get(bad, bad)]
        return Found(
            (), bad, tuple(map(sides.ours.text, indices)), self.known[bad],
            max((self.known.get(name, 0.0) for name in read), default=0.0),
            apart(difference(left, right, Tolerance(0.0, sides.atol)), left, sides.atol),
            parts, folders, {**their_feeds, **same}, bad in sides.pairs.by_position, tuple(self.unseen),
        )  # fmt: skip

    def _values(self, names: Sequence[str]) -> tuple[Arrays, Arrays]:
        """Returns the values of both sides, a few in each run."""
        ours: Arrays = {}
        theirs: Arrays = {}
        for i in range(0, len(names), PROBES + 1):
            for into, some in zip((ours, theirs), self.sides.values(names[i : i + PROBES + 1]), strict=True):
                into.update(some)
        return ours, theirs

    # ---- If, Loop, Scan and functions ----

    def _inner(self, found: Found) -> Found:
        """Returns the first difference inside of the node that was found, or `found` if there is none to name."""
        if len(found.nodes) != 1 or not self.sides.differs(found.alone):
            return found
        try:
            opened = _opened(found, self.sides)
        except Exception:  # the inside does not run alone: sequences, runtimes' own limits
            return found
        if opened is None:
            return found
        where, inner = opened
        try:
            deeper = Search(inner).run(inner.ours.outputs)
        except Exception:  # as above
            deeper = None
        self.sides.runs += inner.runs
        if deeper is None or not inner.differs(deeper.alone):
            return found
        return replace(deeper, path=(where, *deeper.path))


def _as(value: np.ndarray, kind: np.ndarray) -> np.ndarray:
    return value if value.dtype == kind.dtype else value.astype(kind.dtype)


def _opened(found: Found, sides: Sides) -> tuple[str, Sides] | None:
    """Returns what is inside of the only node of a part, as both sides compute it."""
    networks = [Network(part, folder) for part, folder in zip(found.parts, found.folders, strict=True)]
    nodes = [network.nodes[-1] for network in networks]
    if len(networks[1].nodes) != 1 or nodes[0].op_type != nodes[1].op_type:
        return None
    text, kind = networks[0].text(0), nodes[0].op_type
    feeds = {name: found.feeds[name] for network in networks for name in network.inputs}
    if any(
        (f.domain, f.name) == (n.domain, n.op_type)
        for part, n in zip(found.parts, nodes, strict=True)
        for f in part.functions
    ):
        inner, where = [_inlined(network) for network in networks], f"function {text}"
    elif kind == "If":
        condition = _value(networks[0], nodes[0].input[0], feeds)
        branch = "then_branch" if bool(condition) else "else_branch"
        inner, where = [_graph(n, branch, feeds, {}) for n in networks], f"{text}, {branch}"
    elif kind in ("Loop", "Scan"):
        repeated = _looped(networks, feeds) if kind == "Loop" else _scanned(networks, feeds)
        return _iteration(networks, feeds, sides, repeated) if repeated is not None else None
    else:
        return None
    return where, Sides(inner[0], inner[1], sides.hows, feeds, sides.atol, sides.limit)


def _inlined(network: Network) -> Network:
    from onnx.inliner import inline_local_functions

    return Network(inline_local_functions(network.model), network.folder)


def _value(network: Network, name: str, feeds: Mapping[str, np.ndarray]) -> np.ndarray:
    if name in feeds:
        return feeds[name]
    tensor = network.initializer(name)
    if tensor is None:
        raise BisectError(f"'{name}' has no value")
    return numpy_helper.to_array(tensor, str(network.folder or ""))


def _graph(network: Network, attribute: str, feeds: Mapping[str, np.ndarray], given: Arrays) -> Network:
    """Returns a subgraph of the only node as a model. given: the values of the subgraph's inputs."""
    node = network.nodes[-1]
    graph = onnx.GraphProto()
    graph.CopyFrom(next(a.g for a in node.attribute if a.name == attribute))
    outside = captured(graph)
    del graph.input[:]
    graph.input.extend(input_like(name, array) for name, array in given.items())
    for name in outside:
        tensor = network.initializer(name)
        if tensor is None:
            graph.input.append(input_like(name, feeds[name]))
        else:
            graph.initializer.append(tensor)
    return Network(like(network.model, graph), network.folder)


_COUNT = "polyop:count"


@dataclass(frozen=True)
class _Repeated:
    """A Loop or a Scan that can stop early. networks: with inputs for that. most: the number of iterations. stop: the
    values of these inputs for the first iterations. states: how many there are; initial: their inputs. each: what the
    body of a network gets in an iteration, but for the states, before and after them."""

    networks: tuple[Network, Network]
    most: int
    stop: Callable[[int], Arrays]
    states: int
    initial: Sequence[str]
    each: Callable[[Network, int], tuple[Sequence[np.ndarray], Sequence[np.ndarray]]]


def _looped(networks: Sequence[Network], feeds: Arrays) -> _Repeated:
    initial = networks[0].nodes[-1].input[2:]
    return _Repeated(
        (_counted(networks[0]), _counted(networks[1])),
        _trips(networks[0], feeds),
        lambda count: {_COUNT: np.array(count, np.int64)},
        len(initial),
        initial,
        lambda network, i: ([np.array(i, np.int64), np.array(True)], []),
    )


def _scanned(networks: Sequence[Network], feeds: Arrays) -> _Repeated | None:
    """Returns None for other axes than the first, other directions than forward, and constants that are scanned."""
    of = {id(network): _scanned_inputs(network) for network in networks}
    names = {name for inputs in of.values() for name in inputs}
    node = networks[0].nodes[-1]
    if not names <= set(feeds) or any(any(a.ints) for n in networks for a in n.nodes[-1].attribute):
        return None
    states = len(node.input) - len(of[id(networks[0])])
    return _Repeated(
        (_with_any_length(networks[0], names), _with_any_length(networks[1], names)),
        min(len(feeds[name]) for name in names),
        lambda count: {name: feeds[name][:count] for name in names},
        states,
        node.input[:states],
        lambda network, i: ([], [feeds[name][i] for name in of[id(network)]]),
    )


def _scanned_inputs(network: Network) -> Sequence[str]:
    node = network.nodes[-1]
    return node.input[-next(a.i for a in node.attribute if a.name == "num_scan_inputs") :]


def _with_any_length(network: Network, names: Collection[str]) -> Network:
    model = onnx.ModelProto()
    model.CopyFrom(network.model)
    for info in model.graph.input:
        if info.name in names:
            info.type.tensor_type.shape.dim[0].Clear()
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in model.graph.node[-1].output if name)
    return Network(model, network.folder)


def _iteration(
    networks: Sequence[Network], feeds: Arrays, sides: Sides, repeated: _Repeated
) -> tuple[str, Sides] | None:
    """Returns the body of a Loop or a Scan with the values of the first iteration after which it differs."""
    both = Sides(*repeated.networks, sides.hows, dict(feeds), sides.atol, sides.limit)
    node = networks[0].nodes[-1]
    outputs = [name for name in node.output if name]

    def differs(count: int) -> bool:
        both.feeds |= repeated.stop(count)
        return any(both.differs(value) for value in both.differences(outputs).values())

    high = 1
    while not differs(high):
        if high >= repeated.most:
            return None
        high = min(2 * high, repeated.most)
    low = high // 2
    while high - low > 1:  # equal after `low` iterations
        middle = (low + high) // 2
        low, high = (low, middle) if differs(middle) else (middle, high)
    both.feeds |= repeated.stop(high - 1)
    states = [name for name in node.output[: repeated.states] if name]
    if len(states) < repeated.states:
        return None  # a state that nobody reads has no name
    _, reached = both.values(states) if high > 1 and states else ({}, {})
    carried = [
        reached[n] if high > 1 else _value(networks[0], i, feeds) for n, i in zip(states, repeated.initial, strict=True)
    ]
    inner, of_all = [], dict(feeds)
    for network in networks:
        body = next(g for g in subgraphs_of(network.nodes[-1]))
        before, after = repeated.each(network, high - 1)
        given = {i.name: array for i, array in zip(body.input, [*before, *carried, *after], strict=True)}
        inner.append(_graph(network, "body", feeds, given))
        of_all |= given
    sides.runs += both.runs
    where = f"{networks[0].text(len(networks[0].nodes) - 1)}, iteration {high - 1}"
    return where, Sides(inner[0], inner[1], sides.hows, of_all, sides.atol, sides.limit)


def _counted(network: Network) -> Network:
    """Returns the Loop with an input for the number of iterations."""
    model = onnx.ModelProto()
    model.CopyFrom(network.model)
    node = model.graph.node[-1]
    node.input[0] = _COUNT
    model.graph.input.append(helper.make_tensor_value_info(_COUNT, onnx.TensorProto.INT64, []))
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in node.output if name)
    return Network(model, network.folder)


def _trips(network: Network, feeds: Mapping[str, np.ndarray]) -> int:
    name = network.nodes[-1].input[0]
    return min(int(_value(network, name, feeds)) if name else 1 << 30, 1 << 30)


def bisect(sides: Sides, outputs: Sequence[str], rtol: float) -> tuple[Found | None, Search]:
    """Returns the first difference above these outputs, or None if they differ by rounding alone.

    A tensor differs if it is off by more than `limit` of its scale: at least `rtol`, else a quarter of what the outputs
    are off, up to 1 %. So a search from an output that is off by half of its scale does not end at the rounding of f16.
    """
    search = Search(sides)
    sides.limit, sides.outputs = rtol, outputs
    for i in range(0, len(outputs), PROBES + 1):
        search._look(outputs[i : i + PROBES + 1])
    worst = max((search.known.get(name, 0.0) for name in outputs), default=0.0)
    sides.limit = max(rtol, min(worst / 4, _MAX_LIMIT))
    return search.run(outputs), search
