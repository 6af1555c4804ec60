# SPDX-License-Identifier: Apache-2.0
"""Tests polyop for Windows under wine: the DLLs, every node in ONNX Runtime, PyTorch, the program and the C++ tests.

tools/test_windows.sh builds them and runs this file; pytest does not collect it on its own.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from polyop._onnx.catalogue import find_node
from tests.support import elsewhere, pe
from tests.support.binaries import EXPORTS
from tests.support.exported_nodes import NODES, Node
from tests.support.processes import BIN, ROOT

TREE = ROOT / "build" / "portable" / "windows" / "tests" / "bin"
DLLS = ROOT / ".deps" / "windows"
WINE = "/usr/lib/wine/wine64"
OPERATORS = os.environ["POLYOP_OPS"].split(";")
SYSTEM = re.compile(r"KERNEL32\.dll|api-ms-win-crt-.*\.dll", re.IGNORECASE)
# The DLLs that each library needs in addition to the system's.
LIBRARIES = {"onnxruntime": set(), "accelerator": {"polyop_onnxruntime.dll"}, "torch": {"torch_cpu.dll"}}


def operator(node: Node) -> str:
    return find_node(*node.name.split("::"), node.attributes)[0]["name"]


CALLS = [node for node in NODES if OPERATORS == ["all"] or operator(node) in OPERATORS]


def windows_path(path: Path) -> str:
    return f"Z:{path}"


@pytest.fixture(scope="session")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("wine")


def start(
    prefix: Path, program: str, *arguments: str, path: Path | None = None, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "WINEPREFIX": str(prefix), "WINEDEBUG": "-all"}
    if path is not None:
        variables["WINEPATH"] = windows_path(path)
    command = [WINE, str(TREE / program), *arguments]
    return subprocess.run(
        command, capture_output=True, encoding="utf-8", env=variables, cwd=folder, timeout=1800, check=False
    )


def by_wine(prefix: Path, program: str, *arguments: Path, path: Path | None = None) -> str:
    done = start(prefix, program, *map(windows_path, arguments), path=path)
    assert done.returncode == 0, f"{program} failed:\n{done.stdout}\n{done.stderr}"
    return done.stdout


# ---- The DLLs --------------------------------------------------------------------------------------------------------


def imports_of(file: str) -> set[str]:
    """Returns the DLLs that a file needs in addition to the system's."""
    return {name for name in pe.read(TREE / file).needed if not SYSTEM.fullmatch(name)}


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_dll_needs_the_system_and_its_runtime_only(library: str) -> None:
    assert imports_of(f"polyop_{library}.dll") == LIBRARIES[library]


def test_the_program_needs_the_system_only() -> None:
    assert imports_of("polyop.exe") == set()


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_dll_exports_what_the_shared_library_does(library: str) -> None:
    assert sorted(pe.read(TREE / f"polyop_{library}.dll").exported) == EXPORTS[library]


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


@pytest.mark.parametrize("version", ["old", "newest"])
def test_all_operators_register_in_pytorch_and_errors_arrive(prefix: Path, version: str) -> None:
    if OPERATORS != ["all"] and "roi_align" not in OPERATORS:
        pytest.fail("the program calls roi_align: add it to POLYOP_OPS")
    libraries = DLLS / f"torch-{version}" / "torch" / "lib"
    out = by_wine(prefix, "run_torch.exe", TREE / "polyop_torch.dll", path=libraries)
    assert out.split() == ["1", "1", "1", "1", "0", "1"]


# ---- The program -----------------------------------------------------------------------------------------------------


RUNTIME = DLLS / "onnxruntime-newest" / "onnxruntime" / "capi" / "onnxruntime.dll"
SAMPLE = next(node for node in CALLS if operator(node) == OPERATORS[0] or OPERATORS == ["all"])


def polyop(prefix: Path, *words: str, folder: Path | None = None, status: int = 0) -> str:
    """Runs the program. Returns what it prints: its errors if it is to fail."""
    done = start(prefix, "polyop.exe", *words, folder=folder)
    assert done.returncode == status, f"{done.stdout}\n{done.stderr}"
    return done.stderr if status else done.stdout


