# SPDX-License-Identifier: Apache-2.0
"""Calls of PyTorch's operators and modules, from PyTorch's own test databases, as models with tensor inputs."""

from __future__ import annotations

import copy
import functools
import itertools
import random
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db
from torch.testing._internal.opinfo.core import OpInfo
from torch.utils import _pytree as pytree

from tests.support.model_calls import CALLS
from tests.support.pytorch_export import MAX_SAMPLES

DTYPES = {
    "f32": torch.float32,
    "f64": torch.float64,
    "i64": torch.int64,
    "bool": torch.bool,
    "c64": torch.complex64,
}
MAX_ELEMENTS = 1 << 16
"""Of two samples the larger one shows more, but the larger ones of some operators take minutes to export."""
# Their results are random, or not initialised: only types and shapes are compared.
_UNSPECIFIED = ("empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided")
# Their vectors have any sign: PyTorch's own tests compare what its samples compute from the results.
_SIGNS = ("linalg.eig", "linalg.eigh", "linalg.svd", "svd")


def _power_sums(values: torch.Tensor) -> list[torch.Tensor]:
    """Returns what determines numbers but not their order."""
    return [(values**k).mean(-1) for k in (1, 2, 3)]


def _of_eigenvectors(result: Any) -> Any:
    """Returns the matrix, and the lengths of the eigenvectors."""
    values, vectors = result
    product = vectors * values.unsqueeze(-2)
    return torch.linalg.solve(vectors, product, left=False), vectors.abs().square().sum(-2)


def _of_phases(result: Any) -> Any:
    """Returns the product of Q and R, the sizes of R, and which columns are orthonormal."""
    q, r = result
    return (q @ r, r.abs(), q.mH @ q) if q.numel() else r.abs()


_FACTORS = {"lu_unpack": 0, "lu_solve": 1, "linalg.lu_solve": 0, "linalg.ldl_solve": 0}
"""The inputs of operators whose pivots are the next input."""
# Of complex matrices the order of the eigenvalues and the phases of QR are open, too.
_COMPLEX: dict[str, Any] = {
    "linalg.eigvals": _power_sums,
    "linalg.eig": _of_eigenvectors,
    "linalg.qr": _of_phases,
    "qr": _of_phases,
}
_MODEL = "model: "


class Call(torch.nn.Module):
    """A call of a function whose tensors are inputs and whose other arguments are constants."""

    def __init__(self, function: Any, arguments: Any) -> None:
        super().__init__()
        self.function = function
        leaves, self.spec = pytree.tree_flatten(arguments)
        self.constants = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        self.given = [isinstance(leaf, torch.Tensor) for leaf in leaves]

    def forward(self, *tensors: torch.Tensor) -> Any:
        left = iter(tensors)
        leaves = [next(left) if given else c for given, c in zip(self.given, self.constants, strict=True)]
        args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        return pytree.tree_map(_readable, self.function(*args, **kwargs))


def _readable(value: Any) -> Any:
    """Returns a tensor that NumPy can hold: it has no bfloat16."""
    return value.float() if isinstance(value, torch.Tensor) and value.dtype == torch.bfloat16 else value


@dataclass
class Case:
    """One call: a model, and its inputs."""

    model: torch.nn.Module
    inputs: tuple[torch.Tensor, ...]
    unspecified: bool
    dynamic: bool = True
    factors: int | None = None
    """The input with factors of matrices whose pivots are the next input."""

    def fits(self, inputs: Sequence[torch.Tensor]) -> bool:
        """Says whether sizes and pivots fit to each other: PyTorch reads beyond a tensor if they do not."""
        if self.factors is None:
            return True
        factors, pivots = inputs[self.factors : self.factors + 2]
        rows, columns = factors.shape[-2:]
        return pivots.shape[-1] == min(rows, columns) and bool(((pivots >= 1) & (pivots <= rows)).all())


def _call(function: Any, args: Sequence[Any], kwargs: dict[str, Any], unspecified: bool) -> Case:
    leaves = pytree.tree_leaves((tuple(args), kwargs))
    tensors = tuple(leaf.detach() for leaf in leaves if isinstance(leaf, torch.Tensor))
    return Case(Call(function, (tuple(args), kwargs)), tensors, unspecified)


def _rank_and_size(case: Case) -> tuple[bool, int, int]:
    """Orders samples: the best one has no empty tensor, the most dimensions and the most elements."""
    sizes = [t.numel() for t in case.inputs]
    total = sum(sizes)
    return (0 not in sizes and total <= MAX_ELEMENTS, max((t.dim() for t in case.inputs), default=0), total)


