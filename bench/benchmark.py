# SPDX-License-Identifier: Apache-2.0
"""What benchmarks measure: the cases of an operator, which the file cases.py in its folder states.

    cases = Cases(__file__)


    @cases.cpu("1,000 rois")                          bench/run.py: nodes in ONNX Runtime, and rivals
    def _(threads: int) -> Contest: ...


    @cases.gpu("1,000 rois")                          bench/gpu.py: a function on torch's default device, and rivals
    def _() -> Contest | Call: ...


    @cases.differentiable("1,000 rois", F32, F16)     bench/gpu.py: the forward and the backward pass in these types
    def _(dtype: torch.dtype) -> Call: ...


    @cases.gradient("roi_align, 1,000 rois")          bench/gradients.py: the backward pass on the CPU
    def _() -> Call: ...


    @cases.growth("rois", 100, 100_000)               bench/growth.py: calls over sizes
    def _(n: int) -> Call: ...


    cases.small([(2, 5), (3, 5)], axis=1)             tests of gradients: inputs and attributes of a small call

A title may be a format of parameters, with one row for each value of `over`. What the operators of a room share is in
ops/<room>/cases.py. The files import neither a runtime nor a rival before a case is prepared.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import projects
import torch
from torch import Tensor

import polyop.functional  # noqa: F401  torch.ops.polyop

ROOT = Path(__file__).resolve().parent.parent
Run = Callable[[], Any]
F32, F16 = torch.float32, torch.float16


@dataclass
class Case:
    """A row of a benchmark. `make` prepares it."""

    operator: str
    title: str
    make: Callable[..., Any]
    published: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Of rivals that are not installed here: milliseconds with 1 and 2 threads."""
    dtype: torch.dtype = F32
    capturable: bool = True
    """False for calls that a CUDA graph cannot hold: their output sizes depend on values, so they wait for the GPU, or
    they are backward passes, which run on the stream of the forward pass."""
    sizes: tuple[int, int] = (0, 0)
    """The smallest and the largest, for growth."""


@dataclass
class Contest:
    """A call, and the calls of others that compute the same: in ONNX Runtime, or on torch's default device."""

    ours: Run
    rivals: dict[str, Run] = field(default_factory=dict)
    bytes_moved: float = 0  # inputs read once and outputs written once
    flops: float = 0
    tolerance: float = 1e-4  # absolute, because outputs are near 1; results are checked before the timing
    same: Callable[[Any, Any], bool] | None = None
    yardstick: tuple[str, Run] | None = None  # another computation of the same size, instead of the limit
    reads: Sequence[Any] = ()  # on a GPU: what every implementation must read


@dataclass
class Call:
    """A function of the inputs, which is differentiable except for growth.

    `functions` of others have the same arguments and gradients in PyTorch. `forwards` have the same arguments and no
    gradients. `backwards` are called with the gradient of the result and these arguments, and return the gradients.
    """

    function: Callable[..., Any]
    inputs: Sequence[Any]
    functions: dict[str, Callable[..., Tensor]] = field(default_factory=dict)
    forwards: dict[str, Callable[..., Any]] = field(default_factory=dict)
    backwards: dict[str, Callable[..., Sequence[Tensor]]] = field(default_factory=dict)
    also_reads: Sequence[Tensor] = ()
    flops: float = 0
    same: Callable[[Any, Any], bool] | None = None

    def run(self) -> list[Tensor]:
        with torch.inference_mode():
            return flat(self.function(*self.inputs))

    def beside(self, function: Callable[..., Tensor]) -> Call:
        """Adds a function of PyTorch's operators."""
        self.functions["torch"] = function
        return self

    def against(self, title: str, forward: Callable[..., Any] | None, backward: Callable[..., Any] | None) -> Call:
        if forward is not None:
            self.forwards[title] = forward
        if backward is not None:
            self.backwards[title] = backward
        return self

    def against_mmcv(
        self,
        forward: Callable[..., Any] | None = None,
        backward: Callable[..., Any] | None = None,
        on_cpu: bool = False,
    ) -> Call:
        """Adds MMCV's functions, if they are compiled. `on_cpu`: there are loops for the CPU."""
        some = (on_cpu or projects.on_gpu()) and projects.mmcv() is not None
        return self.against("MMCV", forward, backward) if some else self

    def against_dcnv4(self, forward: Callable[..., Any], backward: Callable[..., Any]) -> Call:
        """Adds DCNv4's kernels, if they are compiled."""
        some = projects.on_gpu() and projects.dcnv4() is not None
        return self.against("DCNv4", forward, backward) if some else self

    def against_torchvision(self, function: Callable[..., Tensor]) -> Call:
        """Adds a function of torchvision, if it is installed or there is a checkout."""
        if projects.torchvision() is not None:
            self.functions["torchvision"] = function
        return self


