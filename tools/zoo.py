#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports models of packages from PyPI, with random weights, runs the files, and writes a row for each model.

    python tools/zoo.py --out ROWS [--models REGEX] [--limit SECONDS] [--again]
    python tools/zoo.py --page ROWS

zoo_models/ has the models, requirements/zoo.txt their packages, which are installed by pip's --no-deps. Each model runs
in a separate process, and each step in another one, within limits of processor time and memory. Rows that the file
has are not computed again, except those that --again selects.

A file is compared with PyTorch at two further sizes and other data, independently of polyop.export's comparison: the
reference is the model in float64, and the file may differ from it by 8 times as much as PyTorch's float32 does, plus
1e-4 of the output's largest magnitude. A file that differs, although polyop.export wrote it, counts as wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import importlib.metadata
import json
import multiprocessing
import os
import re
import resource
import signal
import sys
import tempfile
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TENSORRT = ROOT / ".deps" / "tensorrt-rtx"
STEPS = ("static", "dynamic", "optimized", "onnxruntime", "openvino", "tensorrt_rtx")
TITLES = ("static", "dynamic", "optimized", "ONNX Runtime", "OpenVINO", "TensorRT-RTX")
MEMORY = 10 << 30
SLOW_IMPORTS = {
    "asteroid": "asteroid.models", "kornia": "kornia", "lightly": "lightly.models.modules", "monai": "monai.networks.nets",
    "neuralforecast": "neuralforecast.models", "neuraloperator": "neuralop.models", "open_clip_torch": "open_clip",
    "pytorch-forecasting": "pytorch_forecasting", "segmentation_models_pytorch": "segmentation_models_pytorch",
    "speechbrain": "speechbrain.lobes.models.CRDNN", "timm": "timm", "torch_geometric": "torch_geometric.nn",
    "torchaudio": "torchaudio.models", "ultralytics": "ultralytics.nn.tasks", "diffusers": "diffusers.models",
    "spandrel": "spandrel", "effdet": "effdet",
}  # fmt: skip
"""The modules that are imported before the first model of a package, so that its other models need not do it."""
_TELLING = re.compile(
    r"has no ONNX form|depends on values|sparse tensor|needs dimension|no other size|differ|assumed|could not be|cannot run"
    r"|Unsupported|Conversion is failed"
)
_REWRITTEN = "by polyop optimize --runtime tensorrt"
_RANDOM = "PyTorch's own results differ from run to run"
_FOLDERS = re.compile(r"/[^ ,:\"']*/(?=[^ /]+\.py)")


def _restart_with_tensorrt() -> None:
    """Starts this program again with the library path that TensorRT-RTX needs, which is read at a start."""
    libraries = str(TENSORRT / "tensorrt_rtx_libs")
    if TENSORRT.is_dir() and libraries not in os.environ.get("LD_LIBRARY_PATH", ""):
        path = os.pathsep.join(filter(None, [libraries, os.environ.get("LD_LIBRARY_PATH")]))
        variables = {"LD_LIBRARY_PATH": path, "POLYOP_TENSORRT": "tensorrt_rtx_bindings", "OMP_NUM_THREADS": "1"}
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **variables})


# ---- processes ---------------------------------------------------------------------------------------------


class StoppedError(Exception):
    """A process was stopped, by a limit or by an error of a library."""


def isolated(function: Callable[[], Any], limit: int, log: str = os.devnull) -> Any:
    """Returns the result of a function that runs in a child process with a limit of processor time in seconds. The
    child has the parent's modules: importing them takes as long as an export. Raises StoppedError."""
    processes = multiprocessing.get_context("fork")
    answers, theirs = processes.Pipe(duplex=False)
    child = processes.Process(target=_child, args=(function, theirs, limit, log))
    child.start()
    theirs.close()
    try:
        if answers.poll(8 * limit):
            return answers.recv()
        raise StoppedError(f"no result after {8 * limit} s")
    except EOFError:
        child.join()
        code = child.exitcode or 0
        name = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        raise StoppedError(
            f"longer than {limit} s" if code == -signal.SIGXCPU else f"the process died: {name}"
        ) from None
    finally:
        child.kill()
        child.join()


