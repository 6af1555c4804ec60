#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that dependencies between the repository's folders go one way.

C++: platform <- core <- kernels <- ops/<room> <- ops/<room>/<op>, and core <- adapters.
Python: the layers of python/polyop, listed below, and bench/ <- ops/<room>/cases.py <- ops/<room>/<op>/cases.py.
Prints each #include and each import that goes against this, and every cycle; exits with 1 if there is any.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include "([^"]+)"', re.MULTILINE)
RAW_STRING = re.compile(r'R"(\w*)\(.*?\)\1"', re.DOTALL)  # the text of a file that polyop generates

# Top-level folders that the files of each may include, in addition to their own folder.
MAY_INCLUDE = {
    "platform": {"platform"},
    "core": {"platform"},
    "kernels": {"core", "platform"},
    "ops": {"core", "kernels"},  # and what a room's operators share, never another operator
    "testing": {"core", "kernels"},
    "adapters": {"core", "platform"},
    "cli": {"core", "kernels", "adapters", "platform"},
    "fuzz": {"core", "kernels", "testing"},
}
# Tests and their shared headers may include these folders as well.
TESTS = ("_test.cc", "_test.h")
TESTS_MAY_ALSO_INCLUDE = {"testing", "kernels", "core"}

PACKAGE = ROOT / "python" / "polyop"
# The rooms of python/polyop: folders, and modules outside of them. Each may import itself and those of earlier layers,
# within functions as well. An import by a string counts where it is written: import_module("polyop.functional").
PYTHON_LAYERS = (
    {"errors"},
    {"_base"},
    {"_arrays", "_aten"},
    {"_torch", "jax", "numpy", "tvm_ffi"},
    {"formulas", "packages"},
    {"_onnx"},
    {"accelerating", "functional", "onnx_schemas", "openvino", "portable"},
    {"attaching", "executorch", "modules", "onnxscript", "optimizing", "sparse", "tensorrt"},
    {"_onnxruntime", "exporting"},
    {"compat", "verifying"},
    {"batch"},
    {"ray", "triton"},
    {"_commands"},
    {"__init__", "__main__"},
)
# What cases.py may import of bench/. At module level it imports nothing else than the packages, because tests read it,
# and a machine with a GPU may lack runtimes.
BENCH = {"benchmark", "contenders", "inputs", "projects", "synthetic_scenes", "with_spconv"}
PACKAGES = {"numpy", "polyop", "torch"}
PRIVATE_NAME = re.compile(r"(?:^ *from polyop import (?:.*, )?|\bpolyop\.)(_[a-z]\w*)", re.MULTILINE)
MAX_DEPTH = 9  # of modules that import each other at module level


def room(path: str) -> str:
    return path.split("/", 1)[0]


def is_shared(path: str) -> bool:
    """Returns whether operators of a room share the file: ops/ROOM/FILE."""
    return room(path) == "ops" and path.count("/") == 2


def folder(path: str) -> str:
    return path.rpartition("/")[0]


def arrows(files: list[str]) -> list[tuple[str, str]]:
    """(file, included file) for every #include of the project's own files."""
    return [
        (file, included)
        for file in files
        for included in INCLUDE.findall(RAW_STRING.sub("", (ROOT / file).read_text(encoding="utf-8")))
        if room(included) in MAY_INCLUDE
    ]


def is_allowed(file: str, included: str) -> bool:
    if folder(file) == folder(included):
        return True
    if room(file) == "adapters" and folder(included) in ("adapters", "adapters/c"):
        return True  # shared by the adapters: the catalogue, shapes, and the C interface
    if room(file) == room(included) and room(file) in ("cli", "core", "testing"):
        return True
    if room(file) == "ops" and room(included) == "ops":
        return is_shared(included)
    allowed = MAY_INCLUDE[room(file)]
    if file.endswith(TESTS):
        allowed = allowed | TESTS_MAY_ALSO_INCLUDE
    return room(included) in allowed


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Returns paths of the graph that end where they begin: at least one for each set of mutually dependent nodes."""
    found: list[list[str]] = []
    done: set[str] = set()

    def walk(at: str, path: list[str]) -> None:
        if at in path:
            found.append([*path[path.index(at) :], at])
            return
        if at in done:
            return
        for to in sorted(graph.get(at, ())):
            walk(to, [*path, at])
        done.add(at)

    for start in sorted(graph):
        walk(start, [])
    return found


def folder_graph(edges: list[tuple[str, str]]) -> dict[str, set[str]]:
    """Returns the folders that each folder includes; tests are left out."""
    graph: dict[str, set[str]] = defaultdict(set)
    for file, included in edges:
        if folder(file) != folder(included) and not file.endswith(TESTS):
            graph[folder(file)].add(folder(included))
    return graph


def check_cpp() -> tuple[list[str], str]:
    """Returns what is wrong with the C++ files, and a summary."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.cc", "*.h", "*.cu"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    files = [f for f in listed.stdout.split() if room(f) in MAY_INCLUDE and (ROOT / f).is_file()]
    edges = arrows(files)
    wrong = [f'{file}: includes "{included}"' for file, included in edges if not is_allowed(file, included)]
    wrong += ["cycle: " + " -> ".join(cycle) for cycle in cycles(folder_graph(edges))]
    return wrong, f"{len(files)} C++ files with {len(edges)} inclusions"


# ---- Python --------------------------------------------------------------------------------------------------


