# SPDX-License-Identifier: Apache-2.0
"""Compares the speed of the library for Windows under wine with that of the portable wheel for Linux.

Both run the benchmark's first case of each operator (ops/*/*/cases.py) in the same version of ONNX Runtime by the same
program (run_models.cc), interleaved, on one thread. Prints the time of each on Linux and the ratio of the two: the
shortest times of all runs, and the median of the rounds' ratios. Requires: tools/test_windows.sh has built the program
and the library for Windows, tools/wheels.sh x86_64 the library for Linux, both with the operators that are called.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import onnxruntime

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]
from benchmark import Case, cases  # noqa: E402

WINDOWS = ROOT / "build" / "portable" / "windows" / "tests" / "bin"
RUNTIME = ROOT / ".deps" / "windows" / "onnxruntime-newest" / "onnxruntime" / "capi" / "onnxruntime.dll"
WINE = "/usr/lib/wine/wine64"


def first_cases(words: list[str]) -> list[Case]:
    """Returns the first case of each operator, or of those whose name contains one of the words."""
    chosen: dict[str, Case] = {}
    for case in cases("cpu"):
        if not words or any(word in case.operator for word in words):
            chosen.setdefault(case.operator, case)
    return list(chosen.values())


def time_of(command: list[object], folder: Path, repeat: int, **variables: str) -> float:
    """Returns the shortest time of a run of the folder's only model, in seconds."""
    system = {**os.environ, "POLYOP_REPEAT": str(repeat), "POLYOP_THREADS": "1", **variables}
    done = subprocess.run(list(map(str, command)), env=system, capture_output=True, text=True, check=True)
    if (error := folder / "0.error").exists():
        raise RuntimeError(error.read_text())
    [line] = [line for line in done.stdout.splitlines() if line[0].isdigit()]
    return float(line.split()[1])


def linux_runtime() -> Path:
    version = RUNTIME.parents[2].glob("onnxruntime-*.dist-info")
    expected = next(version).name.removeprefix("onnxruntime-").removesuffix(".dist-info")
    if onnxruntime.__version__ != expected:
        raise SystemExit(f"ONNX Runtime: expected {expected} as on Windows, got {onnxruntime.__version__}")
    return next(Path(onnxruntime.__file__).parent.glob("capi/libonnxruntime.so.*"))


def compile_runner(program: Path) -> Path:
    """Compiles the program for Linux by the compiler of the library."""
    compiler = ROOT / "build" / "portable" / "x86_64" / "zig" / "zig-c++"
    sources = [ROOT / "tests" / "windows" / "run_models.cc", ROOT / "platform" / "posix" / "library.cc"]
    headers: list[str | Path] = ["-I", ROOT, "-isystem", ROOT / ".deps" / "onnxruntime" / "include"]
    subprocess.run([compiler, "-std=c++20", "-DORT_API_MANUAL_INIT", *headers, *sources, "-o", program], check=True)
    return program


class Comparison:
    """The programs, libraries and runtimes of both systems. `folder` gets the program for Linux and wine's files."""

    def __init__(self, library: Path, folder: Path) -> None:
        self._linux = [compile_runner(folder / "run_models"), linux_runtime(), library]
        paths = (f"Z:{path}" for path in (RUNTIME, WINDOWS / "polyop_onnxruntime.dll"))
        self._windows = [WINE, WINDOWS / "run_models.exe", *paths]
        self._wine = {"WINEPREFIX": str(folder / "wine"), "WINEDEBUG": "-all"}

    def times(self, case: Case, rounds: int, repeat: int) -> list[tuple[float, float]]:
        """Returns the times of each round, on Linux and under wine. The first round is a warm-up."""
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            case.make(1).ours.save(folder, "0")
            return [
                (
                    time_of([*self._linux, folder], folder, repeat),
                    time_of([*self._windows, f"Z:{folder}"], folder, repeat, **self._wine),
                )
                for _ in range(rounds + 1)
            ][1:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    library = ROOT / "build/portable/x86_64/polyop/lib/libpolyop_onnxruntime.so"
    parser.add_argument("--library", type=Path, default=library)
    parser.add_argument("--only", default="", help="parts of operators' names, separated by commas")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=10, help="runs of a model in a round")
    options = parser.parse_args()
    medians = []
    print(f"{'operator':32s} {'Linux, ms':>10s} {'ratio':>6s} {'median':>7s}")
    with tempfile.TemporaryDirectory() as temporary:
        comparison = Comparison(options.library, Path(temporary))
        for case in first_cases(options.only.split(",") if options.only else []):
            try:
                times = comparison.times(case, options.rounds, options.repeat)
            except Exception as error:  # of one case: the others are compared nevertheless
                print(f"{case.operator:32s} {error}", flush=True)
                continue
            linux, windows = (min(each) for each in zip(*times, strict=True))
            medians.append(statistics.median(b / a for a, b in times))
            print(f"{case.operator:32s} {linux * 1e3:10.3f} {windows / linux:6.2f} {medians[-1]:7.2f}", flush=True)
    if medians:
        near = sum(median <= 1.05 for median in medians)
        middle = statistics.median(medians)
        print(f"{len(medians)} operators: the median of their medians is {middle:.2f}, {near} are at most 1.05")


if __name__ == "__main__":
    main()