def _child(function: Callable[[], Any], answers: Connection, limit: int, log: str) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(output, 1)  # exporters print
    os.dup2(output, 2)
    answers.send(function())
    answers.close()
    os._exit(0)  # libraries may wait for threads that a fork does not have


# ---- one model ---------------------------------------------------------------------------------------------


def row_of(entry: Any, known: Mapping[str, Any], steps: set[str], limit: int, log: str) -> dict[str, Any]:
    """Builds a model and does the steps, of which each has a result: [status, reason]. `known`: an earlier row."""
    import torch

    row: dict[str, Any] = {"package": entry.package, "model": entry.name, "version": _version(entry.package)}
    torch.manual_seed(0)
    try:
        model, inputs = entry.build()
        model.eval()
        cases = [case_of(inputs, entry.at(i), seed=i) for i in range(3)]
        with torch.no_grad():
            for case in cases:
                model(*copies(case))
    except Exception as error:  # a package may raise any
        return {**row, "built": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}
    names = [f"input_{i}" for i, tensor in enumerate(cases[0]) if tensor is not None]
    row["errors"], row["seconds"] = dict(known.get("errors", {})), dict(known.get("seconds", {}))
    with tempfile.TemporaryDirectory() as folder:
        work = Work(model, inputs, entry, names, Path(folder), limit, log, row)
        for kind in ("static", *(["dynamic"] if entry.sizes else [])):
            if kind in steps:
                work.step(kind, lambda kind=kind: work.export(kind))
                if row[kind][0] == "right":
                    note = row[kind][1]
                    work.step(kind, lambda kind=kind, note=note: work.compare(kind, "onnxruntime", note))
                    row["onnxruntime"] = row[kind]
        exact = next((k for k in ("dynamic", "static") if {**known, **row}.get(k, [""])[0] == "right"), None)
        others: dict[str, Callable[[], tuple[str, str]]] = {
            "optimized": lambda: work.optimize(exact or ""),
            "openvino": lambda: work.compare(exact or "", "openvino"),
            "tensorrt_rtx": lambda: work.build_engine(exact or ""),
        }
        if exact and steps & set(others):
            if not (work.folder / f"{exact}.onnx").exists():
                isolated(lambda: _caught(lambda: work.export(exact)), limit, log)
            for name in [name for name in others if name in steps]:
                work.step(name, others[name])
    return row


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def copies(case: Sequence[Any]) -> list[Any]:
    """Models may change their inputs."""
    return [None if tensor is None else tensor.clone() for tensor in case]


def case_of(inputs: Callable[..., Any], sizes: Mapping[str, int], seed: int) -> tuple[Any, ...]:
    import torch

    torch.manual_seed(100 + seed)
    found = inputs(**sizes)
    return found if isinstance(found, tuple) else (found,)