Add = Callable[[Callable[..., Any]], Callable[..., Any]]


class Cases:
    """The cases of the operator whose folder has the file."""

    def __init__(self, file: str) -> None:
        self.operator = Path(file).parent.name
        self.rows: dict[str, list[Case]] = {kind: [] for kind in ("cpu", "gpu", "gradient", "growth", "small")}

    def _add(self, kind: str, title: str, over: Iterable[Any] | None, operator: str = "", **options: Any) -> Add:
        def add(make: Callable[..., Any]) -> Callable[..., Any]:
            for value in [()] if over is None else over:
                given = value if isinstance(value, tuple) else (value,)
                prepare = make if over is None else lambda *first, given=given: make(*first, *given)
                self.rows[kind].append(Case(operator or self.operator, title.format(*given), prepare, **options))
            return make

        return add

    def cpu(self, title: str, over: Iterable[Any] | None = None, **options: Any) -> Add:
        """`make` gets the number of threads, then the parameters."""
        return self._add("cpu", title, over, **options)

    def gpu(self, title: str, over: Iterable[Any] | None = None, **options: Any) -> Add:
        def add(make: Callable[..., Any]) -> Callable[..., Any]:
            def contest(*given: Any) -> Contest:
                made = make(*given)
                return forward_of(made) if isinstance(made, Call) else made

            self._add("gpu", title, over, **options)(contest)
            return make

        return add

    def gradient(self, title: str, over: Iterable[Any] | None = None) -> Add:
        return self._add("gradient", title, over)

    def growth(self, what: str, smallest: int, largest: int) -> Add:
        """`make` gets the size."""
        return self._add("growth", what, None, sizes=(smallest, largest))

    def differentiable(self, title: str, *dtypes: torch.dtype, backward: bool = True, capturable: bool = True) -> Add:
        def add(make: Callable[..., Any]) -> Callable[..., Any]:
            for dtype in dtypes or (F32,):
                self.gpu(title, dtype=dtype, capturable=capturable)(partial(make, dtype))
                if backward:
                    reverse = partial(lambda dtype: backward_of(make(dtype)), dtype)
                    self.gpu(f"{title}, backward", dtype=dtype, capturable=False)(reverse)
            return make

        return add

    def small(self, inputs: Sequence[Any], variant: str = "", **attributes: Any) -> None:
        """An input is a tensor, a function that makes one, or the shape of a uniform random one. `variant` is a word
        that distinguishes several calls of an operator.
        """

        def make() -> tuple[dict[str, Any], list[Tensor]]:
            made = [torch.rand(x) if isinstance(x, tuple) else x() if callable(x) else x for x in inputs]
            return attributes, made

        self._add("small", "-".join(filter(None, [self.operator, variant])), None)(make)

    def _again(self, title: str, how: str, make: Callable[[Contest], Contest]) -> None:
        """Adds a CPU case that is another one with other data."""
        (case,) = [case for case in self.rows["cpu"] if case.title == title]
        self.cpu(f"{title}, {how}", operator=case.operator)(lambda threads: make(case.make(threads)))

    def in_half(self, *titles: str) -> None:
        """Adds CPU cases with features and weights in half precision, compared with the same in float."""
        for title in titles:
            for name in ("f16", "bf16"):
                self._again(title, name, lambda full, name=name: Contest(
                    full.ours.in_half(name, kept=("scales",)), yardstick=("the same in f32", full.ours)))  # fmt: skip

    def off_line(self, *titles: str) -> None:
        """Adds CPU cases with outputs after the start of a cache line, as in NumPy's arrays, compared with outputs at
        its start."""
        for title in titles:
            self._again(title, "output 16 bytes off", lambda usual: Contest(
                usual.ours.placed(0, 16), yardstick=("output at a line's start", usual.ours.placed(0, 0))))  # fmt: skip


def cases(kind: str) -> list[Case]:
    """Returns the cases of all operators of a kind: "cpu", "gpu", "gradient", "growth" or "small"."""
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    files = [file.relative_to(ROOT).with_suffix("") for file in sorted(ROOT.glob("ops/*/*/cases.py"))]
    written, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # folders of ops/ are rooms and operators
    try:
        return [case for file in files for case in import_module(".".join(file.parts)).cases.rows[kind]]
    finally:
        sys.dont_write_bytecode = written


def selected(rows: Sequence[Case], words: str) -> list[Case]:
    """Returns the cases whose operator or title contains one of the words; `=nms` is that operator alone."""
    parts = [word for word in words.split(",") if word]

    def matches(case: Case, word: str) -> bool:
        return case.operator == word[1:] if word[0] == "=" else word in f"{case.operator} {case.title}"

    chosen = [case for case in rows if not parts or any(matches(case, word) for word in parts)]
    if not chosen:
        raise SystemExit(f"no case has any of: {', '.join(parts)}")
    return chosen