def python_modules() -> dict[str, Path]:
    """Returns the files of python/polyop by their modules' names, such as polyop.batch.images."""
    files = {path: path.relative_to(PACKAGE.parent).with_suffix("").parts for path in sorted(PACKAGE.rglob("*.py"))}
    return {".".join(parts).removesuffix(".__init__"): path for path, parts in files.items()}


def statements(body: list[ast.stmt], nested: bool) -> Iterator[ast.stmt]:
    """Yields simple statements, those of functions only if `nested`. Skips what only type checkers see."""
    for node in body:
        if not hasattr(node, "body") and not hasattr(node, "cases"):
            yield node
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not nested:
            continue
        elif not (isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
            blocks = [getattr(node, field, []) for field in ("body", "orelse", "finalbody", "handlers", "cases")]
            for block in blocks:
                for part in block:
                    yield from statements([part] if isinstance(part, ast.stmt) else part.body, nested)


def imports_by_string(call: ast.Call) -> bool:
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    return name.endswith("import_module") and isinstance(call.args[0], ast.Constant)


def imports(module: str, path: Path, modules: dict[str, Path], nested: bool) -> set[str]:
    """Returns the modules of polyop that a module imports."""
    found = set()
    for statement in statements(ast.parse(path.read_text(encoding="utf-8")).body, nested):
        if isinstance(statement, ast.Import):
            found |= {alias.name for alias in statement.names}
        elif isinstance(statement, ast.ImportFrom):
            package = module if path.name == "__init__.py" else module.rpartition(".")[0]
            parts = package.split(".")[: len(package.split(".")) - statement.level + 1] if statement.level else []
            base = ".".join([*parts, *filter(None, [statement.module])])
            found |= {f"{base}.{a.name}" if f"{base}.{a.name}" in modules else base for a in statement.names}
        else:
            calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
            found |= {ast.literal_eval(call.args[0]) for call in calls if imports_by_string(call)}
    return (found & set(modules)) - {module, PACKAGE.name}  # Python imports the package before each of its modules


def python_room(module: str) -> str:
    return [*module.split("."), "__init__"][1]


def layer(module: str) -> int | None:
    return next((i for i, rooms in enumerate(PYTHON_LAYERS) if python_room(module) in rooms), None)


def check_python() -> tuple[list[str], str]:
    """Returns what is wrong with the modules of python/polyop, and a summary."""
    modules = python_modules()
    graph = {module: imports(module, path, modules, nested=False) for module, path in modules.items()}
    wrong = [f"{module}: add it to PYTHON_LAYERS of {Path(__file__).name}" for module in graph if layer(module) is None]
    anywhere = {module: imports(module, path, modules, nested=True) for module, path in modules.items()}
    for module, path in modules.items():
        for imported in sorted(anywhere[module]):
            own = python_room(module) == python_room(imported)
            if not own and (layer(imported) or 0) >= (layer(module) or 0):
                wrong.append(f"{path.relative_to(ROOT)}: imports {imported}")
        # mypy cannot report these, because polyop has a function __getattr__.
        for name in PRIVATE_NAME.findall(path.read_text(encoding="utf-8")):
            wrong += [f"{path.relative_to(ROOT)}: polyop.{name} does not exist"] * (f"polyop.{name}" not in modules)
    found = cycles(anywhere)
    wrong += ["cycle: " + " -> ".join(cycle) for cycle in found]

    @cache
    def depth(module: str) -> int:
        return 1 + max(map(depth, graph[module]), default=0)

    deepest = (
        0 if found else max(depth(module) for module in modules if python_room(module) not in ("__init__", "__main__"))
    )
    if deepest > MAX_DEPTH:
        wrong += [f"{m}: {depth(m)} modules deep, expected {MAX_DEPTH} at most" for m in graph if depth(m) > MAX_DEPTH]
    return wrong, f"{len(modules)} Python modules with {sum(map(len, graph.values()))} imports, {deepest} deep"


def names_imported(path: Path, nested: bool) -> set[str]:
    """Returns the names of the modules that a file imports; of `from ops.rois import cases`, ops.rois.cases."""
    found = set()
    for statement in statements(ast.parse(path.read_text(encoding="utf-8")).body, nested):
        if isinstance(statement, ast.Import):
            found |= {alias.name for alias in statement.names}
        elif isinstance(statement, ast.ImportFrom):
            base, names = statement.module or "", {alias.name for alias in statement.names}
            found |= {f"{base}.{name}" for name in names} if base.startswith("ops.") and names == {"cases"} else {base}
    return found


def check_cases() -> tuple[list[str], str]:
    """Returns what is wrong with ops/**/cases.py, and a summary."""
    files = sorted(ROOT.glob("ops/**/cases.py"))
    graph, wrong = {}, []
    for path in files:
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        graph[name] = {module for module in names_imported(path, nested=True) if module.startswith("ops.")}
        known = BENCH | PACKAGES | sys.stdlib_module_names | {"ops"}
        unknown = {module for module in names_imported(path, nested=False) if module.split(".")[0] not in known}
        unknown |= {module for module in graph[name] if module.count(".") > 2 or module == name}
        wrong += [f"{path.relative_to(ROOT)}: imports {module}" for module in sorted(unknown)]
    wrong += ["cycle: " + " -> ".join(cycle) for cycle in cycles(graph)]
    return wrong, f"{len(files)} files with cases"


def main() -> int:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    checks = (check_cpp(), check_python(), check_cases())
    wrong = [line for lines, _ in checks for line in lines]
    print("\n".join(wrong) if wrong else f"{', '.join(summary for _, summary in checks)}: all go one way")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
