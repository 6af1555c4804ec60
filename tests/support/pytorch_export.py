# SPDX-License-Identifier: Apache-2.0
"""Exports calls of PyTorch's operators, runs them in ONNX Runtime, compares with PyTorch, and writes a row for each.

    python -m tests.support.pytorch_export --out rows.jsonl [--types f32,f64] [--shapes static,auto,sizes]
                                           [--names REGEX] [--shard 0/1] [--without-polyop] [--models]
                                           [--samples 600] [--seed 0]

A row is a JSON object on a line: name, type, shapes, status, reason, seconds. Rows that the file has are kept and not
computed again, so that an interrupted run continues. A child process computes them: one that hangs or crashes costs
only its row.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import re
import select
import signal
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

STATUSES = {
    "right": "The file's outputs agree with PyTorch's.",
    "wrong": "The file computes something else.",
    "no form": "An operator has no ONNX form.",
    "data": "The program depends on values that the exporter does not know.",
    "error": "The exporter fails otherwise.",
    "refused": "ONNX Runtime does not load or run the file.",
    "hangs": "The export takes longer than the limit, or ends the process.",
    "not run": "PyTorch itself does not run the call, or the operator lacks the type.",
}
LIMIT_S = 90.0
"""The processor time of a row. A row that waits as long as ten of them hangs, too."""
MAX_SAMPLES = 64
"""The number of samples of an operator that are taken from PyTorch's databases."""
TABLE = Path(__file__).parents[1] / "data" / "pytorch_operators.json"
"""The status of each case, as last measured: by name, then by type and shapes, such as "f32 static"."""


def _random(model: Any, inputs: tuple[Any, ...]) -> bool:
    import torch

    from tests.support.pytorch_cases import tensors_of

    def result(seed: int) -> list[Any]:
        torch.manual_seed(seed)
        with mock.patch("torch.manual_seed"):  # samples of random operators set one seed for each call
            return [torch.nan_to_num(t) for t in tensors_of(model(*(t.clone() for t in inputs)))]

    first = result(1)
    few = sum(t.numel() for t in first) <= 16  # a few random booleans are often equal
    return any(not all(map(torch.equal, first, result(seed))) for seed in range(2, 18 if few else 3))


def _in_double(model: Any, inputs: tuple[Any, ...], like: list[Any]) -> list[Any]:
    """Returns the model's results in double precision, rounded; none if it does not run in it."""
    import torch

    from tests.support.pytorch_cases import tensors_of

    try:
        with torch.no_grad():
            wide = [t.double() if t.dtype == torch.float32 else t.clone() for t in inputs]
            return [x.to(old.dtype) for x, old in zip(tensors_of(model(*wide)), like, strict=True)]
    except Exception:  # the parameters of a module are of type float32
        return []


def _difference(got: list[Any], expected: list[Any], same_values: bool, rtol: float, atol: float) -> str:
    """Returns how results differ; empty if they agree."""
    import numpy as np

    if len(got) != len(expected):
        return f"expected {len(expected)} outputs, got {len(got)}"
    for i, (value, tensor) in enumerate(zip(got, expected, strict=True)):
        if value.shape != tuple(tensor.shape):
            return f"output {i}: expected shape {list(tensor.shape)}, got {list(value.shape)}"
        reference = tensor.detach().numpy()
        if value.dtype != reference.dtype:
            return f"output {i}: expected type {reference.dtype}, got {value.dtype}"
        if same_values and not np.allclose(value, reference, rtol, atol, equal_nan=True):
            with np.errstate(all="ignore"):
                wide = np.float64 if value.dtype.kind != "c" else np.complex128
                largest = np.nanmax(np.abs(value.astype(wide) - reference.astype(wide)))
            return f"output {i}: differs by up to {largest:.3g}"
    return ""


def _translating(with_polyop: bool) -> AbstractContextManager[None]:
    if not with_polyop:
        return nullcontext()
    import polyop

    return polyop.translations()


