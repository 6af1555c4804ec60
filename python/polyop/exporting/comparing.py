# SPDX-License-Identifier: Apache-2.0
"""Compares an exported file, in ONNX Runtime, with the PyTorch model."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir
import onnxruntime as ort
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from polyop._onnx.comparing import ROUNDING, compare, with_rounding
from polyop.exporting.assumptions import Assumptions
from polyop.exporting.breaking import is_small
from polyop.exporting.declared import Declared
from polyop.exporting.dimensions import Comparison, Dimension, Sizes, coupled, fits
from polyop.exporting.inputs import is_discrete, other_choices, other_inputs
from polyop.exporting.report import ExportError, OtherBranchError, OutputReport, RunError, described, listed
from polyop.packages import register_all

# By type, in proportion to the scale of an element.
_TOLERANCE = {"float16": 1e-2, "bfloat16": 3e-2}
_DEFAULT_TOLERANCE = 1e-3
_ABSOLUTE = 1e-6  # in proportion to the largest magnitude of an output
_MAX_ERROR = 300  # characters
_UNITS_OF_INTEGERS = 256  # of rounding: few numbers are so near to a half that less noise rounds them the other way
_DRAWS = 3  # of data, if results depend on rounding

_NO_KERNEL = re.compile(r"Could not find an implementation for (\w+)\(\d+\) node with name '([^']*)'")

Run = Callable[[Mapping[str, Tensor]], list[Tensor]]
"""Runs the PyTorch model with named inputs. Returns its outputs as the file has them."""


@dataclass(frozen=True)
class Tolerance:
    """rtol, atol: None for the defaults."""

    rtol: float | None = None
    atol: float | None = None

    def of(self, output: np.ndarray) -> tuple[float, float]:
        rtol = _TOLERANCE.get(output.dtype.name, _DEFAULT_TOLERANCE) if self.rtol is None else self.rtol
        return rtol, _ABSOLUTE * scale_of(output) if self.atol is None else self.atol

    def text(self) -> str:
        rtol = "1e-3 (half precision: more)" if self.rtol is None else f"{self.rtol:g}"
        atol = "1e-6 of the largest magnitude" if self.atol is None else f"{self.atol:g}"
        return f"tolerance: rtol = {rtol} of an element's scale, atol = {atol}"


class File:
    """An exported file in ONNX Runtime."""

    def __init__(self, path: Path, declared: Declared, functions_only: bool = False) -> None:
        """functions_only: runs the functions of a portable file instead of polyop's kernels."""
        self.name, self._declared = path.name, declared
        options = ort.SessionOptions()
        options.log_severity_level = 4
        if not functions_only:
            register_all(options)
        try:
            self._session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # ONNX Runtime's own types are not public
            reason = _without_kernel(path, str(error)) or error
            raise ExportError(f"ONNX Runtime cannot run {path.name}: {reason}") from error
        self.inputs = {info.name: info.shape for info in self._session.get_inputs()}
        self.outputs = [info.name for info in self._session.get_outputs()]

    def run(self, tensors: Mapping[str, Tensor]) -> list[np.ndarray]:
        """Exporters omit inputs that the outputs do not depend on."""
        feeds = {name: as_real(tensors[name].detach().cpu()).numpy() for name in self.inputs}
        try:
            return self._session.run(None, feeds)
        except Exception as error:
            raise RunError(f"ONNX Runtime cannot run {self.name}: {error}") from error

    def contradictions(self, tensors: Mapping[str, Tensor], results: Sequence[np.ndarray]) -> list[str]:
        """Returns, for each result of these inputs, how its shape differs from what the file declares."""
        sizes = {name: list(as_real(tensors[name]).shape) for name in self.inputs}
        return self._declared.contradictions(sizes, [result.shape for result in results])


