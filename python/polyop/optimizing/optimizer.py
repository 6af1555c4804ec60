# SPDX-License-Identifier: Apache-2.0
"""Applies the patterns to a model, checks every replacement and the whole model."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
from onnx_ir.passes import common

from polyop._onnx.catalogue import is_node
from polyop._onnx.comparing import Difference, compare, with_rounding
from polyop.optimizing import files
from polyop.optimizing.checking import Verdict, check, needed
from polyop.optimizing.cost import pays
from polyop.optimizing.errors import OptimizeError
from polyop.optimizing.inputs import (
    candidates,
    describe_inputs,
    equal_sizes,
    has_dynamic_sizes,
    model_inputs,
    of_other_sizes,
    of_size_one,
)
from polyop.optimizing.matching import Match, described, failed_match, name_of
from polyop.optimizing.patterns import Pattern, patterns_for
from polyop.optimizing.plugin_domain import PLUGIN_DOMAIN, move
from polyop.optimizing.replacing import clean, replace
from polyop.optimizing.report import Finding, Report
from polyop.optimizing.rewrites import Rewriter, applies, modules, remaining
from polyop.optimizing.running import Feeds, Runner, runtime_error, time_interleaved, trim_memory
from polyop.optimizing.runtimes import RUNTIMES, Entry, entries
from polyop.optimizing.scope import Scope
from polyop.optimizing.target import Target
from polyop.portable import add_functions

Step = Callable[[str, int, int], None]

# The tolerance of a model's outputs after nodes that round to 8 bits: a step is at least 1/255 of the largest value,
# and the nodes that follow add up some of them.
_TOLERANCE_OF_STEPS = 0.02

# The maximum number of elements of the tensors that are in memory for comparing matches; one match may need more.
_MAX_ELEMENTS = 32 << 20
_MAX_LISTED = 8  # nodes in an error


@dataclass(frozen=True)
class Options:
    """all: also replaces nodes that are too small to gain.
    allow_fix: also replaces nodes for which ONNX Runtime's results differ from the standard.
    tolerance: of the whole model's outputs; relative to the scale of each element, as in comparing.py.
    plugin_domain: moves plugin nodes into the domain of ONNX Runtime's provider for TensorRT.
    entries: operators that are rewritten as other standard nodes; without: those of which none may remain.
    """

    all: bool = False
    allow_fix: bool = False
    measure: bool = False
    tolerance: float = 1e-3
    inputs: Mapping[str, np.ndarray] = field(default_factory=dict)
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    target: Target = Target.ONNXRUNTIME
    plugin_domain: bool = False
    entries: Mapping[str, Entry] = field(default_factory=dict)
    without: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _Reason:
    """Why a kind of matches is not replaced: in a few words, and the rest."""

    why: str
    details: str = ""


def optimize(
    model: str | Path | onnx.ModelProto | files.Source,
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
    target: Target | str = Target.ONNXRUNTIME,
    plugin_domain: bool = False,
    without: Sequence[str] = (),
    progress: Step = lambda phase, done, steps: None,
) -> Report:
    """Replaces nodes that polyop computes faster by polyop's nodes. Verifies every replacement and the whole model.

    Args:
        model: an ONNX file or a model.
        output: the file to write. Without it the report contains the model, as `model`; external tensors stay in place.
        inputs, shapes: values and shapes of inputs to run the model with; synthetic inputs by default.
        all: also replaces nodes that are too small to gain.
        allow_fix: also replaces nodes for which ONNX Runtime's results differ from the standard.
        measure: also times each replacement and the model, interleaved with the original.
        tolerance: of the whole model's outputs. Each element is compared relative to the largest magnitude of its row,
            its column or its channel, whichever is smaller.
        threads: of ONNX Runtime; 0: all cores.
        libraries: of other custom operators that the model needs.
        target: "tensorrt" writes nodes of NVIDIA's own plugins, "tensorrt-polyop" those of polyop's plugin library.
            Sizes do not matter then: TensorRT's results of the original nodes may be wrong. "webgpu", "directml",
            "coreml" and "openvino" rewrite standard nodes that these lack or compute wrong as other standard nodes,
            and write none of polyop's.
        plugin_domain: writes plugin nodes into the domain "trt.plugins", where ONNX Runtime's provider for TensorRT
            expects them. polyop's libraries know them there, too.
        without: standard operators, such as "GridSample", of which no node may remain: they are rewritten as other
            standard nodes. Unless the target is TensorRT, none of polyop's nodes are written then.

    Returns a report. Raises OptimizeError if the model cannot be read, run or written; then no file is written.
    """
    if output is not None:
        files.check_writable(Path(output))
    name = target.value if isinstance(target, Target) else target
    _check_names(without)
    written = Target(name) if name in [t.value for t in Target] or name not in RUNTIMES else Target.STANDARD
    written = Target.STANDARD if without and not written.is_tensorrt else written
    options = Options(
        all, allow_fix, measure, tolerance, inputs or {}, shapes or {}, written, plugin_domain,
        entries("tensorrt" if written.is_tensorrt else name, without), frozenset(without),
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="polyop-") as folder:
        source = model if isinstance(model, files.Source) else files.Source(model)
        source.folder = Path(folder)
        work = _Work(source, options, threads, tuple(libraries), progress)
        result, report = work.run()
        if output is None:
            ir.external_data.load_to_model(result)
            report.model = ir.to_proto(result)
            return report
        output = Path(output)
        if report.replaced or report.moved or source.path is None:
            report.data = files.save(result, output, source, progress)
        else:
            report.data = files.copy(source, output)
        report.bytes_after = output.stat().st_size
        return report


def _check_names(without: Sequence[str]) -> None:
    """Raises OptimizeError for what is no operator of ONNX, such as a misspelled one."""
    known = {schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == ""}
    for name in without:
        if name not in known:
            near = get_close_matches(name, known, 1, 0.7) or get_close_matches(name.lower(), map(str.lower, known), 1)
            other = next((k for k in known if near and k.lower() == near[0].lower()), "")
            hint = f"did you mean {other}?" if other else f"operators with other nodes: {', '.join(sorted(modules()))}"
            raise OptimizeError(f"without: expected an operator of ONNX, got '{name}'", hint)


class _Work:
    def __init__(
        self, source: files.Source, options: Options, threads: int, libraries: tuple[str, ...], step: Step
    ) -> None:
        self.source, self.options, self.step = source, options, step
        step("reading", 0, 1)
        self.original = source.load()
        step("reading", 1, 1)
        self.runner = Runner(threads, libraries, source.data_folder)
        self.feeds, expected = self._first_runs()
        self._original = _Trusted(self.runner, ir.to_proto(self.original), self.feeds, expected)

    def run(self) -> tuple[ir.Model, Report]:
        """Returns the model and the report. Reverts replacements that change the results of the whole model."""
        skipped: dict[str, _Reason] = {}
        model, report = self._replace_all(skipped)
        while report.replaced and (why := self._compare(model, report, skipped)):
            kinds = list(report.replaced)
            skipped |= dict.fromkeys([k for k in kinds if self._differs_alone(k, kinds, skipped)] or kinds, why)
            model, report = self._replace_all(skipped)
        if report.moved and not report.replaced and (reason := self._compare(model, report, skipped)) is not None:
            raise OptimizeError(f"{self.source.name}: {PLUGIN_DOMAIN}: {reason.why}", reason.details)
        self._check_remaining(model, report)
        report.inputs = describe_inputs(self.original.graph, self.options.inputs, self.feeds)
        report.bytes_before = files.size_of(self.original)
        if self.options.measure and report.replaced:
            self.step("measuring", 0, 1)
            sessions = [self.runner.session(ir.to_proto(m), as_used=True) for m in (self.original, model)]
            report.before, report.after = time_interleaved(sessions, self.feeds[0])
            self.step("measuring", 1, 1)
        return model, report

    # ---- Running the original ----

    def _first_runs(self) -> tuple[list[Feeds], list[Feeds]]:
        """Returns sets of inputs that the model accepts, and its outputs.

        If the model has dynamic sizes, the sets have three sizes, because a pattern may hold for one size alone; fewer
        if the model rejects others. In further sets, dimensions that were equal in these are 1. If the model has no
        dynamic sizes, the second set has other values, unless all are given.
        """
        self.step("running the original model", 0, 3)
        try:
            session = self.runner.session(ir.to_proto(self.original))
        except Exception as error:  # ONNX Runtime's error types are not public
            raise OptimizeError(f"ONNX Runtime cannot run {self.source.name}: {runtime_error(error)}") from error
        graph, given = self.original.graph, self.options.inputs
        all_given = {v.name for v in model_inputs(graph)} <= set(given)
        ran = _first_accepted(session, candidates(graph, given, self.options.shapes, 0))
        if isinstance(ran, Exception):
            raise OptimizeError(
                f"{self.source.name} rejects all inputs that were tried: {runtime_error(ran)}",
                "pass inputs: -i NAME=FILE.npy, --set NAME=1,1,2,2, --shape NAME=1x3x224x224",
            )
        feeds, expected = [ran[0]], [ran[1]]
        for seed in (1, 2):
            self.step("running the original model", seed, 3)
            ran = _first_accepted(session, of_other_sizes(graph, given, feeds[0], seed))
            if isinstance(ran, tuple):
                feeds.append(ran[0])
                expected.append(ran[1])
        self.sizes = len(feeds) if has_dynamic_sizes(graph) else 0
        for options in of_size_one(graph, given, feeds):
            ran = _first_accepted(session, options)
            if isinstance(ran, tuple):
                feeds.append(ran[0])
                expected.append(ran[1])
        if len(feeds) == 1 and not all_given:
            shapes = {name: array.shape for name, array in feeds[0].items()}
            ran = _first_accepted(session, candidates(graph, {}, shapes, 1))
            if isinstance(ran, tuple):
                feeds.append(ran[0])
                expected.append(ran[1])
        self.step("running the original model", 3, 3)
        return feeds, expected

    # ---- Replacing ----

    def _differs_alone(self, kind: str, kinds: list[str], skipped: dict[str, _Reason]) -> bool:
        if kinds == [kind]:
            return True
        others = {**skipped, **dict.fromkeys(set(kinds) - {kind}, _Reason("another pattern is tested"))}
        model, report = self._replace_all(others)
        return bool(self._compare(model, report, others))

    def _replace_all(self, skipped: Mapping[str, _Reason], only_fixes: bool = False) -> tuple[ir.Model, Report]:
        """Replaces all matches, or all fixes, except those in `skipped`, which maps names to reasons."""
        model, report = self.source.load(), Report(lists=bool(self.options.entries))
        if self.options.entries:
            model = self._with_shapes(model, report)
        fixed = not has_dynamic_sizes(model.graph)
        if len(self.feeds) < 2:
            report.notes.append("the model was run with one set of inputs")
        if 0 < self.sizes < 3:
            report.notes.append(f"its inputs had {self.sizes} of 3 sizes, because the model rejects the others")
        for group in equal_sizes(model.graph, self.feeds):
            report.notes.append(
                f"the dynamic sizes {' and '.join(group)} were equal in all runs, because the model rejects others"
            )
        if model.functions and self.options.target is not Target.STANDARD:
            report.notes.append(f"patterns were not applied to its {len(model.functions)} functions")
        self.step("reading tensors", 0, 1)
        names = {v.name for v in model_inputs(model.graph)}
        feeds = [{k: v for k, v in f.items() if k in names} for f in self.feeds]
        try:
            scope = Scope(model, model.graph, self.runner, feeds, fixed, self.options.target)
            scopes = list(self._scopes("", scope, report))
        except Exception as error:  # ONNX Runtime's error types are not public
            report.note("patterns were not applied: the graph's tensors cannot be read", runtime_error(error))
            return model, report
        self.step("reading tensors", 1, 1)
        patterns = [*patterns_for(self.options.target), Rewriter(self.options.entries)]
        for pattern in sorted(patterns, key=lambda pattern: pattern.ORDER):
            for where, scope in scopes:
                self._apply(pattern, where, scope, report, skipped, only_fixes)
            clean(model)  # so that other patterns do not match unused nodes
        if self.options.plugin_domain:
            report.moved = move(model)
        return (self._with_functions(model, report) if report.replaced or report.moved else model), report

    def _with_shapes(self, model: ir.Model, report: Report) -> ir.Model:
        """Returns the model with the shapes of its tensors, which rewritten nodes need, and the nodes of functions that
        have nodes to rewrite."""
        listed = self.options.entries
        calls = {f.identifier() for f in model.functions.values() if any(applies(listed, n) for n in f.all_nodes())}
        for _ in model.functions:  # those that call these
            calls |= {
                f.identifier()
                for f in model.functions.values()
                if any(n.op_identifier() in calls for n in f.all_nodes())
            }
        if calls:
            names = sorted({name for _, name, _ in calls})
            report.notes.append(f"the nodes of its functions {', '.join(names)} are in its graph now")
            common.InlinePass(criteria=lambda function: function.identifier() in calls)(model)
        return common.ShapeInferencePass()(model).model

    def _check_remaining(self, model: ir.Model, report: Report) -> None:
        """Notes why a runtime's list has the operators that the model has, and what remains of them. Raises
        OptimizeError for nodes that must not remain."""
        left = remaining(self.options.entries, model)
        whys = {f.where.rpartition("/")[2]: f.why for f in report.findings if not f.replaced}
        texts = [f"{node.op_type} '{name_of(node)}'" for node in left]
        reasons = [whys.get(name_of(node), "its graph does not run alone, or is the body of a Scan") for node in left]
        lines = [f"{text}: {why}" for text, why in zip(texts, reasons, strict=True)]
        required = [line for node, line in zip(left, lines, strict=True) if node.op_type in self.options.without]
        if required:
            raise OptimizeError(
                f"{self.source.name}: {len(required)} node(s) of --without remain: {'; '.join(required[:_MAX_LISTED])}",
                f"operators with other nodes: {', '.join(sorted(modules()))}",
            )
        found = {n.op_type for n in remaining(self.options.entries, self.original)}
        report.notes += [
            f"{name}: {entry.why}" for name, entry in self.options.entries.items()
            if entry.why and name in found
        ]  # fmt: skip
        missing = [name for name in sorted(self.options.without) if name not in found]
        report.notes += [f"the model has no {name}" for name in missing]
        report.notes += [f"stays: {line}" for line in lines]

    def _with_functions(self, model: ir.Model, report: Report) -> ir.Model:
        """Returns the model with functions of standard operators for polyop's nodes, so that it runs without polyop."""
        if self.options.target is Target.STANDARD:
            return model
        if self.options.target.is_tensorrt:  # its parser would prefer the functions to a plugin
            _drop_functions(model, self.options.target)
            report.needs_polyop = True
            return model
        proto = ir.to_proto(model)
        try:
            records = add_functions(proto)
        except Exception as error:  # the file is valid without functions
            report.needs_polyop = True
            report.note("the file needs polyop, because adding functions failed", described(error))
            return model
        lacking = {record.name: record.why for record in records if not record.given}
        report.notes += [f"the file needs polyop: {name} has no function ({why})" for name, why in lacking.items()]
        report.needs_polyop = bool(lacking)
        result = ir.from_proto(proto)
        for tensor in files.external_tensors(result):
            tensor.base_dir = self.source.data_folder or ""
        return result

    def _scopes(self, where: str, scope: Scope, report: Report) -> Iterator[tuple[str, Scope]]:
        yield where, scope
        for name, child in scope.children():
            if isinstance(child, Scope):
                yield from self._scopes(f"{where}{name}/", child, report)
            else:
                report.note(
                    f"patterns were not applied to {where}{name}, which does not run alone", runtime_error(child)
                )

    def _apply(
        self,
        pattern: Pattern,
        where: str,
        scope: Scope,
        report: Report,
        skipped: Mapping[str, _Reason],
        only_fixes: bool,
    ) -> None:
        matches: list[Match] = []
        try:
            matches += pattern.find(scope)
        except Exception as error:
            matches.append(failed_match(scope.graph.name or "the graph", error))
        for match in matches:
            match.what = match.what or pattern.NAME
            if not match.refused and (reason := skipped.get(match.what)) is not None:
                match.refused, match.details = reason.why, reason.details
            match.refused = match.refused or self._excluded(match)
            if only_fixes and not match.is_fix:
                match.refused = match.refused or "ONNX Runtime's result is the standard's"
        verdicts: dict[int, Verdict] = {}  # of all matches, before the graph changes
        for some in _portions([m for m in matches if not m.refused], scope):
            for match, arrays in _with_arrays(some, scope):
                self.step(pattern.NAME, len(verdicts), len(matches))
                if isinstance(arrays, Exception):
                    verdicts[id(match)] = Verdict("its tensors cannot be computed", runtime_error(arrays))
                else:
                    verdicts[id(match)] = check(match, scope, arrays, self.options.measure)
                trim_memory()
        now: dict[ir.Value, ir.Value] = {}
        for match in matches:
            finding = Finding(match.what, where + match.where, why=match.refused, details=match.details)
            report.findings.append(finding)
            if match.refused:
                continue
            verdict = verdicts[id(match)]
            finding.why, finding.details = verdict.why, verdict.details
            finding.difference, finding.change = verdict.difference, verdict.change
            finding.before, finding.after = verdict.before, verdict.after
            if not finding.why:
                try:
                    finding.replaced = replace(match, scope, now)
                    finding.why = "" if finding.replaced else "another replacement contains its nodes"
                except Exception as error:  # of building the nodes, before the graph changes
                    finding.why, finding.details = "building its nodes failed", described(error)
        self.step(pattern.NAME, len(matches), len(matches))

    def _excluded(self, match: Match) -> str:
        """Returns why the options exclude the match, or ""."""
        if match.is_fix and not self.options.allow_fix:
            return "ONNX Runtime's result differs from the standard; --allow-fix replaces it"
        gains = pays(match.what, match.work) if match.min_work is None else match.work >= match.min_work
        if not self.options.all and not self.options.target.is_tensorrt and not gains:
            return "too small to gain; --all replaces it"
        return ""

    # ---- The whole model ----

    def _compare(self, model: ir.Model, report: Report, skipped: Mapping[str, _Reason]) -> _Reason | None:
        """Returns how the model's results differ from the original's, or None.

        With fixes, the results are those of the fixes' reference kernels. Without polyop, the fixed nodes may still
        compute what ONNX Runtime computes.
        """
        proto = ir.to_proto(model)
        is_rounded = "quantized nodes" in report.replaced
        tolerance = max(self.options.tolerance, _TOLERANCE_OF_STEPS) if is_rounded else self.options.tolerance
        ways = {"with polyop": True} if report.needs_polyop else {"with polyop": True, "without polyop": False}
        ways = {"in ONNX Runtime": True} if self.options.target is Target.STANDARD else ways
        has_fixes = any(f.replaced and f.change is not None for f in report.findings)
        trusted: _Trusted | None = None  # computed once, where its errors are reported
        for i, (way, polyop) in enumerate(ways.items()):
            self.step("comparing the whole model", i, len(ways))
            try:
                results = self.runner.run(proto, self.feeds, polyop=polyop)
                trusted = trusted or (self._fixed(skipped) if has_fixes else self._original)
                accepted = [trusted, self._original] if has_fixes and not polyop else [trusted]
                found = [_differences(t, results, tolerance, is_rounded) for t in accepted]
                differs, name, largest = min(found, key=lambda difference: bool(difference[0].why))
                if differs.why:
                    why = f"then the model's results differ by {differs.excess:.3g}"
                    return _Reason(why, f"output '{name}' {way} {differs.why}")
                report.differences[way] = largest
                self.step("comparing the whole model", i + 1, len(ways))
            except Exception as error:  # ONNX Runtime's error types are not public
                return _Reason(f"then the model does not run {way}", runtime_error(error))
        return None

    def _fixed(self, skipped: Mapping[str, _Reason]) -> _Trusted:
        """Returns the original with all fixes but those in `skipped`, computed by reference kernels."""
        model = ir.to_proto(self._replace_all(skipped, only_fixes=True)[0])
        return _Trusted(self.runner, model, self.feeds, self.runner.run(model, self.feeds, reference=True), True)