def call(operator: str, *tensors: Any, **attributes: Any) -> Call:
    """Returns a call of torch.ops.polyop.<operator> that is not differentiated."""
    return Call(lambda *given: getattr(torch.ops.polyop, operator)(*given, **attributes), tensors)


def of(operator: str, tensors: Sequence[Tensor | None], indices: tuple[int, ...] = (0,), **attributes: Any) -> Call:
    """Returns a call of torch.ops.polyop.<operator>, with respect to the tensors with these indices."""

    def function(*given: Tensor) -> Tensor:
        full = list(tensors)
        for i, tensor in zip(indices, given, strict=True):
            full[i] = tensor
        result = getattr(torch.ops.polyop, operator)(*full, **attributes)
        return result if isinstance(result, Tensor) else result[0]

    others = [tensor for i, tensor in enumerate(tensors) if i not in indices and tensor is not None and tensor.dim()]
    return Call(function, [tensors[i] for i in indices], also_reads=others)


def without_gradient(run: Run) -> Run:
    def called() -> Any:
        with torch.no_grad():
            return run()

    return called


def forward_of(call: Call) -> Contest:
    others = {
        name: without_gradient(lambda f=f: f(*call.inputs)) for name, f in {**call.functions, **call.forwards}.items()
    }
    ours = without_gradient(lambda: call.function(*call.inputs))
    return Contest(ours, others, flops=call.flops, same=call.same, reads=[*call.inputs, *call.also_reads])


def derivative(function: Callable[..., Tensor], inputs: Sequence[Tensor], grad: Tensor) -> Run:
    """Returns the backward pass of a function, whose forward pass runs now."""
    leaves = [t.detach().requires_grad_() for t in inputs]
    output = function(*leaves)
    return lambda: torch.autograd.grad(output, leaves, grad, retain_graph=True, allow_unused=True)


def later(prepare: Callable[[], Run]) -> Run:
    """Returns a run that is prepared at its first call, so that errors are those of the rival."""
    runs: list[Run] = []

    def run() -> Any:
        if not runs:
            runs.append(prepare())
        return runs[0]()

    return run


def backward_of(call: Call, grad: Tensor | None = None) -> Contest:
    """Returns the backward passes for a gradient of the result, by default a random one. The forward pass of a rival
    runs first: it may compute what the backward pass needs.
    """
    if grad is None:
        with torch.no_grad():
            grad = torch.randn_like(call.function(*call.inputs))

    def of_rival(name: str) -> Run:
        if name in call.forwards:
            call.forwards[name](*call.inputs)
        return partial(call.backwards[name], grad, *call.inputs)

    others = {name: later(partial(derivative, f, call.inputs, grad)) for name, f in call.functions.items()}
    others |= {name: without_gradient(later(partial(of_rival, name))) for name in call.backwards}
    reads = [grad, *call.inputs, *call.also_reads]
    return Contest(derivative(call.function, call.inputs, grad), others, flops=2 * call.flops, reads=reads)


def mmcv_rival(run: Run) -> dict[str, Run]:
    return {} if projects.mmcv() is None else {"MMCV": run}


def torchvision_rival(run: Run) -> dict[str, Run]:
    return {} if projects.torchvision() is None else {"torchvision": run}


def flat(value: Any) -> list[Tensor]:
    """Returns the tensors of a result, without None."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for part in value for tensor in flat(part)]
    return []


def difference(ours: Any, theirs: Any) -> float:
    """Returns the greatest difference of two results: of floats the mean relative to the mean, because where samples
    are nearly equal, other maxima may be chosen; of integers the share of unequal ones; 1 for other shapes.
    """
    worst = 0.0
    for a, b in zip(flat(ours), flat(theirs), strict=False):
        if a.shape != b.shape:
            return 1.0
        if a.is_floating_point() or a.is_complex():
            a, b = (t if t.is_complex() else t.float() for t in (a, b))
            finite = a.isfinite() & b.isfinite()
            if not bool((a.isfinite() == b.isfinite()).all()):
                return 1.0
            mean = float(a[finite].abs().mean()) if bool(finite.any()) else 0.0
            error = float((a[finite] - b[finite]).abs().mean()) if bool(finite.any()) else 0.0
            worst = max(worst, error / mean if mean > 0 else error)
        else:
            worst = max(worst, float((a != b).float().mean()) if a.numel() else 0.0)
    return worst


def nearly_same_set(ours: Any, theirs: Any) -> bool:
    """Compares the first tensors as sets: borderline decisions in another precision may differ for a hundredth."""
    a, b = (set(flat(result)[0].flatten().tolist()) for result in (ours, theirs))
    return len(a ^ b) <= len(a | b) / 100
