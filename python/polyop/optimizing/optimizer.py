"""The way of a model through the patterns and checks."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir

from polyop.optimizing import files
from polyop.optimizing.checking import Verdict, allowed, check, needed
from polyop.optimizing.cost import pays
from polyop.optimizing.errors import OptimizeError, said
from polyop.optimizing.inputs import candidates, has_dynamic_sizes, model_inputs
from polyop.optimizing.matching import Match
from polyop.optimizing.patterns import Pattern, all_patterns
from polyop.optimizing.replacing import clean, replace
from polyop.optimizing.report import Finding, Report
from polyop.optimizing.running import Feeds, Runner, give_back, largest_difference, time_in_turns
from polyop.optimizing.scope import Scope
from polyop.portable import add_functions

Step = Callable[[str, int, int], None]

# Tensors that matches are compared on are in memory together up to so many elements, or those of one match.
_MOST_ELEMENTS = 32 << 20


@dataclass(frozen=True)
class Options:
    """all: also what is too small to gain; allow_fix: also where ONNX Runtime computes what the standard does not say;
    tolerance: of the whole model's outputs, in proportion to the largest value of each."""

    all: bool = False
    allow_fix: bool = False
    measure: bool = False
    tolerance: float = 1e-3
    inputs: Mapping[str, np.ndarray] = field(default_factory=dict)
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)


def optimize(
    model: str | Path | onnx.ModelProto,
    output: str | Path | None = None,
    *,
    inputs: Mapping[str, np.ndarray] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    all: bool = False,
    allow_fix: bool = False,
    measure: bool = False,
    tolerance: float = 1e-3,
    threads: int = 0,
    libraries: Sequence[str] = (),
    progress: Step = lambda phase, done, steps: None,
) -> Report:
    """Replaces what polyop computes faster by polyop's nodes, each checked against what it replaces.

    output: where the model goes; without it the report has it, as `model`, its tensors outside of it where they were.
    inputs, shapes: what the model is run with; made up where nothing is given.
    all: also replaces what is too small to gain. allow_fix: also replaces where ONNX Runtime departs from the standard.
    measure: also times each replacement and the model, by turns.
    tolerance: of the whole model's outputs, in proportion to the largest value of each.
    threads: of ONNX Runtime; 0: all cores. libraries: of other custom operators that the model needs.
    Raises OptimizeError if the model cannot be read, run or written; then nothing has been written.
    """
    if output is not None:
        files.check_writable(Path(output))
    options = Options(all, allow_fix, measure, tolerance, inputs or {}, shapes or {})
    with tempfile.TemporaryDirectory(prefix="polyop-") as folder:
        work = _Work(files.Source(model, Path(folder)), options, threads, tuple(libraries), progress)
        made, report = work.run()
        if output is None:
            ir.external_data.load_to_model(made)
            report.model = ir.to_proto(made)
            return report
        output = Path(output)
        if report.replaced or work.source.path is None:
            files.save(made, output, work.source, progress)
        else:
            files.copy(work.source, output)
        report.bytes_after = output.stat().st_size
        return report