def _without_kernel(path: Path, error: str) -> str:
    """Returns what to tell a user about a node that ONNX Runtime has no kernel for; empty for other errors."""
    match = _NO_KERNEL.search(error)
    nodes = onnx_ir.load(path).graph.all_nodes() if match else ()
    node = next((n for n in nodes if match and n.name == match[2]), None)
    types = sorted(
        {str(v.dtype).lower() for v in (node.inputs if node else ()) if v is not None and v.dtype is not None}
    )
    if match is None or not types:
        return ""
    advice = "; export the model in another type, by model.float() or model.half()" if "bfloat16" in types else ""
    return f"its CPU provider has no kernel for {match[1]} of {' and '.join(types)} (node '{match[2]}'){advice}"


def as_real(tensor: Tensor) -> Tensor:
    """Returns a tensor as files have it: complex numbers as pairs."""
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def scale_of(output: np.ndarray) -> float:
    """Returns the largest finite magnitude; 0 if there is none."""
    if output.dtype.kind not in "fiu" or output.size == 0:
        return 0.0
    magnitudes = np.abs(output.astype(np.float64))
    return float(magnitudes.max(initial=0.0, where=np.isfinite(magnitudes)))


def compare_outputs(
    file: File, tensors: Mapping[str, Tensor], expected: Sequence[Tensor], tolerance: Tolerance, run: Run
) -> list[OutputReport]:
    """Returns how each output differs from PyTorch's, or from the shape that the file declares."""
    results = file.run(tensors)
    if len(results) != len(expected):
        raise ExportError(f"{file.name}: expected {len(expected)} outputs, got {len(results)}")
    reports = _reports(file, tensors, expected, results, tolerance, run)
    return [
        replace(report, agrees=False, why=why) if why and report.agrees else report
        for report, why in zip(reports, file.contradictions(tensors, results), strict=True)
    ]


def _reports(
    file: File, tensors: Mapping[str, Tensor], expected: Sequence[Tensor], results: Sequence[np.ndarray],
    tolerance: Tolerance, run: Run,
) -> list[OutputReport]:  # fmt: skip
    """Elements that cancel may differ by as much as PyTorch's own do for inputs that differ by rounding. Equal elements
    may be sorted in PyTorch's order, or in their own."""
    references = [tensor.detach().cpu().numpy() for tensor in expected]
    reports = [
        _report(name, reference, got, tolerance)
        for name, reference, got in zip(file.outputs, references, results, strict=True)
    ]
    if all(report.agrees for report in reports):
        return reports
    stable = _with_stable_order(run, tensors)
    if len(stable) == len(references):
        others = [_report(*pair, tolerance) for pair in zip(file.outputs, stable, results, strict=True)]
        if all(report.agrees for report in others):
            return others
    noisy = functools.cache(lambda units: _with_noise(run, tensors, units))

    def again(report: OutputReport, at: int) -> OutputReport:
        reference = references[at]
        others = noisy(ROUNDING if reference.dtype.kind == "f" else _UNITS_OF_INTEGERS)
        has_other = len(others) == len(references)
        return _report(report.name, reference, results[at], tolerance, others[at]) if has_other else report

    return [report if report.agrees else again(report, at) for at, report in enumerate(reports)]


def _report(
    name: str, reference: np.ndarray, got: np.ndarray, tolerance: Tolerance, noisy: np.ndarray | None = None
) -> OutputReport:
    rtol, atol = tolerance.of(reference)
    difference = compare(reference, got, rtol, noisy)
    agrees = not difference.why or difference.excess <= atol
    why = "" if agrees else difference.why
    return OutputReport(name, str(got.dtype), got.shape, scale_of(reference), difference.largest, agrees, why)


