# SPDX-License-Identifier: Apache-2.0
"""The parts of a row of bench/gpu.py. Tensors are created on torch's default device, which bench/gpu.py sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import gpu_rivals
import torch
from torch import Tensor

Run = Callable[[], Any]
F32, F16 = torch.float32, torch.float16


@dataclass
class Contest:
    """A call, and the calls of others that compute the same."""

    ours: Run
    reads: Sequence[Tensor]  # what every implementation must read
    rivals: dict[str, Run] = field(default_factory=dict)
    flops: float = 0  # of matrix products
    same: Callable[[Any, Any], float] | None = None  # the difference of two results, instead of `difference`


@dataclass
class Case:
    """A row. `capturable` is false for calls that a CUDA graph cannot hold: their output sizes depend on values, so
    they wait for the GPU, or they are backward passes, which run on the stream of the forward pass.
    """

    operator: str
    title: str
    dtype: torch.dtype
    make: Callable[[], Contest]
    capturable: bool = True


@dataclass
class Call:
    """A differentiable function of the inputs, which gives two rows: forward and backward.

    `functions` of others have the same arguments and gradients in PyTorch. `forwards` have the same arguments and no
    gradients. `backwards` are called with the gradient of the result and these arguments, and return the gradients.
    """

    function: Callable[..., Tensor]
    inputs: list[Tensor]
    functions: dict[str, Callable[..., Tensor]] = field(default_factory=dict)
    forwards: dict[str, Callable[..., Any]] = field(default_factory=dict)
    backwards: dict[str, Callable[..., Sequence[Tensor]]] = field(default_factory=dict)
    also_reads: list[Tensor] = field(default_factory=list)
    flops: float = 0
    same: Callable[[Any, Any], float] | None = None

    def against_mmcv(
        self, forward: Callable[..., Any], backward: Callable[..., Sequence[Tensor]] | None = None
    ) -> Call:
        """Adds MMCV's kernels, if they are compiled."""
        if gpu_rivals.mmcv() is not None:
            self.forwards["MMCV"] = forward
            if backward is not None:
                self.backwards["MMCV"] = backward
        return self

    def against_dcnv4(self, forward: Callable[..., Any], backward: Callable[..., Sequence[Tensor]]) -> Call:
        """Adds DCNv4's kernels, if they are compiled."""
        if gpu_rivals.dcnv4() is not None:
            self.forwards["DCNv4"], self.backwards["DCNv4"] = forward, backward
        return self

    def against_torchvision(self, function: Callable[..., Tensor]) -> Call:
        """Adds a function of torchvision, if it is installed."""
        if gpu_rivals.torchvision() is not None:
            self.functions["torchvision"] = function
        return self


CASES: list[Case] = []


def case(
    operator: str, title: str, dtype: torch.dtype = F32, capturable: bool = True
) -> Callable[[Callable[[], Contest]], Callable[[], Contest]]:
    def add(make: Callable[[], Contest]) -> Callable[[], Contest]:
        CASES.append(Case(operator, title, dtype, make, capturable))
        return make

    return add


def without_gradient(run: Run) -> Run:
    def call() -> Any:
        with torch.no_grad():
            return run()

    return call


def forward_of(call: Call) -> Contest:
    rivals = {
        name: without_gradient(lambda f=f: f(*call.inputs)) for name, f in {**call.functions, **call.forwards}.items()
    }
    ours = without_gradient(lambda: call.function(*call.inputs))
    return Contest(ours, [*call.inputs, *call.also_reads], rivals, call.flops, call.same)


def backward_of(call: Call) -> Contest:
    with torch.no_grad():
        grad = torch.randn_like(call.function(*call.inputs))

    def of(function: Callable[..., Tensor]) -> Run:
        leaves = [t.detach().requires_grad_() for t in call.inputs]
        output = function(*leaves)
        return lambda: torch.autograd.grad(output, leaves, grad, retain_graph=True)

    def prepared(function: Callable[..., Tensor]) -> Run:
        """Runs the forward pass of a rival at its first call, so that its errors are those of the rival."""
        runs: list[Run] = []

        def call_it() -> Any:
            if not runs:
                runs.append(of(function))
            return runs[0]()

        return call_it

    rivals = {name: prepared(f) for name, f in call.functions.items()}
    for name, loop in call.backwards.items():
        rivals[name] = without_gradient(lambda loop=loop: loop(grad, *call.inputs))
    return Contest(of(call.function), [grad, *call.inputs, *call.also_reads], rivals, 2 * call.flops)


def differentiable(
    operator: str, title: str, *dtypes: torch.dtype, backward: bool = True, capturable: bool = True
) -> Callable[[Callable[[torch.dtype], Call]], Callable[[torch.dtype], Call]]:
    """Registers the forward and the backward pass in these types, by default float32."""

    def add(make: Callable[[torch.dtype], Call]) -> Callable[[torch.dtype], Call]:
        for dtype in dtypes or (F32,):
            CASES.append(Case(operator, title, dtype, lambda d=dtype: forward_of(make(d)), capturable))
            if backward:
                name = f"{title}, backward"
                CASES.append(Case(operator, name, dtype, lambda d=dtype: backward_of(make(d)), False))
        return make

    return add


def mmcv_rival(run: Run) -> dict[str, Run]:
    return {} if gpu_rivals.mmcv() is None else {"MMCV": run}


def torchvision_rival(run: Run) -> dict[str, Run]:
    return {} if gpu_rivals.torchvision() is None else {"torchvision": run}


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


def set_difference(ours: Any, theirs: Any) -> float:
    """Returns the share of the first tensor's elements that only one of the results has."""
    a, b = (set(flat(result)[0].flatten().tolist()) for result in (ours, theirs))
    return len(a ^ b) / max(1, len(a | b))


def set_close(ours: Any, theirs: Any) -> float:
    """Like `set_difference`, but borderline decisions in another precision may differ for a hundredth of the set."""
    share = set_difference(ours, theirs)
    return 0.0 if share <= 0.01 else share