class _Work:
    def __init__(
        self, source: files.Source, options: Options, threads: int, libraries: tuple[str, ...], step: Step
    ) -> None:
        self.source, self.options, self.step = source, options, step
        step("reading", 0, 1)
        self.original = source.load()
        step("reading", 1, 1)
        self.runner = Runner(threads, libraries, source.data_folder)
        self.feeds, self.expected = self._first_runs()

    def run(self) -> tuple[ir.Model, Report]:
        """The model and the report. What makes the whole model depart is left out."""
        left_out: dict[str, str] = {}
        model, report = self._replace_all(left_out)
        while report.replaced and (why := self._compare(model, report)):
            kinds = list(report.replaced)
            left_out |= dict.fromkeys([k for k in kinds if self._departs_alone(k, kinds, left_out)] or kinds, why)
            model, report = self._replace_all(left_out)
        report.bytes_before = files.size_of(self.original)
        if self.options.measure and report.replaced:
            self.step("measuring", 0, 1)
            sessions = [self.runner.session(ir.to_proto(m), as_used=True) for m in (self.original, model)]
            report.before, report.after = time_in_turns(sessions, self.feeds[0])
            self.step("measuring", 1, 1)
        return model, report

    # ---- Running the original ----

    def _first_runs(self) -> tuple[list[Feeds], list[Feeds]]:
        """Sets of inputs that the model takes, and its outputs: what is given, if that is all, or else two, of which the
        second is of other sizes where the model takes them."""
        self.step("running the model as it is", 0, 2)
        try:
            session = self.runner.session(ir.to_proto(self.original))
        except Exception as error:  # ONNX Runtime's own types are not public
            raise OptimizeError(f"ONNX Runtime cannot run {self.source.name}: {said(error)}") from error
        graph, names = self.original.graph, [o.name for o in session.get_outputs()]
        feeds, expected = [], []
        all_given = {v.name for v in model_inputs(graph)} <= set(self.options.inputs)
        for seed in (0,) if all_given else (0, 1):
            first: Exception | None = None
            for made in candidates(graph, self.options.inputs, self.options.shapes, seed):
                try:
                    results = session.run(names, made)
                except Exception as error:
                    first = first or error
                    continue
                feeds.append(made)
                expected.append(dict(zip(names, results, strict=True)))
                break
            else:
                if seed == 0:
                    raise OptimizeError(
                        f"{self.source.name} takes none of the inputs that were tried: {said(first)}",
                        "say what it takes: -i NAME=FILE.npy, --shape NAME=1x3x224x224",
                    )
            give_back()
            self.step("running the model as it is", seed + 1, 2)
        return feeds, expected

    # ---- Replacing ----

    def _departs_alone(self, kind: str, kinds: list[str], left_out: dict[str, str]) -> bool:
        if kinds == [kind]:
            return True
        model, report = self._replace_all({**left_out, **dict.fromkeys(set(kinds) - {kind}, "another is tried")})
        return bool(self._compare(model, report))

    def _replace_all(self, left_out: Mapping[str, str]) -> tuple[ir.Model, Report]:
        """left_out: what is not replaced, and why not."""
        model, report = self.source.load(), Report()
        fixed = not has_dynamic_sizes(model.graph)
        if len(self.feeds) < 2:
            report.notes.append("it was run with one set of inputs")
        if model.functions:
            report.notes.append(f"its {len(model.functions)} functions were not looked into")
        self.step("looking at tensors", 0, 1)
        names = {v.name for v in model_inputs(model.graph)}
        feeds = [{k: v for k, v in f.items() if k in names} for f in self.feeds]
        scopes = list(self._scopes("", Scope(model, model.graph, self.runner, feeds, fixed), report))
        self.step("looking at tensors", 1, 1)
        for pattern in all_patterns():
            for where, scope in scopes:
                self._apply(pattern, where, scope, report, left_out)
            clean(model)  # what a replacement has left over is not for others to find
        return (self._with_functions(model, report) if report.replaced else model), report

    def _with_functions(self, model: ir.Model, report: Report) -> ir.Model:
        """The model with functions of standard operators for polyop's nodes: so it runs where polyop is not, too."""
        proto = ir.to_proto(model)
        try:
            records = add_functions(proto)
        except ValueError as error:
            report.needs_polyop = True
            report.notes.append(f"the file needs polyop, there are no functions in it: {said(error)}")
            return model
        lacking = {record.name: record.why for record in records if not record.given}
        report.notes += [f"the file needs polyop: {name} has no function ({why})" for name, why in lacking.items()]
        report.needs_polyop = bool(lacking)
        made = ir.from_proto(proto)
        for tensor in files.external_tensors(made):
            tensor.base_dir = self.source.data_folder
        return made

    def _scopes(self, where: str, scope: Scope, report: Report) -> Iterator[tuple[str, Scope]]:
        yield where, scope
        for name, child in scope.children():
            if isinstance(child, Scope):
                yield from self._scopes(f"{where}{name}/", child, report)
            else:
                report.notes.append(f"{where}{name} was not looked into, for it does not run alone: {said(child)}")

    def _apply(self, pattern: Pattern, where: str, scope: Scope, report: Report, left_out: Mapping[str, str]) -> None:
        matches = list(pattern.find(scope))
        for match in matches:
            match.what = match.what or pattern.NAME
            match.refused = match.refused or left_out.get(match.what, "") or self._unwanted(match)
        verdicts: dict[int, Verdict] = {}  # of all, before anything changes
        for some in _portions([m for m in matches if not m.refused], scope):
            arrays = scope.arrays(v for m in some for v in needed(m))
            for match in some:
                self.step(pattern.NAME, len(verdicts), len(matches))
                verdicts[id(match)] = check(match, scope, arrays, self.options.measure)
                give_back()
        now: dict[ir.Value, ir.Value] = {}
        for match in matches:
            finding = Finding(match.what, where + match.where, why=match.refused)
            report.findings.append(finding)
            if match.refused:
                continue
            verdict = verdicts[id(match)]
            finding.why, finding.difference = verdict.why, verdict.difference
            finding.before, finding.after = verdict.before, verdict.after
            if not finding.why:
                finding.replaced = replace(match, scope, now)
                finding.why = "" if finding.replaced else "another replacement has taken its nodes"
        self.step(pattern.NAME, len(matches), len(matches))

    def _unwanted(self, match: Match) -> str:
        """Why the options do not want it, or ""."""
        if match.is_fix and not self.options.allow_fix:
            return "ONNX Runtime computes something else; --allow-fix replaces it"
        if not self.options.all and not pays(match.what, match.work):
            return "too small to gain; --all replaces it"
        return ""

    # ---- The whole model ----

    def _compare(self, model: ir.Model, report: Report) -> str:
        """Why the model departs from the original, or ""."""
        proto = ir.to_proto(model)
        ways = {"with polyop": True} if report.needs_polyop else {"with polyop": True, "without polyop": False}
        for i, (way, polyop) in enumerate(ways.items()):
            self.step("comparing the whole model", i, len(ways))
            try:
                largest = 0.0
                results = self.runner.run(proto, self.feeds, polyop=polyop)
                for of_run, expected in zip(results, self.expected, strict=True):
                    for name, want in expected.items():
                        difference = _largest(want, of_run[name])
                        largest = max(largest, difference)
                        if difference > _allowed(want, self.options.tolerance):
                            return f"then output '{name}' of the model differs by {difference:.3g} {way}"
                report.differences[way] = largest
                self.step("comparing the whole model", i + 1, len(ways))
            except Exception as error:  # ONNX Runtime's own types are not public
                return f"then the model does not run {way}: {said(error)}"
        return ""


def _portions(matches: list[Match], scope: Scope) -> Iterator[list[Match]]:
    """The matches in order, as many at a time as their tensors can be in memory."""
    some: list[Match] = []
    seen: set[ir.Value] = set()
    for match in matches:
        now = seen | set(needed(match))
        if some and sum(prod(scope.shape(v) or ()) for v in now) > _MOST_ELEMENTS:
            yield some
            some, now = [], set(needed(match))
        some.append(match)
        seen = now
    if some:
        yield some


def _largest(want: object, got: object) -> float:
    """The same for sequences of tensors, and for None."""
    if isinstance(want, np.ndarray) and isinstance(got, np.ndarray):
        return largest_difference(want, got)
    if isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
        return max((_largest(w, g) for w, g in zip(want, got, strict=True)), default=0.0)
    return 0.0 if want is None and got is None else float("inf")


def _allowed(want: object, tolerance: float) -> float:
    if isinstance(want, list):
        return max((_allowed(w, tolerance) for w in want), default=0.0)
    return allowed(want, tolerance) if isinstance(want, np.ndarray) else 0.0