class _StableOrder(TorchDispatchMode):
    """Sorts equal elements by their index, as ONNX does. PyTorch leaves their order open."""

    sorted = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = {**dict(zip((a.name for a in func._schema.arguments), args, strict=False)), **(kwargs or {})}
        if func is torch.ops.aten.sort.default or (func is torch.ops.aten.sort.stable and not given.get("stable")):
            self.sorted = True
            return torch.sort(
                given["self"], dim=given.get("dim", -1), descending=given.get("descending", False), stable=True
            )
        if func is torch.ops.aten.topk.default and given["self"].dim() > 0:
            self.sorted = True
            dim, k, size = given.get("dim", -1), given["k"], given["self"].shape[given.get("dim", -1)]
            if k <= size:
                found = torch.sort(given["self"], dim=dim, descending=given.get("largest", True), stable=True)
                return tuple(part.narrow(dim, 0, k) for part in found)
        return func(*args, **(kwargs or {}))


def _with_stable_order(run: Run, tensors: Mapping[str, Tensor]) -> list[np.ndarray]:
    """Returns PyTorch's outputs if it sorts equal elements by their index; none if it sorts nothing."""
    try:
        with _StableOrder() as order:
            result = run(tensors)
        return [tensor.detach().cpu().numpy() for tensor in result] if order.sorted else []
    except Exception:  # a model may not run in such a mode
        return []


def _with_noise(run: Run, tensors: Mapping[str, Tensor], units: int = ROUNDING) -> list[np.ndarray]:
    """Returns PyTorch's outputs for inputs that differ by rounding; none if it cannot be computed."""
    real = {name: t for name, t in tensors.items() if t.is_floating_point() and t.dtype != torch.bfloat16}
    rounded = with_rounding({name: t.detach().cpu().numpy() for name, t in real.items()}, units)
    try:
        changed = {n: torch.from_numpy(rounded[n]).to(t.device) if n in real else t for n, t in tensors.items()}
        return [tensor.detach().cpu().numpy() for tensor in run(changed)]
    except Exception:  # the model may refuse these values
        return []