class _Trusted:
    """A model whose results are right."""

    def __init__(
        self, runner: Runner, model: onnx.ModelProto, feeds: list[Feeds], results: list[Feeds], reference: bool = False
    ) -> None:
        self.results = results
        self._runner, self._model, self._feeds, self._reference = runner, model, feeds, reference
        self._noisy: list[Feeds] | None = None

    def rounded(self) -> list[Feeds]:
        """Returns the outputs for inputs that differ by rounding, without ONNX Runtime's own optimization; empty ones
        if it rejects them."""
        if self._noisy is None:
            try:
                feeds = [with_rounding(feed) for feed in self._feeds]
                self._noisy = self._runner.run(self._model, feeds, as_written=True, reference=self._reference)
            except Exception:  # ONNX Runtime's error types are not public
                self._noisy = [{} for _ in self._feeds]
        return self._noisy


def _differences(
    trusted: _Trusted, results: list[Feeds], tolerance: float, is_rounded: bool
) -> tuple[Difference, str, float]:
    """Returns the first difference that is too large, or none; its output; and the largest difference."""
    largest = 0.0
    for i, (of_run, expected) in enumerate(zip(results, trusted.results, strict=True)):
        for name, reference in expected.items():
            difference = compare(reference, of_run[name], tolerance, is_rounded=is_rounded)
            if difference.why:
                difference = compare(reference, of_run[name], tolerance, trusted.rounded()[i].get(name), is_rounded)
            largest = max(largest, difference.largest)
            if difference.why:
                return difference, name, largest
    return Difference(), "", largest