class Work:
    """The steps of one model. Each runs in a separate process, and leaves its file in a folder."""

    def __init__(
        self, model: Any, inputs: Callable[..., Any], entry: Any, names: list[str], folder: Path, limit: int, log: str,
        row: dict[str, Any],
    ) -> None:  # fmt: skip
        self.model, self.inputs, self.entry, self.names, self.folder = model, inputs, entry, names, folder
        self.limit, self.log, self.row = limit, log, row

    def step(self, name: str, function: Callable[[], tuple[str, str]]) -> None:
        """Does a step and notes its result, its whole error and its processor time in the row."""
        before, errors, seconds = os.times(), self.row["errors"], self.row["seconds"]
        try:
            status, text = isolated(lambda: _caught(function), self.limit, self.log)
        except StoppedError as error:
            status, text = "stopped", str(error)
        errors.pop(name, None)
        if status not in ("right", "built"):
            errors[name] = text[:1500]
        seconds[name] = round(seconds.get(name, 0) + os.times().children_user - before.children_user, 1)
        self.row[name] = [status, _short(text)]

    def example(self) -> tuple[Any, ...]:
        return case_of(self.inputs, self.entry.at(0), seed=0)

    def dynamic(self) -> dict[str, dict[int, str]]:
        """Returns the dimensions that depend on sizes, found by changing one size at a time."""
        base = self.example()
        found: dict[str, dict[int, str]] = {}
        sizes = self.entry.at(0)
        for size, (_, other, *_) in self.entry.sizes.items():
            changed = case_of(self.inputs, {**sizes, size: other}, seed=0)
            pairs = [(b, c) for b, c in zip(base, changed, strict=True) if b is not None]
            for name, (before, after) in zip(self.names, pairs, strict=True):
                for axis, (a, b) in enumerate(zip(before.shape, after.shape, strict=True)):
                    if a != b:
                        same = a == sizes[size] and b == other
                        found.setdefault(name, {})[axis] = size if same else f"{name}_{axis}"
        return found

    def export(self, kind: str) -> tuple[str, str]:
        import polyop

        dynamic = self.dynamic() if kind == "dynamic" else None
        given = {name: of[1:] for name, of in self.entry.sizes.items()}
        arguments: dict[str, Any] = {"input_names": self.names, "dynamic": dynamic, "verbose": False}
        path = self.folder / f"{kind}.onnx"
        note = ""
        try:
            report = polyop.export(self.model, self.example(), path, **arguments)
        except polyop.ExportError as error:
            named = {name for axes in (dynamic or {}).values() for name in axes.values()}
            if "PyTorch's capture assumed" not in str(error) or not named <= set(given):
                raise
            report = polyop.export(self.model, self.example(), path, **arguments, sizes=given)
            note = f"sizes: {_short(str(error))}"
        return "right", note or ("" if report.exporter == "dynamo" else f"by the {report.exporter} exporter")

    def compare(self, kind: str, runtime: str, note: str = "") -> tuple[str, str]:
        """Compares a file with PyTorch at two further sizes, or for two other inputs of the same sizes."""
        path = self.folder / f"{kind}.onnx"
        run = in_onnxruntime(path) if runtime == "onnxruntime" else in_openvino(path)
        is_static = not self.entry.sizes or not self._has_dynamic_inputs(path)
        cases = [case_of(self.inputs, self.entry.at(0 if is_static else i), seed=10 + i) for i in (1, 2)]
        expected = references(self.model, cases)
        for i, (case, reference) in enumerate(zip(cases, expected, strict=True)):
            tensors = [tensor for tensor in case if tensor is not None]
            where = "other data" if is_static else str(self.entry.at(i + 1))
            try:
                got = run(dict(zip(self.names, tensors, strict=True)))
            except Exception as error:  # runtimes have errors of their own types
                return "fails", f"at {where}: {error}"
            if why := difference(reference, got):
                return "wrong", f"at {where}: {why}"
        return "right", note

    def _has_dynamic_inputs(self, path: Path) -> bool:
        import onnx

        inputs = onnx.load(path, load_external_data=False).graph.input
        return any(not d.HasField("dim_value") for value in inputs for d in value.type.tensor_type.shape.dim)

    def optimize(self, kind: str) -> tuple[str, str]:
        import polyop

        path = self.folder / f"{kind}.onnx"
        report = polyop.optimize(path, self.folder / "optimized.onnx", inputs=self._feeds(path), threads=1)
        status, reason = self.compare("optimized", "onnxruntime")
        replaced = ", ".join(f"{name} x{count}" for name, count in sorted(report.replaced.items()))
        return status, reason or replaced

    def _feeds(self, path: Path) -> dict[str, Any]:
        inputs = feeds(dict(zip(self.names, (t for t in self.example() if t is not None), strict=True)))
        return {name: inputs[name] for name in names_of_inputs(path)}

    def build_engine(self, kind: str) -> tuple[str, str]:
        """Parses the file and builds an engine; of what `polyop optimize --runtime tensorrt` writes, if TensorRT
        refuses the file."""
        import polyop

        path = self.folder / f"{kind}.onnx"
        try:
            return "built", self._build_engine(path)
        except Exception as refused:
            rewritten = self.folder / "for_tensorrt.onnx"
            if not polyop.optimize(path, rewritten, inputs=self._feeds(path), threads=1, target="tensorrt").replaced:
                raise
            try:
                self._build_engine(rewritten)
            except Exception:
                raise refused from None
        status, reason = self.compare("for_tensorrt", "onnxruntime")
        return ("built", _REWRITTEN) if status == "right" else (status, reason)

    def _build_engine(self, path: Path) -> str:
        """Without polyop's plugin library, its nodes become their functions. Returns a note."""
        import onnx

        from polyop import tensorrt

        of_names = {n: [tuple(t.shape) for t in of] for n, of in self._tensors_at_all_sizes().items()}
        shapes = None
        if self._has_dynamic_inputs(path):
            shapes = {
                name: [tuple(map(min, zip(*of, strict=True))), of[0], tuple(map(max, zip(*of, strict=True)))]
                for name, of in of_names.items()
                if name in names_of_inputs(path)
            }
        domains = {node.domain for node in onnx.load(path, load_external_data=False).graph.node}
        note = ""
        if domains - {"", "ai.onnx"} and not tensorrt.get_tensorrt_op_path():
            path, note = self._with_functions(path), "polyop's nodes as functions"
        tensorrt.onnx2trt(str(path), shapes, builder_optimization_level=0)
        return note

    def _with_functions(self, path: Path) -> Path:
        import onnx
        import onnx.inliner

        from polyop.portable import convert_file

        result = self.folder / "functions.onnx"
        convert_file(path, result)
        onnx.save(onnx.inliner.inline_local_functions(onnx.load(result)), result)
        return result

    def _tensors_at_all_sizes(self) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        for i in range(3):
            case = case_of(self.inputs, self.entry.at(i), seed=i)
            for name, tensor in zip(self.names, (t for t in case if t is not None), strict=True):
                found.setdefault(name, []).append(tensor)
        return found


