"""Tests polyop's libraries for Windows under wine: the DLLs, every node in ONNX Runtime, and PyTorch.

tools/test_windows.sh builds them and runs this file; pytest does not collect it on its own.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from polyop._onnx.catalogue import find_node
from tests.support import elsewhere
from tests.support.exported_nodes import NODES, Node
from tests.support.processes import ROOT

TREE = ROOT / "build" / "portable" / "windows" / "tests" / "bin"
DLLS = ROOT / ".deps" / "windows"
WINE = "/usr/lib/wine/wine64"
OPERATORS = os.environ["POLYOP_OPS"].split(";")
SYSTEM = re.compile(r"KERNEL32\.dll|api-ms-win-crt-.*\.dll", re.IGNORECASE)
# The library's name: other imports, exports.
LIBRARIES = {
    "onnxruntime": (set(), "onnxruntime"),
    "accelerator": ({"polyop_onnxruntime.dll"}, None),
    "torch": ({"torch_cpu.dll"}, "torch"),
}


def operator(node: Node) -> str:
    return find_node(*node.name.split("::"), node.attributes)[0]["name"]


CALLS = [node for node in NODES if OPERATORS == ["all"] or operator(node) in OPERATORS]


def windows_path(path: Path) -> str:
    return f"Z:{path}"


@pytest.fixture(scope="session")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("wine")


def by_wine(prefix: Path, program: str, *arguments: Path, path: Path | None = None) -> str:
    variables = {**os.environ, "WINEPREFIX": str(prefix), "WINEDEBUG": "-all"}
    if path is not None:
        variables["WINEPATH"] = windows_path(path)
    command = [WINE, str(TREE / program), *map(windows_path, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=variables, timeout=1800, check=False)
    assert done.returncode == 0, f"{program} failed:\n{done.stdout}\n{done.stderr}"
    return done.stdout


# ---- The DLLs --------------------------------------------------------------------------------------------------------


def headers(library: str) -> str:
    file = TREE / f"polyop_{library}.dll"
    return subprocess.run(["objdump", "-p", file], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_dll_needs_the_system_and_its_runtime_only(library: str) -> None:
    imported = set(re.findall(r"DLL Name: (\S+)", headers(library)))
    assert {name for name in imported if not SYSTEM.fullmatch(name)} == LIBRARIES[library][0]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_dll_exports_what_the_shared_library_does(library: str) -> None:
    table = headers(library).partition("[Ordinal/Name Pointer] Table\n")[2].partition("\n\n")[0]
    exported = set(re.findall(r"\[\s*\d+\]\s+(?:\+base\[\s*\d+\]\s+[0-9a-f]+\s+)?(\w+)", table))
    room = LIBRARIES[library][1]
    if room is None:
        assert exported == {"RegisterCustomOps"}
        return
    text = (ROOT / "adapters" / room / "exports.map").read_text()
    assert exported == set(re.findall(r"\w+(?=;)", text.partition("local")[0]))


# ---- ONNX Runtime ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session", params=["old", "newest"])
def folder(request: pytest.FixtureRequest, prefix: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs all calls in one process of this ONNX Runtime. The folder's name has what paths on Windows may have."""
    folder = tmp_path_factory.mktemp(f"{request.param} with spaces, Umläute")
    for number, node in enumerate(CALLS):
        (folder / f"{number}.onnx").write_bytes(elsewhere.proto(node).SerializeToString())
        for name, array in elsewhere.inputs(node).items():
            np.save(folder / f"{number}.{name}.npy", np.ascontiguousarray(array))
    runtime = DLLS / f"onnxruntime-{request.param}" / "onnxruntime" / "capi" / "onnxruntime.dll"
    by_wine(prefix, "run_models.exe", runtime, TREE / "polyop_onnxruntime.dll", folder)
    return folder


def test_every_operator_is_called() -> None:
    assert {operator(node) for node in CALLS} >= {name for name in OPERATORS if name != "all"}


@pytest.mark.parametrize("number", range(len(CALLS)), ids=lambda number: f"{CALLS[number].name}-{number}")
def test_results_equal_those_of_linux(folder: Path, number: int) -> None:
    assert elsewhere.refusal(folder, number) is None, elsewhere.refusal(folder, number)
    want = elsewhere.here(CALLS[number])
    got = [np.load(folder / f"{number}.result.{i}.npy") for i in range(len(want))]
    elsewhere.compare(got, want)


# ---- PyTorch ---------------------------------------------------------------------------------------------------------


def test_all_operators_register_in_pytorch_and_errors_arrive(prefix: Path) -> None:
    if OPERATORS != ["all"] and "roi_align" not in OPERATORS:
        pytest.fail("the program calls roi_align: add it to POLYOP_OPS")
    libraries = DLLS / "torch" / "torch" / "lib"
    out = by_wine(prefix, "run_torch.exe", TREE / "polyop_torch.dll", path=libraries)
    assert out.split() == ["1", "1", "1", "1", "0", "1"]
