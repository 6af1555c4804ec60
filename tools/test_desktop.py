#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests polyop on macOS and Windows, in a new environment: the wheel for this system in dist/, or with --build one that
Apple's clang, or clang for Windows, builds here.

The environment has ONNX Runtime and PyTorch. Tests that start the program `polyop`, which the wheel for macOS lacks,
are left out. --build expects the sources of Highway, ONNX Runtime's headers and JSON in .deps/, as
.github/workflows/desktop.yml lays them out.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEPS = ROOT / ".deps"
ENVIRONMENT = ROOT / "build" / "desktop" / "venv"
TAGS = {"darwin": "macosx_*_arm64", "win32": "win_amd64"}
REQUIREMENTS = ("torch", "demo", "dev", "exporters")
TESTS = (
    "accelerating", "arrays", "aten", "compat/test_transformers_attention.py", "exporting", "onnx", "onnxruntime",
    "operators", "runtimes", "tensorrt", "torch",
)  # fmt: skip
# Other runtimes, which have no library in these wheels.
OTHERS = ("executorch", "jax", "openvino", "tensorrt", "tensorrt_int8", "tvm_ffi", "build_engine", "one_door")


def run(*command: object, **variables: str) -> None:
    subprocess.run(list(map(str, command)), cwd=ROOT, env={**os.environ, **variables}, check=True)


def lay_headers() -> None:
    """Copies headers to where CMake expects them."""
    source = DEPS / "onnxruntime-source" / "include" / "onnxruntime" / "core" / "session"
    (DEPS / "onnxruntime" / "include").mkdir(parents=True, exist_ok=True)
    for header in source.glob("onnxruntime_*.h"):
        shutil.copy(header, DEPS / "onnxruntime" / "include")
    shutil.copytree(DEPS / "json-source" / "single_include" / "nlohmann", DEPS / "nlohmann", dirs_exist_ok=True)


def build(python: Path) -> None:
    lay_headers()
    options = ["-Ccmake.define.POLYOP_BUILD_CLI=OFF", "-Ccmake.define.CMAKE_DISABLE_PRECOMPILE_HEADERS=ON"]
    run(python, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", "dist", *options, ".",
        CC="clang", CXX="clang++", CMAKE_GENERATOR="Ninja")  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", action="store_true", help="build the wheel here, by clang")
    parser.add_argument("pytest", nargs="*", help="options of pytest, after --")
    arguments = parser.parse_args()
    if sys.platform not in TAGS:
        print(f"error: expected macOS or Windows, got {sys.platform}: run `make test` here", file=sys.stderr)
        return 2
    venv.create(ENVIRONMENT, with_pip=True, clear=True)
    python = ENVIRONMENT / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    run(python, "-m", "pip", "install", *(f"-r{ROOT / 'requirements' / f'{name}.txt'}" for name in REQUIREMENTS))
    if arguments.build:
        build(python)
    wheels = sorted((ROOT / "dist").glob(f"polyop-*-{TAGS[sys.platform]}.whl"), key=lambda path: path.stat().st_mtime)
    if not wheels:
        print(f"error: dist/ has no wheel for {TAGS[sys.platform]}: run tools/wheels.sh on Linux", file=sys.stderr)
        return 1
    run(python, "-m", "pip", "install", "--no-deps", "--force-reinstall", wheels[-1])
    left_out = [f"--ignore-glob=tests/*/test_{name}.py" for name in OTHERS]
    run(python, "-m", "pytest", *(f"tests/{folder}" for folder in TESTS), "-m", "not slow and not rest", "-q", *left_out,
        *arguments.pytest)  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