def _caught(function: Callable[[], tuple[str, str]]) -> tuple[str, str]:
    try:
        return function()
    except Exception as error:  # of exporters and runtimes, of any type
        return "refused", f"{type(error).__name__}: {error}"


def _short(text: str) -> str:
    """Returns the line that says most, without folders."""
    if _RANDOM in text:
        return _RANDOM
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines[1:] if _TELLING.search(line)] + [line for line in lines[1:] if "Error" in line]
    chosen = next(iter([*telling, *lines]), "")
    return textwrap.shorten(_FOLDERS.sub("", chosen).replace("|", "/"), 160, placeholder=" …")


# ---- running and comparing ---------------------------------------------------------------------------------


def names_of_inputs(path: Path) -> list[str]:
    import onnx

    return [value.name for value in onnx.load(path, load_external_data=False).graph.input]


def feeds(tensors: Mapping[str, Any]) -> dict[str, Any]:
    from polyop.exporting.comparing import as_real

    return {name: as_real(tensor).numpy() for name, tensor in tensors.items()}


def in_onnxruntime(path: Path) -> Callable[[Mapping[str, Any]], list[Any]]:
    import onnxruntime

    import polyop

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    session = polyop.session(path, options=options)
    names = names_of_inputs(path)
    return lambda tensors: session.run(None, {name: feeds(tensors)[name] for name in names})


def in_openvino(path: Path) -> Callable[[Mapping[str, Any]], list[Any]]:
    from polyop.openvino import core

    settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
    compiled = core().compile_model(str(path), "CPU", settings)
    names = names_of_inputs(path)

    def run(tensors: Mapping[str, Any]) -> list[Any]:
        result = compiled([feeds(tensors)[name] for name in names])
        return [result[output] for output in compiled.outputs]

    return run


def references(model: Any, cases: Sequence[Sequence[Any]]) -> list[list[tuple[Any, Any]]]:
    """Returns the outputs of each case in float32 and float64; float32 twice where the model needs that type. The
    model becomes one of float64."""
    import torch

    from polyop.exporting.comparing import flat

    with torch.no_grad():
        narrow = [[t.clone() for t in flat(model(*copies(case)))] for case in cases]
        try:
            model.double()
            wide = [[t.clone() for t in flat(model(*map(_widened, copies(case))))] for case in cases]
        except Exception:  # a model may have constants of float32
            wide = narrow
    return [
        list(zip(n, w if [t.shape for t in w] == [t.shape for t in n] else n, strict=True))
        for n, w in zip(narrow, wide, strict=True)
    ]