def here(*words: str, folder: Path | None = None) -> str:
    return subprocess.run(
        [BIN / "polyop", *words], check=True, capture_output=True, encoding="utf-8", cwd=folder
    ).stdout


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model and its inputs. Its path has what paths may have, and more than 260 characters."""
    folder = tmp_path_factory.mktemp("program") / "spaces and Umläute, 日本" / ("a" * 120) / ("b" * 120)
    folder.mkdir(parents=True)
    (folder / "modèle.onnx").write_bytes(elsewhere.proto(SAMPLE).SerializeToString())
    for name, array in elsewhere.inputs(SAMPLE).items():
        np.save(folder / f"{name} é.npy", np.ascontiguousarray(array))
    np.savez(folder / "sämtliche Eingänge.npz", **elsewhere.inputs(SAMPLE))
    return folder


def name_of(folder: Path) -> str:
    """Returns the model's whole path: a working folder has at most 260 characters."""
    return windows_path(folder / "modèle.onnx")


def given(folder: Path) -> list[str]:
    """Returns the options that name the inputs."""
    names = elsewhere.inputs(SAMPLE)
    return [word for name in names for word in ("-i", f"{name}={windows_path(folder / f'{name} é.npy')}")]


def test_program_lists_operators_as_on_linux(prefix: Path) -> None:
    name = operator(SAMPLE)
    assert polyop(prefix, "ops", name, "--markdown") == here("ops", name, "--markdown")
    listed = {each["name"] for each in json.loads(polyop(prefix, "ops", "--json"))}
    assert name in listed
    assert OPERATORS == ["all"] or listed == set(OPERATORS)


@pytest.mark.parametrize("form", ["npy", "npz"])
def test_program_runs_a_model(prefix: Path, models: Path, form: str) -> None:
    results = models / f"Ergebnis.{form}"
    inputs = given(models) if form == "npy" else ["-i", windows_path(models / "sämtliche Eingänge.npz")]
    output = f"out0={windows_path(results)}" if form == "npy" else windows_path(results)
    polyop(prefix, "run", name_of(models), *inputs, "-o", output, "--onnxruntime", windows_path(RUNTIME))
    got = np.load(results)
    elsewhere.compare([got if form == "npy" else got["out0"]], elsewhere.here(SAMPLE)[:1])


def test_program_finds_the_runtime_of_an_environment(prefix: Path, models: Path, tmp_path: Path) -> None:
    """The folders are those of a virtual environment on Windows."""
    capi = tmp_path / "ümgebung" / "Lib" / "site-packages" / "onnxruntime" / "capi"
    capi.mkdir(parents=True)
    (capi / "onnxruntime.dll").symlink_to(RUNTIME)
    program = tmp_path / "ümgebung" / "Scripts" / "polyop.exe"
    program.parent.mkdir()
    program.write_bytes((TREE / "polyop.exe").read_bytes())
    said = start(prefix, str(program), "run", name_of(models), *given(models), "--json")
    assert said.returncode == 0, said.stderr


def test_program_inspects_verifies_and_measures(prefix: Path, models: Path) -> None:
    library = ["--onnxruntime", windows_path(RUNTIME)]
    model = name_of(models)
    report, expected = (
        json.loads(said)
        for said in (
            polyop(prefix, "inspect", model, *library, "--json"),
            here("inspect", str(models / "modèle.onnx"), "--json"),
        )
    )
    assert report.pop("model", None) != expected.pop("model", None)
    for each in (*report["operators"], *expected["operators"]):
        # Further runtimes depend on the libraries that have been built here.
        assert each.pop("provider").startswith("polyop (ONNX Runtime CPU")
    assert report == expected
    said = polyop(prefix, "verify", model, *given(models), *library)
    assert "out0" in said
    timed = json.loads(
        polyop(prefix, "bench", model, *given(models), *library, "--seconds", "0.01", "--layers", "--json")
    )
    assert timed


