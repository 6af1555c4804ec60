# SPDX-License-Identifier: Apache-2.0
"""The fake kernels, which torch.compile and the exporters run before there is data, agree with real calls: shapes,
types, errors.

The calls are those of exported_nodes, with extents, types, ranks and attributes changed at random.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

import polyop.functional
from polyop._torch.operators import OPERATORS, Operator
from polyop._torch.shapes import TYPES
from tests.support.torch_calls import CALLS, as_tuple, call_of, name_of, one_per_operator_is_quick
from tests.support.wrong_calls import WRONG, Wrong

CHANGES = 20  # of each kind, per call
# The errors that a fake kernel must report. It cannot know those that depend on values or on rules outside the
# signature.
DOOR = re.compile(
    r": expected rank|: expected dimension|expected a scalar| as in '|no kernel takes|do not broadcast|element type"
    r"|dimensions, got"
)

YES_OR_NO = {
    "onnx_nms",
    "indice_conv",
    "selective_scan",
}  # operators whose only attributes are flags that accept any number

Args = list[Any]


def flat(args: Args) -> list[torch.Tensor]:
    return [t for a in args if a is not None for t in (a if isinstance(a, list) else [a])]


def mapped(args: Args, change: Any) -> Args:
    """Applies `change` to every tensor, with its index."""
    numbers = iter(range(100))
    return [
        None
        if a is None
        else [change(next(numbers), t) for t in a]
        if isinstance(a, list)
        else change(next(numbers), a)
        for a in args
    ]


def resized(t: torch.Tensor, shape: list[int]) -> torch.Tensor:
    """Returns the values of `t` in another shape, repeated or cut."""
    count = math.prod(shape)
    if t.numel() == 0:
        return t.new_zeros(shape)
    return t.reshape(-1).repeat(-(-count // t.numel()) or 1)[:count].reshape(shape)


def run(operator: Operator, args: Args, given: dict[str, Any]) -> tuple[torch.Tensor, ...] | str:
    """Returns the outputs, or the text of the error."""
    try:
        return as_tuple(operator.overload(*args, **given))
    except (RuntimeError, ValueError) as error:
        return str(error).split("\n")[0]


def run_fake(operator: Operator, args: Args, given: dict[str, Any], symbols: bool) -> Any:
    """Like `run`, on tensors without data. With `symbols`, the extents of inputs are unknown too."""
    env = ShapeEnv()
    mode = FakeTensorMode(shape_env=env)

    def fake(number: int, t: torch.Tensor) -> torch.Tensor:
        context = StatelessSymbolicContext([DimDynamic.DYNAMIC if symbols else DimDynamic.STATIC] * t.ndim)
        return mode.from_tensor(t, symbolic_context=context)

    with mode:
        return run(operator, mapped(args, fake), given)


def compare(operator: Operator, args: Args, given: dict[str, Any], symbols: bool) -> str:
    """Compares the real and the fake call. Returns "valid", "refused", or "refused by the kernel"."""
    real, fake = run(operator, args, given), run_fake(operator, args, given, symbols)
    if isinstance(real, str):
        if isinstance(fake, str):
            assert fake == real
            return "refused"
        assert not DOOR.search(real), f"only the real call says: {real}"
        return "refused by the kernel"
    assert not isinstance(fake, str), f"only the fake call says: {fake}"
    assert len(fake) == len(real)
    for f, r in zip(fake, real, strict=True):
        assert f.dtype == r.dtype
        assert f.dim() == r.dim()
        for symbol, extent in zip(f.shape, r.shape, strict=True):
            if isinstance(symbol, int):
                assert symbol == extent
            elif symbol.node.has_hint():
                assert int(symbol.node.hint) == extent
            else:  # computed by the kernel, or determined by a value
                bounds = symbol.node.shape_env.bound_sympy(symbol.node.expr)
                assert bounds.lower <= extent <= bounds.upper
    return "valid"


@pytest.mark.parametrize("symbols", [False, True], ids=["numbers", "symbols"])
@pytest.mark.parametrize("node", one_per_operator_is_quick(CALLS))
def test_changed_extents(node: Any, symbols: bool) -> None:
    operator, args, given = call_of(node)
    assert compare(operator, args, given, symbols) == "valid"
    choose = random.Random(0)
    went: Counter[str] = Counter()
    extents = sorted({extent for t in flat(args) for extent in t.shape})
    for _ in range(CHANGES // 2 if symbols else CHANGES):
        old, new = choose.choice(extents or [1]), choose.choice([0, 1, 2, 3, 5, 8])
        everywhere = choose.random() < 0.5  # change all extents of this size: the signature may use one name for them
        one = choose.randrange(len(flat(args)))

        def change(
            number: int, t: torch.Tensor, old: int = old, new: int = new, one: int = one, all_: bool = everywhere
        ):
            if not all_ and number != one:
                return t
            return resized(t, [new if extent == old else extent for extent in t.shape])

        went[compare(operator, mapped(args, change), given, symbols)] += 1
    assert went["valid"] + went["refused"] >= went["refused by the kernel"], went
    assert went["valid"] >= 1, went


@pytest.mark.parametrize("node", CALLS, ids=name_of)
def test_wrong_types_and_ranks(node: Any) -> None:
    operator, args, given = call_of(node)
    choose = random.Random(1)
    went: Counter[str] = Counter()
    types = [*TYPES.values(), torch.complex64, torch.uint16]
    for i in range(CHANGES):
        one, dtype, rank = choose.randrange(len(flat(args))), choose.choice(types), choose.choice([0, 1, 2, 3, 4, 5, 9])

        def change(number: int, t: torch.Tensor, i: int = i, one: int = one, dtype: Any = dtype, rank: int = rank):
            if number != one:
                return t
            return t.to(dtype) if i % 2 else resized(t, [*([1] * 9), *t.shape][-rank:] if rank else [])

        went[compare(operator, mapped(args, change), given, symbols=i % 4 > 1)] += 1
    assert went["refused"] >= CHANGES // 4, went


@pytest.mark.parametrize("operator", [o for o in OPERATORS.values() if o.attributes], ids=lambda o: o.name)
def test_wrong_attributes(operator: Operator) -> None:
    _, args, good = next(call for call in map(call_of, CALLS) if call[0] is operator)
    refused = 0
    for attribute in operator.attributes:
        kind = "choice" if attribute["choices"] else attribute["type"]
        wrong = {
            "choice": ["", "nonsense"],
            "int": [-(10**9), 10**6],
            "float": [math.nan, math.inf, -math.inf, -1e30],
            "ints": [[], [1] * 9, [-1], [0]],
            "floats": [[], [1.0] * 99, [math.nan], [-1.0]],
        }[kind]
        for value in wrong:
            given = {**good, attribute["name"]: value}
            real = run(operator, args, given)
            fake = run_fake(operator, args, given, symbols=False)
            if isinstance(real, str):
                assert fake == real
                refused += f"attribute '{attribute['name']}'" in real
            else:
                assert not isinstance(fake, str)
    assert refused >= 1 or operator.name in YES_OR_NO


def test_covers_every_operator() -> None:
    assert {call_of(node)[0].name for node in CALLS} == set(OPERATORS)


def test_outputs_of_one_size_share_a_symbol() -> None:
    """Outputs with the same data-dependent size have the same symbol."""
    with FakeTensorMode(shape_env=ShapeEnv()):
        dets, keep = polyop.soft_nms(torch.rand(5, 4), torch.rand(5))
        assert dets.shape[0] is keep.shape[0] or dets.shape[0].node.expr == keep.shape[0].node.expr
        count = torch.empty((), dtype=torch.int64)
        index, dist = polyop.knn_query(count, torch.rand(7, 3), torch.empty(1, dtype=torch.int32))
        assert index.shape[1].node.expr == dist.shape[1].node.expr


def test_extents_that_must_be_equal_are_specialised() -> None:
    """A program that is compiled for dynamic sizes refuses a call with unequal extents."""

    def suppress(boxes: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        return polyop.nms(boxes, scores, 0.5)

    compiled = torch.compile(suppress, backend="aot_eager", fullgraph=True, dynamic=True)
    for count in (4, 9):
        boxes = torch.rand(count, 4)
        assert compiled(boxes, torch.ones(count)).shape == suppress(boxes, torch.ones(count)).shape
    with pytest.raises(
        Exception, match=r"'scores': expected dimension 0 to be N = 7 as in 'boxes', got 6 \(shape \[6\] for \[N\]\)"
    ):
        compiled(torch.rand(7, 4), torch.ones(6))


def test_outputs_are_on_the_device_of_the_features() -> None:
    """An input that holds a size is read on the CPU, whatever the device of the others."""
    with FakeTensorMode(shape_env=ShapeEnv()):
        points, ends = torch.rand(7, 3, device="meta"), torch.ones(1, dtype=torch.int32, device="meta")
        index, dist = polyop.knn_query(torch.tensor(3), points, ends)
    assert (index.device.type, dist.device.type) == ("meta", "meta")


@pytest.mark.parametrize("wrong", [w for w in WRONG if "torch" not in w.not_in], ids=lambda w: w.what)
def test_rejects_what_every_runtime_rejects(wrong: Wrong) -> None:
    tensors = [torch.from_numpy(array) for array in wrong.inputs]
    operator = OPERATORS[wrong.operator]
    variadic = operator.inputs[-1].variadic
    args = [*tensors[: len(operator.inputs) - 1], tensors[len(operator.inputs) - 1 :]] if variadic else tensors
    real = run(operator, args, wrong.attributes)
    assert isinstance(real, str)
    assert run_fake(operator, args, wrong.attributes, symbols=False) == real
