# SPDX-License-Identifier: Apache-2.0
"""`polyop doctor`: what works here of the packages that polyop replaces, and of the runtimes that it runs in."""

from __future__ import annotations

import argparse
import ctypes
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

from polyop import __version__
from polyop._commands import terminal
from polyop._commands.arguments import add_json_option
from polyop._commands.errors import ExitCode, nearest, usage
from polyop.errors import INSTALL, page

SUMMARY = "Show what is installed, what does not load and why, and what to do"
NEEDS = ""
FOOTER = """\
Imports the runtimes that polyop has libraries for, and the packages that it can replace, in another process. Exits
with 5 if polyop's library does not work in a runtime that is installed, otherwise with 0.

Examples:
  polyop doctor                      all
  polyop doctor mmcv                 one package; also by the name that pip has for it: spconv-cu118
  polyop doctor torchvision._C       one module
  polyop doctor --json               a report for a bug report or a script"""

_PIP = {
    "onnxruntime": "pip install --upgrade 'onnxruntime>=1.17'",
    "accelerator": "pip install --upgrade 'onnxruntime>=1.17'",
    "torch": "pip install --upgrade 'torch>=2.10'",
    "openvino": "pip install --upgrade 'openvino>=2026.0'",
    "numpy": "pip install --upgrade 'numpy>=1.24'",
    "jax": "pip install --upgrade 'jax>=0.10'",
    "executorch": "pip install --upgrade 'executorch>=1.5'",
    "tvm_ffi": "pip install --upgrade 'apache-tvm-ffi>=0.1.15'",
}
_PACKAGES = {
    "mmcv._ext": "pip install mmcv-lite mmengine",
    "torchvision._C": "pip install torchvision",
}
"""Packages of which polyop replaces a part, and the command that installs them without that part."""
_BASIC = ("onnxruntime", "accelerator", "torch")
"""Libraries that every polyop has."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="a module that polyop replaces, or a runtime (default: all)"
    )
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    from polyop.compat._packages import REPLACEMENTS, modules_called
    from polyop.compat._probe import RUNTIMES, probe

    chosen = set() if options.names else {*RUNTIMES, *REPLACEMENTS}
    for name in options.names:
        meant = [name] if name in RUNTIMES else modules_called(name)
        if not meant:
            raise usage(f"doctor: polyop does not replace '{name}'", _other_name(name, [*RUNTIMES, *REPLACEMENTS]))
        chosen.update(meant)
    runtimes = [name for name in RUNTIMES if name in chosen]
    packages = [name for name in REPLACEMENTS if name in chosen]
    found = probe([*(f"runtime:{name}" for name in runtimes), *packages])
    report = {
        "system": _system(),
        "runtimes": {name: _of_runtime(name, found[f"runtime:{name}"]) for name in runtimes},
        "packages": {name: _of_package(name, found[name], bool(options.names)) for name in packages},
    }
    if options.json:
        terminal.print_json(report)
    else:
        print(_text(report, {name: RUNTIMES[name].title for name in runtimes}))
    is_broken = any(record["state"] in ("fails", "old") for record in report["runtimes"].values()) or any(
        report["runtimes"][name]["state"] == "no library" for name in _BASIC if name in report["runtimes"]
    )
    return ExitCode.NO_RUNTIME if is_broken else ExitCode.OK


def _of_runtime(name: str, record: dict[str, Any]) -> dict[str, Any]:
    """Adds the command that fixes it, or None."""
    fix = None
    if record["state"] == "no library" and name != "tensorrt":
        fix = f"`make build` in a checkout; otherwise {INSTALL}"
    elif record["state"] in ("old", "missing"):
        fix = _PIP.get(name)
    elif record["state"] == "fails":
        fix = f"pip install --force-reinstall {_PIP[name].split()[-1]}" if name in _PIP else None
    return {**record, "fix": fix}


def _other_name(name: str, known: list[str]) -> str:
    near = nearest(name, known, least=0.8)
    return f"did you mean '{near}'?" if near else "`polyop doctor` lists what it replaces"


def _of_package(name: str, record: dict[str, Any], is_named: bool) -> dict[str, Any]:
    fix = _PACKAGES.get(name) if is_named and record["state"] == "missing" else None
    if record["state"] == "fails":
        fix = f"import polyop.compat; polyop.compat.install({name!r})"
        if not find_spec("torch"):
            fix = f"{_PIP['torch']}, then {fix}"
    return {**record, "fix": fix}


def _system() -> dict[str, Any]:
    from polyop._commands.main import find_program

    program = find_program()
    name, libc = platform.libc_ver()
    return {
        "polyop": __version__,
        "program": str(program) if program else None,
        "program_version": _program_version(str(program)) if program else None,
        "python": platform.python_version(),
        "executable": sys.executable,
        "system": f"{platform.system()} {platform.machine()}",
        "libc": f"{name} {libc}".strip() or None,
        "torch": _torch_version(),
        "cuda_driver": _cuda_driver(),
    }


def _program_version(program: str) -> str | None:
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.split()[-1] if done.returncode == 0 and done.stdout.split() else None


def _torch_version() -> str | None:
    try:
        return version("torch")
    except PackageNotFoundError:
        return None


def _cuda_driver() -> str | None:
    """Returns the newest CUDA that the GPU's driver supports, "13.0", or None without a driver."""
    try:
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return None
    number = ctypes.c_int()
    if driver.cuDriverGetVersion(ctypes.byref(number)) != 0:
        return None
    return f"{number.value // 1000}.{number.value % 1000 // 10}"