def _drop_functions(model: ir.Model, target: Target) -> None:
    """Removes the functions of polyop's nodes that no node calls, or that polyop's plugins compute."""
    called = {(node.domain, node.op_type) for node in ir.traversal.RecursiveGraphIterator(model.graph)}
    for function in model.functions.values():
        called |= {(node.domain, node.op_type) for node in function}
    for key in list(model.functions):
        name = key[:2]
        if is_node(*name) and (target is Target.TENSORRT_POLYOP or name not in called):
            del model.functions[key]


def _portions(matches: list[Match], scope: Scope) -> Iterator[list[Match]]:
    """Yields the matches in order, in groups whose tensors fit into memory."""
    some: list[Match] = []
    seen: set[ir.Value] = set()
    for match in matches:
        now = seen | set(needed(match))
        if some and sum(prod(scope.shape(v) or ()) for v in now) > _MAX_ELEMENTS:
            yield some
            some, now = [], set(needed(match))
        some.append(match)
        seen = now
    if some:
        yield some


def _first_accepted(
    session: ort.InferenceSession, options: Iterator[Feeds]
) -> tuple[Feeds, dict[str, Any]] | Exception:
    """Returns the first inputs that the model accepts, with its outputs; or the first error."""
    names = [output.name for output in session.get_outputs()]
    first: Exception = ValueError("there are no inputs to try")
    for i, feeds in enumerate(options):
        try:
            results = session.run(names, feeds)
        except Exception as error:  # ONNX Runtime's error types are not public
            first = error if i == 0 else first
            continue
        finally:
            trim_memory()
        return feeds, dict(zip(names, results, strict=True))
    return first


def _with_arrays(some: list[Match], scope: Scope) -> Iterator[tuple[Match, list[Feeds] | Exception]]:
    """Yields matches with the tensors that their comparison needs, computed together; one by one if that fails."""
    try:
        arrays: list[Feeds] | Exception = scope.arrays(v for m in some for v in needed(m))
    except Exception as error:  # ONNX Runtime's error types are not public
        if len(some) > 1:
            for match in some:
                yield from _with_arrays([match], scope)
            return
        arrays = error
    yield from ((match, arrays) for match in some)