def outcome(name: str, dtype: str, shapes: str, with_polyop: bool = True) -> tuple[str, str]:
    """Exports one call and runs it. Returns the status and the reason."""
    import onnxruntime as ort
    import torch

    from tests.support.pytorch_cases import case, tensors_of

    try:
        chosen = case(name, dtype)
    except Exception as error:  # samples may need packages or devices that are missing
        return "not run", f"{type(error).__name__}: {error}"[:300]
    if chosen is None:
        return "not run", "the operator lacks the type"
    model, inputs = chosen.model, chosen.inputs
    try:
        with torch.no_grad():
            unspecified = chosen.unspecified or _random(model, inputs)
            torch.manual_seed(1)
            expected = list(tensors_of(model(*(t.clone() for t in inputs))))
    except Exception as error:
        return "not run", f"{type(error).__name__}: {error}"[:300]
    auto = torch.export.Dim.AUTO
    dynamic = None
    if shapes != "static" and not chosen.dynamic:
        return "not run", "its sizes are fixed"
    if shapes != "static" and inputs:
        # PyTorch's exporter takes 1 as a constant anyway, and fails at a size of 0 (integer modulo by zero).
        dynamic = (tuple({axis: auto for axis, size in enumerate(t.shape) if size} for t in inputs),)
    try:
        with torch.no_grad(), _translating(with_polyop):
            program = torch.onnx.export(
                model, tuple(t.clone() for t in inputs), dynamo=True, verbose=False, dynamic_shapes=dynamic
            )
    except Exception as error:
        text = f"{type(error).__name__}: {error} {error.__cause__}"
        kind = "error"
        if re.search(r"No ONNX function found|No decompositions registered|not implemented", text):
            kind = "no form"
        elif re.search(r"data-dependent|DataDependent|GuardOn|UnboundBacked|unbacked|\.item\(\)", text):
            kind = "data"
        found = re.search(r"(No ONNX function found for <OpOverload\([^>]*>|No decompositions registered[^\n]*)", text)
        cause = error.__cause__ or error
        return kind, (found[0] if found else f"{type(cause).__name__}: {cause}")[:400]
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    if with_polyop:
        import polyop

        options.register_custom_ops_library(polyop.get_onnxruntime_op_path())
    tolerance = (1e-4, 1e-5) if dtype == "f64" else (1e-3, 1e-4)

    def compared(given: tuple[Any, ...], expected: list[Any]) -> tuple[str, str]:
        try:
            feeds = dict(zip(names, (t.numpy() for t in tensors_of(given)), strict=True))
            got = session.run(None, {k: v for k, v in feeds.items() if k in needed})
        except Exception as error:
            return "refused", f"{type(error).__name__}: {error}"[:400]
        difference = _difference(got, expected, not unspecified, *tolerance)
        if difference and dtype == "f32" and not _difference(got, _in_double(model, given, expected), True, *tolerance):
            return "right", f"PyTorch's float32 result is not: {difference}"
        return ("wrong", difference) if difference else ("right", "")

    try:
        data = program.model_proto.SerializeToString()
        session = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        return "refused", f"{type(error).__name__}: {error}"[:400]
    names = [value.name for value in program.model.graph.inputs]
    needed = {i.name for i in session.get_inputs()}
    status, reason = compared(inputs, expected)
    count = len(expected)
    if status == "right" and shapes == "sizes" and dynamic:
        for other in filter(chosen.fits, _of_other_sizes(program.exported_program, inputs)):
            try:
                with torch.no_grad():
                    torch.manual_seed(1)
                    expected = list(tensors_of(model(*(t.clone() for t in other))))
            except Exception:  # PyTorch refuses the sizes, or values that do not fit to them
                continue
            if len(expected) != count:  # the parts of a tensor: a file has a fixed number of outputs
                continue
            status, reason = compared(other, expected)
            if status != "right":
                return status, f"sizes {[list(t.shape) for t in other]}: {reason}"
    return status, reason