# ---- text --------------------------------------------------------------------------------------------------------


def _text(report: dict[str, Any], titles: dict[str, str]) -> str:
    parts = [_system_text(report["system"])]
    if report["runtimes"]:
        rows = [
            (titles[name], record["version"] or "-", _runtime_state(record["state"]))
            for name, record in report["runtimes"].items()
        ]
        parts.append("Runtimes\n" + terminal.table(("runtime", "version", "polyop's library"), rows))
    if report["packages"]:
        rows = [(name, record["version"] or "-", _package_state(record)) for name, record in report["packages"].items()]
        parts.append("Packages that polyop can replace\n" + terminal.table(("module", "version", "state"), rows))
    if lacks := report["runtimes"].get("torch", {}).get("lacks"):
        parts.append("Functions that polyop.export replaces, and this PyTorch does not have\n" + "\n".join(lacks))
    problems = [
        *_missing_libraries(report["runtimes"], titles),
        *(
            _problem(titles[name], record)
            for name, record in report["runtimes"].items()
            if _is_problem(record) and record["state"] != "no library"
        ),
        *(_problem(name, record) for name, record in report["packages"].items() if _is_problem(record)),
    ]
    if problems:
        parts.append("What to do\n" + "\n".join(problems))
    if any(record["state"] == "fails" for record in report["packages"].values()):
        parts.append(
            "Without a change of the code, all packages at once:\n  python -m polyop.compat SCRIPT ARGUMENTS…\n"
            f"{page('compat')} describes the packages."
        )
    return "\n\n".join(parts)


def _system_text(system: dict[str, Any]) -> str:
    program = system["program"] or "not installed"
    if system["program"] and system["program_version"] != system["polyop"]:
        program += f" (version {system['program_version'] or 'unknown'}: expected {system['polyop']})"
    rows = (
        ("polyop", system["polyop"]),
        ("program", program),
        ("Python", f"{system['python']}, {system['executable']}"),
        ("system", ", ".join(filter(None, (system["system"], system["libc"])))),
        ("PyTorch", system["torch"] or "not installed"),
        ("GPU driver", f"CUDA {system['cuda_driver']}" if system["cuda_driver"] else "none"),
    )
    return "\n".join(f"{name:<11} {value}" for name, value in rows)


def _runtime_state(state: str) -> str:
    return {
        "loads": terminal.green("loads"),
        "missing": "the runtime is not installed",
        "no library": "this polyop has none",
        "old": terminal.red("the runtime is too old"),
        "fails": terminal.red("does not load"),
    }[state]


def _package_state(record: dict[str, Any]) -> str:
    if record["state"] == "loads":
        return terminal.green("loads")
    if record["state"] == "missing":
        return "its package is not installed"
    if record["cause"] == "is not installed":
        return "is not installed; polyop replaces it"
    return terminal.red("does not load") + "; polyop replaces it"


def _is_problem(record: dict[str, Any]) -> bool:
    return (record["error"] or record["fix"]) is not None and record["cause"] != "is not installed"


def _missing_libraries(runtimes: dict[str, dict[str, Any]], titles: dict[str, str]) -> list[str]:
    """One problem for all libraries that one command builds."""
    commands: dict[str | None, list[str]] = {}
    for name, record in runtimes.items():
        if record["state"] == "no library":
            commands.setdefault(record["fix"], []).append(titles[name])
    return [
        _problem(
            f"no library for {', '.join(names)}", {"cause": None, "error": f"this is polyop {__version__}", "fix": fix}
        )
        for fix, names in commands.items()
    ]


def _problem(name: str, record: dict[str, Any]) -> str:
    lines = [f"  {name}: {record['cause'] or record['error'] or 'its package is not installed'}"]
    if record["cause"]:
        lines.append(f"    {record['error']}")
    if record["fix"]:
        lines.append(f"    to fix it: {record['fix']}")
    return "\n".join(lines)