def test_program_takes_names_in_its_working_folder(prefix: Path, tmp_path: Path) -> None:
    folder = tmp_path / "Umläute und 日本"
    folder.mkdir()
    (folder / "modèle.onnx").write_bytes(elsewhere.proto(SAMPLE).SerializeToString())
    assert SAMPLE.name.split("::")[1] in polyop(prefix, "inspect", "modèle.onnx", folder=folder)
    assert "'fehlt ü.onnx' does not exist" in polyop(prefix, "inspect", "fehlt ü.onnx", folder=folder, status=3)


def test_program_starts_itself_with_another_runtime(prefix: Path, models: Path) -> None:
    old = DLLS / "onnxruntime-old" / "onnxruntime" / "capi" / "onnxruntime.dll"
    words = ["verify", name_of(models), *given(models), "--onnxruntime", windows_path(RUNTIME)]
    said = polyop(prefix, *words, "--reference", f"onnxruntime={windows_path(old)}")
    assert "out0" in said


@pytest.mark.parametrize("words", [["my_mul", "--gradient"], ["my_ops", "--project"]], ids=["operator", "project"])
def test_program_writes_operators_as_on_linux(prefix: Path, tmp_path: Path, words: list[str]) -> None:
    mine, theirs = tmp_path / "ä b" / "here" / "ops", tmp_path / "ä b" / "there" / "ops"
    mine.mkdir(parents=True)
    theirs.mkdir(parents=True)
    here("new", *words, "--into", str(mine))
    polyop(prefix, "new", *words, "--into", windows_path(theirs))
    files = {path.relative_to(mine): path.read_bytes() for path in mine.rglob("*") if path.is_file()}
    assert files
    assert {path.relative_to(theirs): path.read_bytes() for path in theirs.rglob("*") if path.is_file()} == files


def test_manual_page_is_that_of_linux(prefix: Path) -> None:
    assert polyop(prefix, "man", "inspect") == here("man", "inspect")


def for_arm(dll: Path) -> bytes:
    """Returns the file with a header that says that its processor is aarch64."""
    content = bytearray(dll.read_bytes())
    struct.pack_into("<H", content, pe.machine_offset(content), 0xAA64)
    return bytes(content)


def test_errors_of_the_program_say_what_to_do(prefix: Path, models: Path, tmp_path: Path) -> None:
    run = ["run", name_of(models), *given(models), "--onnxruntime"]
    missing = windows_path(tmp_path / "keine für uns.dll")
    said = polyop(prefix, *run, missing, status=5)
    assert missing in said
    assert "pip install onnxruntime" in said
    (tmp_path / "text.dll").write_bytes(b"\x7fELF no DLL")
    (tmp_path / "arm.dll").write_bytes(for_arm(TREE / "polyop_onnxruntime.dll"))
    for name in ("text.dll", "arm.dll"):
        said = polyop(prefix, *run, windows_path(tmp_path / name), status=5)
        assert f"{name}: " in said
        assert "another processor" in said
    shutil.copy(TREE / "polyop_torch.dll", tmp_path / "alone.dll")
    said = polyop(prefix, *run, windows_path(tmp_path / "alone.dll"), status=5)
    assert "a library that it needs is missing" in said
    said = polyop(prefix, *run, windows_path(TREE / "polyop_onnxruntime.dll"), status=5)
    assert "is not ONNX Runtime" in said


def test_commands_in_python_say_which_one_they_need(prefix: Path) -> None:
    said = polyop(prefix, "doctor", status=5)
    assert "needs a Python with the package polyop" in said


# ---- C++ tests -------------------------------------------------------------------------------------------------------


TESTS = os.environ["POLYOP_TESTS"].split()


@pytest.mark.parametrize("name", TESTS)
def test_cpp(prefix: Path, name: str) -> None:
    done = start(prefix, f"{name}.exe")
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert re.search(r"\[  PASSED  \] [1-9]\d* tests?", done.stdout)
    assert "SKIPPED" not in done.stdout