@dataclass
class Comparer:
    """Compares files with a model at several sizes.

    tensors: the inputs of the example, by name.
    roles: the roles of inputs in the file.
    """

    run: Run
    tensors: Mapping[str, Tensor]
    dimensions: Mapping[str, Dimension]
    assumptions: Assumptions
    roles: Mapping[str, str]
    tolerance: Tolerance
    check_hint: str

    def __post_init__(self) -> None:
        self.compared: list[Sizes] = []
        self.not_compared: list[str] = []
        self.unchanged: list[str] = []  # inputs that have the example's values in the comparison with other data

    def compare_example(self, file: File, expected: Sequence[Tensor], what: str) -> list[OutputReport]:
        """Compares with PyTorch's outputs for the example. Raises ExportError if one differs."""
        reports = compare_outputs(file, self.tensors, expected, self.tolerance, self.run)
        if wrong := [r for r in reports if not r.agrees]:
            parts = (f"'{r.name}' by {r.largest_difference:.3g} (scale {r.scale:.3g}): {r.why}" for r in wrong)
            text = f"{', '.join(parts)}; {self.tolerance.text()}"
            if self._is_random(expected):
                text += "; PyTorch's own results differ from run to run: pass random numbers as an input of the model"
            raise ExportError(f"{file.name}: {what} differ from PyTorch's: {text}")
        return reports

    def _is_random(self, expected: Sequence[Tensor]) -> bool:
        pairs = zip(expected, self.run(self.tensors), strict=False)
        arrays = ((a.detach().cpu().numpy(), b.detach().cpu().numpy()) for a, b in pairs)
        return any(not _report("", first, again, self.tolerance).agrees for first, again in arrays)

    def compare_at(self, files: Sequence[File], comparison: Comparison) -> None:
        """Compares at the first of the sizes that PyTorch accepts. Raises ExportError if a file differs or fails."""
        first_error = ""
        for given in comparison.sizes():
            sizes = coupled(given, self.dimensions)
            if sizes != given and not all(dimension.has(sizes[name]) for name, dimension in self.dimensions.items()):
                continue
            if self._changed(sizes) in self.compared[1:]:  # the first has the example's sizes
                return
            if not self._can_run(sizes, comparison):
                assumed = f"; the file assumes {comparison.breaks}" if comparison.breaks else ""
                what = f"the inputs would be too large{assumed}"
                first_error = first_error or f"{self._described(sizes)}: {what}"
                continue
            for draw in range(_DRAWS):
                try:
                    inputs, expected = self._other_data(sizes, 17 + draw)
                except Exception as error:  # the model does not accept these sizes or values
                    first_error = first_error or f"{self._described(sizes)}: PyTorch: {_first_line(error)}"
                    break
                try:
                    wrong = self._differences(files, sizes, inputs, expected)
                except RunError as error:
                    wrong = [str(error)]
                    if comparison.may_fail:
                        self.not_compared.append(f"{self._described(sizes)}: {error}"[:_MAX_ERROR])
                        return
                if not wrong:
                    self.compared.append(self._changed(sizes))
                    return
                if draw == _DRAWS - 1 or not self._depends_on_rounding(inputs, expected):
                    text = self._message(files[0].name, sizes, wrong)
                    raise OtherBranchError(text, sizes, inputs) if self.assumptions.broken(sizes) else ExportError(text)
        if first_error and not comparison.may_be_refused:
            self.not_compared.append(first_error)

    def _other_data(self, sizes: Sizes, seed: int) -> tuple[dict[str, Tensor], list[Tensor]]:
        """Returns inputs and PyTorch's outputs for them. At the example's sizes, integers and truth values change as
        far as the model accepts it."""
        inputs = other_inputs(self.tensors, self.dimensions, sizes, self.roles, seed)
        if self._changed(sizes):
            return inputs, self.run(inputs)
        choices = other_choices(inputs, self.roles, seed)
        self.unchanged = [
            f"other values of '{name}': none are like the example's"
            for name, tensor in inputs.items()
            if is_discrete(tensor) and name not in choices
        ]
        with suppress(Exception):
            return {**inputs, **choices}, self.run({**inputs, **choices})
        for name, other in choices.items():
            try:
                self.run({**inputs, name: other})
                inputs = {**inputs, name: other}
            except Exception as error:  # the model does not accept them
                self.unchanged.append(f"other values of '{name}': PyTorch: {_first_line(error)}")
        return inputs, self.run(inputs)

    def _can_run(self, sizes: Sizes, comparison: Comparison) -> bool:
        is_chosen = not comparison.breaks or is_small(sizes, self.dimensions)
        return is_chosen and fits(sizes, self.dimensions, self.tensors)

    def note_unknown(self) -> None:
        """Adds to the report the conditions that no sizes can be found for."""
        unknown = self.assumptions.not_evaluated()
        self.not_compared += [f"the file assumes {line}, which polyop cannot evaluate" for line in unknown]

    def require_no_numbers(self, may_be: bool) -> None:
        """Raises ExportError, or adds to the report if it `may_be`, that the program made a number of a dynamic size. A
        comparison does not show that the file is right: the program may depend on it at sizes that are not compared."""
        numbers = self.assumptions.numbers(self.dimensions)
        if may_be:
            self.not_compared += [
                f"all sizes but these: the program makes a number of a size, {line}" for line in numbers
            ]
        elif numbers:
            lines = "".join(f"\n  {line}" for line in listed(numbers))
            raise ExportError(
                "the program makes a number of a dynamic size, and the file has what follows from the example's:"
                f"{lines}\nwrite instead: a computation with the size itself, such as n > k * k in place of"
                " math.sqrt(n) > k, n ** 0.5, or torch.sym_float(n) in place of float(n)\nor leave the dimension out of"
                " `dynamic`, or name all sizes that the model is for: sizes={…}"
            )

    def require_all_dimensions(self) -> None:
        """Raises ExportError if a dynamic dimension had only the example's size in all comparisons."""
        for dimension in self.dimensions.values():
            if not dimension.optional and all(sizes.get(dimension.name) is None for sizes in self.compared):
                lines = listed(
                    [text for text in self.not_compared if f"{dimension.name} " in text] or self.not_compared
                )
                tried = "".join(f"\n  tried {text}" for text in lines)
                raise ExportError(
                    f"dynamic: '{dimension.name}' could be compared at no other size than the example's "
                    f"{dimension.example}{tried}\n  leave the dimension out of `dynamic`, or {self.check_hint}"
                )

    def _described(self, sizes: Sizes) -> str:
        return described(self._changed(sizes)) or "other data"

    def _changed(self, sizes: Sizes) -> Sizes:
        return {name: size for name, size in sizes.items() if size != self.dimensions[name].example}

    def _differences(
        self, files: Sequence[File], sizes: Sizes, inputs: Mapping[str, Tensor], expected: Sequence[Tensor]
    ) -> list[str]:
        found = []
        for file in files:
            try:
                reports = compare_outputs(file, inputs, expected, self.tolerance, self.run)
            except RunError:
                raise
            except ExportError as error:
                found.append(str(error))
                continue
            found += [f"'{r.name}' {r.why}" for r in reports if not r.agrees]
        return found

    def _depends_on_rounding(self, inputs: Mapping[str, Tensor], expected: Sequence[Tensor]) -> bool:
        """Says whether PyTorch's own outputs differ by more than the tolerance if inputs differ by rounding."""
        noisy = _with_noise(self.run, inputs)
        references = [tensor.detach().cpu().numpy() for tensor in expected]
        pairs = list(zip(references, noisy, strict=False))
        return any(not _report("", reference, other, self.tolerance).agrees for reference, other in pairs)

    def _message(self, file: str, sizes: Sizes, wrong: Sequence[str]) -> str:
        unequal = self.assumptions.unequal_at(sizes)
        changed = {n: size for n, size in sizes.items() if size != self.dimensions[n].example or n in unequal}
        where = (
            f"at {described(changed)} (the example has {described({n: self.dimensions[n].example for n in changed})})"
        )
        text = f"{file} differs from PyTorch {where if changed else 'for other data of the same sizes'}:"
        text += "".join(f"\n  {line}" for line in listed(wrong))
        broken = self.assumptions.broken(sizes)
        if broken:
            text += "\nthe file has the program of the example's sizes, for which PyTorch's capture assumed:"
            text += "".join(f"\n  {line}" for line in listed(broken))
            text += f"\nwrite instead: {_advice(broken, list(self.assumptions.stated(sizes, self.dimensions)))}"
        elif ones := [name for name, size in changed.items() if size == 1]:
            stated = ", ".join(f"torch.export.Dim('{name}', min=2)" for name in ones)
            text += f"\nPyTorch captures a program for sizes of 2 or more: state {stated}"
        return f"{text}\n{self.tolerance.text()}\n{self.check_hint}"