def _widened(tensor: Any) -> Any:
    import torch

    if tensor is not None and tensor.is_complex():
        return tensor.to(torch.complex128)
    return tensor.double() if tensor is not None and tensor.is_floating_point() else tensor


def difference(references: Sequence[tuple[Any, Any]], got: Sequence[Any]) -> str:
    """Says how the first output that differs too much differs; "" if none does."""
    import numpy as np

    if len(references) != len(got):
        return f"expected {len(references)} outputs, got {len(got)}"
    for i, ((narrow, wide), result) in enumerate(zip(references, got, strict=True)):
        expected, exact = narrow.numpy().astype(np.float64), wide.numpy().astype(np.float64)
        if expected.shape != result.shape:
            return f"output {i}: expected shape {list(expected.shape)}, got {list(result.shape)}"
        if expected.size == 0:
            continue
        of_file, of_eager = (_largest(array, exact) for array in (result.astype(np.float64), expected))
        scale = np.abs(exact).max(initial=0.0, where=np.isfinite(exact))
        if not of_file <= 8 * of_eager + (1e-4 * scale if narrow.is_floating_point() else 0):
            return f"output {i} differs by {of_file:.3g} of {scale:.3g}; float32 by {of_eager:.3g}"
    return ""


def _largest(a: Any, b: Any) -> float:
    import numpy as np

    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        return float(np.nan_to_num(np.where(same, 0, np.abs(a - b)), nan=np.inf).max())


# ---- the page ----------------------------------------------------------------------------------------------

HEAD = """# Models of {packages} packages

`tools/zoo.py` builds models of packages from PyPI with random weights, exports each by `polyop.export` with fixed and
with dynamic sizes, and runs the files. It compares them with the model in float64, with other data and at two further
sizes, in addition to the comparisons of `polyop.export`. A file that differs although `polyop.export` wrote it is
wrong. Optimized: by `polyop optimize`. OpenVINO runs the file with dynamic sizes if there is one. TensorRT-RTX parses
it and builds an engine, without a GPU; "rewritten": it refuses the file, and takes what `polyop optimize --runtime
tensorrt` writes, which is also compared.

{models} of the {all} models of `tools/zoo_models/` were measured, of {packages} packages. The table counts the models
for which a step was measured; the list has a dash for the others, and for steps that a model does not have. A file of
"given sizes" was compared at two sizes that the author of a model would choose, because `polyop.export` refused others
and named the condition behind it.

"""


def page(rows: Sequence[Mapping[str, Any]]) -> str:
    from zoo_models import entries

    built = [row for row in rows if "built" not in row]
    known = sum(1 for _ in entries())
    lines = [HEAD.format(models=len(built), all=known, packages=len({row["package"] for row in built}))]
    lines += ["| | of | right | wrong | others |\n", "|---|---|---|---|---|\n"]
    for step, title in zip(STEPS, TITLES, strict=True):
        counted = Counter(row[step][0] for row in built if row.get(step, ["-"])[0] != "-")
        total, right = counted.total(), counted["right"] + counted["built"]
        if not total:
            continue
        wrong = counted["wrong"]
        share = f"{100 * right / total:.1f} %"
        lines.append(f"| {title} | {total} | {right} ({share}) | {wrong} | {total - right - wrong} |\n")
    lines += ["\n| Package | Model | " + " | ".join(TITLES) + " | reason |\n", "|---" * (len(TITLES) + 3) + "|\n"]
    for row in sorted(built, key=lambda row: (row["package"], row["model"])):
        cells = [_cell(row.get(step)) for step in STEPS]
        reasons = dict.fromkeys(
            _short(row.get("errors", {}).get(step, row[step][1]))
            for step in STEPS
            if row.get(step) and row[step][0] not in ("right", "built", "-")
        )
        package = f"{row['package']} {row['version']}".strip()
        lines.append(f"| {package} | {row['model']} | {' | '.join(cells)} | {'; '.join(reasons)} |\n")
    return "".join(lines)


def _cell(result: Sequence[str] | None) -> str:
    if not result or result[0] == "-":
        return "-"
    if result[1].startswith("sizes:"):
        return "given sizes"
    if result[1] == _REWRITTEN:
        return "rewritten"
    return "yes" if result[0] in ("right", "built") else result[0]


