# SPDX-License-Identifier: Apache-2.0
"""The conditions on sizes of inputs that PyTorch assumed when it captured a program.

Where a program branches on a size, the captured program has the branch that the example's sizes take.
"""

from __future__ import annotations

import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import sympy
import torch
from sympy.logic.boolalg import Boolean
from torch._guards import detect_fake_mode
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv, ShapeGuardPythonPrinter

from polyop._aten.patches import replaced


@dataclass(frozen=True)
class Guard:
    """An assumption on sizes."""

    condition: str
    """Python code in which L['x'].size()[1] is a size of the parameter x."""
    line: str
    """Where the program queried it, as file:line; empty if PyTorch's own code did."""
    is_number: bool = False
    """Whether it says that a size, or what is computed from sizes, is the number that the program made of it. What the
    program does with a number leaves no guards."""


@dataclass
class Queries:
    """What a program asked of sizes while PyTorch captured it."""

    lines: dict[str, str] = field(default_factory=dict)
    """The line of the program that queried a condition first, by the text of the condition."""
    numbers: set[str] = field(default_factory=set)
    """The conditions that are a number which the program made of sizes."""
    texts: dict[str, None] = field(default_factory=dict)
    """The lines of the program that made a text of a size, or looked one up."""


def noting(queries: Queries) -> AbstractContextManager[None]:
    """In a `with` block, notes the lines that ask for conditions on sizes, for numbers and for texts."""

    def evaluate_expr(evaluate: Callable[..., Any], env: ShapeEnv, queried: Any, *args: Any, **given: Any) -> Any:
        before = len(env.guards), len(_deferred(env))
        result = evaluate(env, queried, *args, **given)
        found = [assumed.expr for assumed in chain(env.guards[before[0] :], _deferred(env)[before[1] :])]
        if queried.free_symbols and str(queried) not in queries.lines:
            is_condition = isinstance(queried, Boolean) and not queried.is_Symbol  # symbols are conditions, too
            found += [queried, sympy.Not(queried) if is_condition else sympy.Eq(queried, result)]
            if not is_condition:
                queries.numbers.add(str(found[-1]))
        if new := [text for text in map(str, found) if text not in queries.lines]:
            queries.lines.update(dict.fromkeys(new, line_of_program()))
        return result

    def note(function: Callable[[torch.SymInt], Any], size: torch.SymInt) -> Any:
        stack = ((frame.f_code.co_filename, line) for frame, line in traceback.walk_stack(sys._getframe(1)))
        # What calls it itself: PyTorch and logging make texts of sizes on which nothing depends.
        file, line = next(frame for frame in stack if not frame[0].startswith(_PACKAGE))
        if not (is_pytorchs(file) or (file.startswith(_STANDARD_LIBRARY) and "site-packages" not in file)):
            queries.texts[f"{file}:{line}"] = None
        return function(size)

    return replaced({
        "torch:SymInt.__repr__": note,
        "torch:SymInt.__hash__": note,
        "torch.fx.experimental.symbolic_shapes:ShapeEnv.evaluate_expr": evaluate_expr,
    })  # fmt: skip


def guards_of(program: torch.export.ExportedProgram, queries: Queries) -> list[Guard]:
    """Returns the guards of a program that torch.export has just captured. Later passes lose them."""
    mode = detect_fake_mode([node.meta.get("val") for node in program.graph.nodes])
    return list(_guards(mode.shape_env, queries)) if mode is not None and mode.shape_env is not None else []


def guards_of_failure(error: BaseException, queries: Queries) -> list[Guard]:
    """Returns the guards of a capture that raised an error."""
    for cause in causes(error):
        for frame, _ in traceback.walk_tb(cause.__traceback__):
            for value in list(frame.f_locals.values()):
                env = value.shape_env if isinstance(value, FakeTensorMode) else None
                if env is not None and (guards := list(_guards(env, queries))):
                    return guards
    return []


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yields an error, what caused it, and so on."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def _deferred(env: ShapeEnv) -> list[Any]:
    """Returns the conditions that the program would check when it runs; a file does not."""
    return env.deferred_runtime_asserts.get(None, [])


def _guards(env: ShapeEnv, queries: Queries) -> Iterator[Guard]:
    printer = ShapeGuardPythonPrinter(env.var_to_sources, lambda source: source.name, env.var_to_sources)
    for expr in [assumed.expr for assumed in chain(env.guards, _deferred(env))] + list(_limits(env)):
        if expr.free_symbols and expr.free_symbols <= env.var_to_sources.keys():
            line = queries.lines.get(str(expr), "") or _line_of_equal(expr, env, queries.lines)
            yield Guard(printer.doprint(expr), line, str(expr) in queries.numbers)


def _line_of_equal(expr: Any, env: ShapeEnv, lines: Mapping[str, str]) -> str:
    """Returns the line by which another size became constant that equals this one; empty for other conditions."""
    if not isinstance(expr, sympy.Eq) or not expr.rhs.is_Integer:
        return ""
    equal = (size for size in env.replacements if expr.lhs in (size, env.replacements[size]))
    return next(filter(None, (lines.get(str(sympy.Eq(size, expr.rhs)), "") for size in equal)), "")


def _limits(env: ShapeEnv) -> Iterator[Any]:
    """Yields the limits of sizes, and the sizes that became constant: PyTorch keeps such conditions in this form."""
    for size in env.var_to_sources:
        if size in env.replacements:
            yield sympy.Eq(size, env.replacements[size])
        elif size in env.var_to_range:
            limits = env.var_to_range[size]
            if limits.lower == limits.upper:
                yield sympy.Eq(size, limits.lower)
                continue
            if limits.lower > 1:
                yield sympy.Ge(size, limits.lower)
            if limits.upper < sys.maxsize - 1:
                yield sympy.Le(size, limits.upper)


def line_of_program() -> str:
    """Returns the line of the program that is being captured; empty if it has none outside of PyTorch."""
    frames = []
    for frame, line in traceback.walk_stack(sys._getframe(1)):
        file = frame.f_code.co_filename
        if file.startswith(_CAPTURE):
            break
        frames.append((file, str(line)))
    return line_of(frames[::-1])


def is_pytorchs(file: str) -> bool:
    """Says whether a file is PyTorch's, polyop's or generated code, and not of the program that is captured."""
    return "/torch/" in file or file.startswith((_PACKAGE, "<"))


def line_of(frames: Sequence[tuple[str, str]]) -> str:
    """Returns the innermost of the frames outside of PyTorch and polyop, as file:line, and the line of the user's own
    code that led to it, if the innermost is an installed package's. Empty if there is none."""
    users = [f for f in frames if not is_pytorchs(f[0])]
    if not users:
        return ""
    own = next((f for f in reversed(users) if not f[0].startswith(_INSTALLED)), users[-1])
    text = ":".join(users[-1])
    return text if own == users[-1] else f"{text}, called from {':'.join(own)}"


_PACKAGE = str(Path(__file__).parents[1])
_CAPTURE = str(Path(__file__).parents[1] / "_torch")  # called by the exporter, calls PyTorch's capture
_STANDARD_LIBRARY = sysconfig.get_path("stdlib") + "/"
_INSTALLED = tuple({sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), sysconfig.get_path("stdlib")})