def _advice(broken: Sequence[str], stated: Sequence[str]) -> str:
    """`stated`: dimensions whose sizes fulfil the conditions."""
    text = " ".join(broken)
    if re.search(r"math\.(ceil|floor)|[^/]/ ", text):
        advice = "integers, such as (n + k - 1) // k, in place of math.ceil(n / k)"
    elif "%" in text:
        advice = "a computation without a branch, such as pad(x, (0, -n % k)), or pad the input outside of the model"
    else:
        advice = "torch.cond in place of `if`"
    sizes = ", ".join(stated) or "torch.export.Dim(name, min=…, max=…)"
    return f"{advice}\nor state the sizes that the model is for: {sizes}"


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__


def flat(result: Any) -> list[Tensor]:
    """Returns the tensors of a result, in the order of the exporters' outputs."""
    if result is None:
        return []
    if isinstance(result, Tensor):
        return [as_real(result)]
    if isinstance(result, int | float):  # such as the size of a dimension
        return [torch.tensor(result)]
    if isinstance(result, Mapping):
        result = list(result.values())
    if not isinstance(result, Sequence) or isinstance(result, str | bytes):
        raise ExportError(f"outputs: expected tensors and numbers, got a value of type {type(result).__name__}")
    return [tensor for part in result for tensor in flat(part)]
