"""Compares the speed of the library for Windows under wine with that of the portable wheel for Linux.

Both run the same models in the same version of ONNX Runtime by the same program (run_models.cc), interleaved. Prints
the time of each on Linux and the ratio of the two: the shortest times of all runs, and the median of the rounds'
ratios. Requires: tools/test_windows.sh has built the program and the library for Windows, tools/wheels.sh x86_64 the
library for Linux, both with the operators that are called.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tests.support.single_node import model  # noqa: E402

WINDOWS = ROOT / "build" / "portable" / "windows" / "tests" / "bin"
RUNTIME = ROOT / ".deps" / "windows" / "onnxruntime-newest" / "onnxruntime" / "capi" / "onnxruntime.dll"
WINE = "/usr/lib/wine/wine64"
RANDOM = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape, dtype=np.float32)


def boxes(count: int, size: float) -> np.ndarray:
    corners = RANDOM.uniform(0, size * 0.8, (count, 2))
    return np.float32(np.hstack([corners, corners + RANDOM.uniform(4, size * 0.2, (count, 2))]))


def calls() -> dict[str, tuple[str, dict[str, np.ndarray], dict[str, object]]]:
    """Returns node, inputs and attributes of the calls: memory, interpolation, comparisons, and matrix products."""
    rois = np.hstack([np.zeros((512, 1), np.float32), boxes(512, 1000)])
    add = normal(1 << 20)
    pool = {
        "output_height": 7,
        "output_width": 7,
        "spatial_scale": 0.0625,
        "sampling_ratio": 2,
        "mode": "avg",
        "aligned": 1,
    }
    return {
        "my_add": ("custom::my_add", {"a": add, "b": add}, {}),
        "roi_align": ("mmcv::MMCVRoiAlign", {"input": normal(1, 256, 64, 64), "rois": rois}, pool),
        "nms": (
            "mmcv::NonMaxSuppression",
            {"boxes": boxes(4000, 1000), "scores": RANDOM.random(4000, dtype=np.float32)},
            {"iou_threshold": 0.5, "offset": 0},
        ),
        "grid_sampler": (
            "mmcv::grid_sampler",
            {"input": normal(1, 64, 128, 128), "grid": np.clip(normal(1, 128, 128, 2), -1, 1)},
            {"interpolation_mode": 0, "padding_mode": 0, "align_corners": 0},
        ),
    }


def environment(repeat: int, **variables: str) -> dict[str, str]:
    return {**os.environ, "POLYOP_REPEAT": str(repeat), "POLYOP_THREADS": "1", **variables}


def times(command: list[object], variables: dict[str, str]) -> list[float]:
    done = subprocess.run(list(map(str, command)), env=variables, capture_output=True, text=True, check=True)
    return [float(line.split()[1]) for line in done.stdout.splitlines() if line[0].isdigit()]


def linux_runtime() -> Path:
    import onnxruntime

    version = RUNTIME.parents[2].glob("onnxruntime-*.dist-info")
    expected = next(version).name.removeprefix("onnxruntime-").removesuffix(".dist-info")
    if onnxruntime.__version__ != expected:
        raise SystemExit(f"ONNX Runtime: expected {expected} as on Windows, got {onnxruntime.__version__}")
    return next(Path(onnxruntime.__file__).parent.glob("capi/libonnxruntime.so.*"))


def compile_runner(program: Path) -> Path:
    """Compiles the program for Linux by the compiler of the library."""
    compiler = ROOT / "build" / "portable" / "x86_64" / "zig" / "zig-c++"
    sources = [ROOT / "tests" / "windows" / "run_models.cc", ROOT / "platform" / "posix" / "library.cc"]
    headers = ["-I", ROOT, "-isystem", ROOT / ".deps" / "onnxruntime" / "include"]
    subprocess.run([compiler, "-std=c++20", "-DORT_API_MANUAL_INIT", *headers, *sources, "-o", program], check=True)
    return program


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--library", type=Path, default=ROOT / "build/portable/x86_64/polyop/lib/libpolyop_onnxruntime.so"
    )
    parser.add_argument("--only", default=",".join(calls()), help="operators, separated by commas")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--repeat", type=int, default=20, help="runs of a model in a round")
    options = parser.parse_args()
    chosen = {name: call for name, call in calls().items() if name in options.only.split(",")}
    runtime = linux_runtime()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for number, (node, inputs, attributes) in enumerate(chosen.values()):
            (folder / f"{number}.onnx").write_bytes(model(node, inputs, attributes=attributes).SerializeToString())
            for name, array in inputs.items():
                np.save(folder / f"{number}.{name}.npy", array)
        linux = [compile_runner(folder / "run_models"), runtime, options.library, folder]
        windows = [
            WINE,
            WINDOWS / "run_models.exe",
            *(f"Z:{path}" for path in (RUNTIME, WINDOWS / "polyop_onnxruntime.dll", folder)),
        ]
        wine = {"WINEPREFIX": str(folder / "wine"), "WINEDEBUG": "-all"}
        times(windows, environment(1, **wine))  # creates wine's folder
        there, here = [], []
        for _ in range(options.rounds):
            here.append(times(linux, environment(options.repeat)))
            there.append(times(windows, environment(options.repeat, **wine)))
        if errors := sorted(folder.glob("*.error")):
            raise SystemExit("\n".join(f"{list(chosen)[int(file.stem)]}: {file.read_text()}" for file in errors))
        print(f"{'operator':14s} {'Linux, ms':>10s} {'ratio':>6s} {'median':>7s}")
        for number, name in enumerate(chosen):
            mine, theirs = ([each[number] for each in rounds] for rounds in (here, there))
            median = statistics.median(b / a for a, b in zip(mine, theirs, strict=True))
            print(f"{name:14s} {min(mine) * 1e3:10.3f} {min(theirs) / min(mine):6.2f} {median:7.2f}")


if __name__ == "__main__":
    main()