def _of_other_sizes(program: Any, inputs: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Yields inputs whose dynamic sizes are all smaller by one, all larger by one, and one of them larger by one."""
    by_name = {node.name: node.meta["val"] for node in program.graph.nodes if node.op == "placeholder"}
    shapes = [tuple(by_name[name].shape) for name in program.graph_signature.user_inputs]
    sizes = {size.node.expr: size.node.hint for shape in shapes for size in shape if not isinstance(size, int)}
    symbols = sorted((expression for expression, size in sizes.items() if size > 1), key=str)
    if not symbols or any(not expression.is_Symbol for expression in sizes):
        return
    for step, changed in [(-1, symbols), (1, symbols), *((1, [symbol]) for symbol in symbols if len(symbols) > 1)]:
        new = {symbol: size + step * (symbol in changed) for symbol, size in sizes.items()}
        yield tuple(
            _resized(tensor, [size if isinstance(size, int) else new[size.node.expr] for size in shape])
            for tensor, shape in zip(inputs, shapes, strict=True)
        )


def _resized(tensor: Any, shape: list[int]) -> Any:
    """Returns a tensor whose elements beyond the old size are old ones, scaled if they are no integers.

    Square matrices stay symmetric and positive definite, if the old ones are, and do not become singular.
    """
    import torch

    matrices = tensor.dim() > 1 and tensor.shape[-1] == tensor.shape[-2] < shape[-1] == shape[-2]
    old_rows = tensor.shape[-1] if matrices else 0
    for axis, size in enumerate(shape):
        old = tensor.shape[axis]
        repeated = tensor.index_select(axis, torch.arange(size) % old)
        if size > old and (tensor.is_floating_point() or tensor.is_complex()):
            part = repeated.narrow(axis, old, size - old)
            noise = torch.arange(part.numel(), dtype=torch.float64).mul(0.618).frac().reshape(part.shape)
            part.mul_(0.75 if matrices else (noise + 1) / 2)
        tensor = repeated
    if matrices and (tensor.is_floating_point() or tensor.is_complex()):
        tensor.diagonal(0, -2, -1)[..., old_rows:] += 1
    return tensor


def _child(with_polyop: bool) -> None:
    """Computes the rows that stdin names."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the exporter prints
    import torch

    torch.set_num_threads(1)
    if with_polyop:
        import polyop  # noqa: F401 - registers its operators, which tests of models call
    from tests.support.faster_export import keep_registries

    keep_registries()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    outcome("add#0", "f32", "static", with_polyop)  # the first export imports what the others need
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        name, dtype, shapes = json.loads(line)
        start = time.monotonic()
        signal.setitimer(signal.ITIMER_PROF, LIMIT_S)  # its signal ends the process
        status, reason = outcome(name, dtype, shapes, with_polyop)
        signal.setitimer(signal.ITIMER_PROF, 0)
        row = {
            "name": name,
            "type": dtype,
            "shapes": shapes,
            "status": status,
            "reason": reason,
            "seconds": round(time.monotonic() - start, 2),
        }
        print(json.dumps(row), file=answers, flush=True)


class _Child:
    """A child process that computes rows."""

    def __init__(self, with_polyop: bool) -> None:
        command = [sys.executable, "-m", "tests.support.pytorch_export", "--child"]
        self._command = command if with_polyop else [*command, "--without-polyop"]
        self._process: subprocess.Popen[bytes] | None = None

    def row(self, key: tuple[str, str, str]) -> dict[str, Any]:
        if self._process is None:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            if not self._line(self._process):
                raise RuntimeError(f"the process of rows does not start: {' '.join(self._command)}")
        process = self._process
        assert process.stdin is not None
        process.stdin.write(json.dumps(key).encode() + b"\n")
        process.stdin.flush()
        line = self._line(process)
        if line:
            return json.loads(line)
        self.close()
        name, dtype, shapes = key
        too_long = process.returncode in (-signal.SIGPROF, -signal.SIGKILL)
        reason = f"longer than {LIMIT_S:.0f} s" if too_long else f"exit status {process.returncode}"
        return {"name": name, "type": dtype, "shapes": shapes, "status": "hangs", "reason": reason, "seconds": LIMIT_S}

    @staticmethod
    def _line(process: subprocess.Popen[bytes]) -> bytes:
        """Returns the next line of a process; an empty one if it ends or hangs."""
        assert process.stdout is not None
        ready = select.select([process.stdout], [], [], 10 * LIMIT_S)[0]
        line = process.stdout.readline() if ready else b""
        if ready and not line:
            process.wait()
        return line

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def rows(keys: list[tuple[str, str, str]], with_polyop: bool = True) -> Iterator[dict[str, Any]]:
    """Yields the row of each (name, type, shapes)."""
    child = _Child(with_polyop)
    try:
        for key in keys:
            yield child.row(key)
    finally:
        child.close()


def counts(table: list[dict[str, Any]]) -> str:
    """Returns the number of rows of each status, as text."""
    counted = Counter(row["status"] for row in table)
    tried = len(table) - counted["not run"]
    parts = ", ".join(f"{counted[status]} {status}" for status in STATUSES if counted[status])
    return f"{counted['right']} of {tried} right ({100 * counted['right'] / max(1, tried):.1f} %): {parts}"


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def write_table(files: list[Path]) -> None:
    """Writes the table of these files of rows; of several rows of a case the last one counts."""
    found: dict[str, dict[str, str]] = {}
    for row in (row for file in files for row in read(file)):
        found.setdefault(row["name"], {})[f"{row['type']} {row['shapes']}"] = row["status"]
    lines = (f"  {json.dumps(name)}: {json.dumps(found[name], sort_keys=True)}" for name in sorted(found))
    TABLE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help="the file of rows")
    parser.add_argument("--types", default="f32")
    parser.add_argument(
        "--shapes", default="static", help="static, auto: dynamic, or sizes: dynamic, and compared at other sizes, too"
    )
    parser.add_argument("--models", action="store_true", help="the calls that models make, not the test databases")
    parser.add_argument("--names", default="", help="a regular expression that selects names")
    parser.add_argument("--samples", type=int, help="a random choice of this many samples, as names with numbers")
    parser.add_argument("--seed", type=int, default=0, help="the seed of --samples")
    parser.add_argument("--of", type=Path, help="a file of rows: computes again those that were not right there")
    parser.add_argument("--table", type=Path, nargs="+", help="writes the table of these files of rows, and ends")
    parser.add_argument("--shard", default="0/1", help="i/n: every n-th case from the i-th on")
    parser.add_argument("--without-polyop", action="store_true", help="measures PyTorch's exporter alone")
    options = parser.parse_args()
    if options.child:
        _child(not options.without_polyop)
        return 0
    if options.table:
        write_table(options.table)
        return 0
    from tests.support.pytorch_cases import model_names, names, random_samples

    if options.of:
        keys = [
            (r["name"], r["type"], r["shapes"]) for r in read(options.of) if r["status"] not in ("right", "not run")
        ]
    else:
        types, shapes = options.types.split(","), options.shapes.split(",")
        if options.samples:
            chosen = random_samples(names(), types, options.samples, options.seed)
            keys = [(n, t, s) for n, t in chosen for s in shapes]
        else:
            keys = [(n, t, s) for t in types for s in shapes for n in (model_names() if options.models else names())]
    index, count = map(int, options.shard.split("/"))
    keys = [k for k in keys if re.search(options.names, k[0])][index::count]
    done = {(r["name"], r["type"], r["shapes"]) for r in read(options.out)}
    with options.out.open("a", encoding="utf-8") as file:
        for row in rows([k for k in keys if k not in done], not options.without_polyop):
            file.write(json.dumps(row) + "\n")
            file.flush()
    print(counts(read(options.out)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