def _processed(function: Any, process: Any, *args: Any, **kwargs: Any) -> Any:
    return process(function(*args, **kwargs))


def operator_name(op: OpInfo) -> str:
    return f"{op.name} {op.variant_test_name}".strip().replace(" ", ".")


def names() -> list[str]:
    """Returns the names of all cases: those of operators, then those of modules, which begin with `nn.`."""
    return [*sorted({operator_name(op) for op in op_db}), *sorted({info.name.replace("_", ".") for info in module_db})]


def model_names() -> list[str]:
    """Returns the names of calls that models make, which begin with `model: `."""
    return [f"{_MODEL}{name}" for name in CALLS]


def _model_case(name: str, dtype: torch.dtype) -> Case:
    chosen = CALLS[name]
    call = chosen.call
    if isinstance(call, torch.nn.Module):
        call = copy.deepcopy(call).to(dtype)
    inputs = [t.to(dtype) if t.is_floating_point() else t for t in chosen.inputs]
    case = _call(call, inputs, {}, False)
    case.dynamic = chosen.dynamic
    return case


def _operator_cases(op: OpInfo, dtype: torch.dtype) -> list[Case]:
    if dtype not in op.dtypes:
        # Operators of integers and of complex numbers count once, with the types of float32.
        others = (torch.int64, torch.bool, torch.complex64) if dtype == torch.float32 else ()
        dtype = next((other for other in others if other in op.dtypes), dtype)
    if dtype not in op.dtypes:
        return []
    torch.manual_seed(0)
    cases = []
    for sample in itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=False), MAX_SAMPLES):
        process = sample.output_process_fn_grad if op.name in _SIGNS else None
        if dtype.is_complex:
            process = _COMPLEX.get(op.name, process)
        function = op.op if process is None else partial(_processed, op.op, process)
        case = _call(function, (sample.input, *sample.args), dict(sample.kwargs), op.name in _UNSPECIFIED)
        case.factors = _FACTORS.get(op.name)
        cases.append(case)
    return cases


def _module_cases(info: Any, dtype: torch.dtype) -> list[Case]:
    if dtype not in info.dtypes:
        return []
    torch.manual_seed(0)
    samples = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=False, training=False)
    cases = []
    for sample in samples:
        if sample.forward_input is None:
            continue
        built, given = sample.constructor_input, sample.forward_input
        try:
            module = info.module_cls(*built.args, **{"device": "cpu", "dtype": dtype, **built.kwargs})
        except TypeError:  # modules without parameters accept neither
            module = info.module_cls(*built.args, **built.kwargs)
        cases.append(_call(module.eval(), given.args, dict(given.kwargs), False))
    return cases


@functools.lru_cache(maxsize=1)  # samples of one operator follow each other
def _cases(name: str, dtype: torch.dtype) -> list[Case]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for op in op_db:
            if operator_name(op) == name:
                return _operator_cases(op, dtype)
        for info in module_db:
            if info.name.replace("_", ".") == name:
                return _module_cases(info, dtype)
    raise KeyError(name)


def random_samples(names: list[str], dtypes: list[str], count: int, seed: int) -> list[tuple[str, str]]:
    """Returns a random choice of samples, as names with numbers, such as `cov#2`, and types."""
    chooses = random.Random(seed)
    found: dict[tuple[str, str], None] = {}
    while len(found) < count:
        name, dtype = chooses.choice(names), chooses.choice(dtypes)
        try:
            samples = len(_cases(name, DTYPES[dtype]))
        except Exception:  # samples may need packages or devices that are missing
            continue
        if samples:
            found[f"{name}#{chooses.randrange(samples)}", dtype] = None
    return list(found)


def case(name: str, dtype: str) -> Case | None:
    """Returns the call of a name: the largest sample of the first ones, or that of a number, such as `cov#2`.

    Returns None if the operator lacks the type or the sample.
    """
    if name.startswith(_MODEL):
        return _model_case(name.removeprefix(_MODEL), DTYPES[dtype])
    name, _, number = name.partition("#")
    cases = _cases(name, DTYPES[dtype])
    if not number:
        return max(cases, key=_rank_and_size, default=None)
    return cases[int(number)] if int(number) < len(cases) else None


def tensors_of(result: Any) -> Iterator[torch.Tensor]:
    """Yields the tensors and numbers of a result in the order of the exporter's outputs."""
    for leaf in pytree.tree_leaves(result):
        if isinstance(leaf, torch.Tensor):
            yield torch.view_as_real(leaf.resolve_conj()) if leaf.is_complex() else leaf
        elif isinstance(leaf, (bool, int, float)):
            yield torch.tensor(leaf)