# ---- the program -------------------------------------------------------------------------------------------


def _import_all() -> None:
    """Imports what most steps need, and exports a small module, after which exports take a third of the time."""
    from tests.support.whole_models import use_folders

    use_folders()  # before transformers, which looks for torchvision once
    import onnx.inliner  # noqa: F401
    import onnxruntime  # noqa: F401
    import torch
    import torchvision  # noqa: F401
    import transformers.models.bert.modeling_bert
    import transformers.models.llama.modeling_llama  # noqa: F401

    import polyop.openvino
    import polyop.portable
    import polyop.tensorrt
    from tests.support.faster_export import keep_registries

    torch.set_num_threads(1)  # a fork would not have the threads
    keep_registries()
    layers = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.LayerNorm(6), torch.nn.Linear(6, 4), torch.nn.GELU()
    ).eval()
    with polyop.translations():
        torch.onnx.export(layers, (torch.rand(2, 3, 8, 8),), dynamo=True, dynamic_shapes=({0: "batch"},), verbose=False)
    gc.collect()
    gc.freeze()  # what exists is not collected, so that forks share it


def merged(path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """Returns the rows of a file. Later lines of a model add steps to earlier ones, or replace them."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        row = json.loads(line)
        known = found.setdefault((row["package"], row["model"]), row)
        known |= row
        if "built" not in row:
            known.pop("built", None)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="the file of rows")
    parser.add_argument("--models", default="", help="a regular expression that selects PACKAGE/MODEL")
    parser.add_argument("--limit", type=int, default=120, help="the limit of a step's processor time in seconds")
    parser.add_argument("--again", action="store_true", help="computes the selected rows again")
    parser.add_argument("--steps", default=",".join(STEPS), help="the steps to do, separated by commas")
    parser.add_argument("--build-only", action="store_true", help="builds and runs the models in PyTorch alone")
    parser.add_argument("--log", default=os.devnull, help="a file for what exporters print")
    parser.add_argument("--page", type=Path, help="prints the page of this file of rows, and ends")
    options = parser.parse_args()
    if options.page:
        print(page([*merged(options.page).values()]), end="")
        return 0
    _restart_with_tensorrt()
    sys.path[:0] = [str(ROOT), *([str(TENSORRT)] if TENSORRT.is_dir() else [])]
    _import_all()
    from zoo_models import entries

    rows = merged(options.out) if options.out else {}
    steps = set(options.steps.split(","))
    for entry in entries():
        known = {} if options.again else rows.get((entry.package, entry.name), {})
        missing = {step for step in steps if step not in known and (entry.sizes or step != "dynamic")}
        if not missing or not re.search(options.models, f"{entry.package}/{entry.name}"):
            continue
        with contextlib.suppress(Exception):  # a model's own import says what fails
            importlib.import_module(SLOW_IMPORTS.get(entry.package, "torch"))
        try:
            do = built if options.build_only else partial(row_of, known=known, steps=missing)
            row = isolated(partial(do, entry, limit=options.limit, log=options.log), 3 * options.limit, options.log)
        except StoppedError as error:
            row = {"package": entry.package, "model": entry.name, "built": str(error)}
        if "built" not in row and not options.build_only:  # without a file, further steps have no result
            row |= {step: ["-", ""] for step in missing if step not in row}
        print(
            *(f"{row.get(key)}" for key in ("package", "model", "built", *STEPS, "seconds") if key in row), flush=True
        )
        if options.out:
            with options.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
    return 0


def built(entry: Any, limit: int, log: str) -> dict[str, Any]:
    """Builds a model and runs it at its sizes."""
    import torch

    start = time.monotonic()
    torch.manual_seed(0)
    row = {"package": entry.package, "model": entry.name}
    try:
        model, inputs = entry.build()
        model.eval()
        with torch.no_grad():
            for i in range(3):
                model(*case_of(inputs, entry.at(i), i))
    except Exception as error:  # a package may raise any
        return {**row, "built": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}
    weights = sum(p.numel() for p in model.parameters())
    return {**row, "seconds": f"{time.monotonic() - start:.1f} s, {weights} weights"}


if __name__ == "__main__":
    sys.exit(main())
