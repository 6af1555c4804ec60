# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime's WebGPU provider on a software adapter, in a separate process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.support.processes import ROOT, environment

_CHROMIUM = Path("/usr/lib/chromium")  # Debian's chromium-common has SwiftShader and Vulkan's loader
_SWIFTSHADER = _CHROMIUM / "vk_swiftshader_icd.json"
_WHEEL = "onnxruntime-webgpu==1.27.0"


def environment_of_webgpu(not_run: Callable[[str], None]) -> dict[str, str] | None:
    """Returns the environment in which Python finds the wheel with the provider; None, with a reason, if there is no
    adapter or wheel."""
    if not _SWIFTSHADER.is_file():
        not_run(f"no software adapter for WebGPU: {_SWIFTSHADER} is missing; apt-get install chromium-common")
        return None
    folder = ROOT / ".deps" / "onnxruntime-webgpu"
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", folder, _WHEEL]
    if not folder.is_dir() and subprocess.run(list(map(str, command)), check=False).returncode:
        not_run(f"pip could not install {_WHEEL}")
        return None
    return {**environment(folder), "VK_ICD_FILENAMES": str(_SWIFTSHADER), "LD_LIBRARY_PATH": str(_CHROMIUM)}
