# SPDX-License-Identifier: Apache-2.0
"""The pages, followed by a user who has a wheel in a fresh environment and no checkout, on the oldest and the newest
Python of this machine: with runtimes, and without any. Files that the pages take as given are written here.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.docs.test_guides import HALF, MODEL
from tests.support.deformable_attention import First, inputs, write
from tests.support.documented import run_blocks
from tests.support.machines import SRCNN, photos
from tests.support.processes import ROOT, run
from tests.support.wheels import author_environment, interpreters

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

DOCS = ROOT / "docs"
POOL = """<ir_version: 8, opset_import: ["": 17, "mmcv": 1]>
    pool (float[1, 8, 50, 76] features, float[n, 5] rois) => (float[n, 8, 7, 7] pooled) {
        pooled = mmcv.MMCVRoiAlign<output_height = 7, output_width = 7, spatial_scale = 0.25, aligned = 1>(features, rois)
    }"""
SAMPLER = """<ir_version: 8, opset_import: ["": 17, "mmcv": 1]>
    sampler (float[1, 2, 8, 8] x, float[1, 4, 5, 2] grid) => (float[1, 2, 4, 5] y) {
        y = mmcv.grid_sampler<interpolation_mode = 0, padding_mode = 0, align_corners = 0>(x, grid)
    }"""
STANDARD = """<ir_version: 8, opset_import: ["": 17]>
    standard (float[1, 2, 8, 8] x, float[1, 4, 5, 2] grid) => (float[1, 2, 4, 5] y) { y = GridSample(x, grid) }"""
PYTHONS = list(interpreters().values())


class Fresh:
    """A new environment that holds the wheel, and the packages of some extras from the package index."""

    def __init__(self, folder: Path, python: str, wheel: Path, *packages: str) -> None:
        run(python, "-m", "venv", folder)
        kept = {k: v for k, v in os.environ.items() if k.lower().endswith("_proxy") or k.startswith(("PIP_", "SSL_"))}
        self.variables = {
            **kept,
            "PATH": f"{folder / 'bin'}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(folder.parent),
            "LANG": "C.UTF-8",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }
        run(folder / "bin" / "python", "-m", "pip", "install", "--quiet", *packages, wheel, env=self.variables)

    def run(self, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(words, cwd=cwd, env=self.variables, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module", params=sorted({PYTHONS[0], PYTHONS[-1]}), ids=lambda path: Path(path).name)
def python(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def bare(python: str, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Fresh:
    return Fresh(tmp_path_factory.mktemp("bare") / "venv", python, wheel)


@pytest.fixture(scope="module")
def runtimes(python: str, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Fresh:
    """Has ONNX Runtime and OpenVINO. The extra is installed afterwards, as the hints say it."""
    fresh = Fresh(tmp_path_factory.mktemp("runtimes") / "venv", python, wheel)
    binaries = ["--quiet", "--only-binary", ":all:"]
    run("python", "-m", "pip", "install", *binaries, "polyop[batch,openvino]", env=fresh.variables)
    return fresh


def given_files(folder: Path) -> None:
    """Writes the files that pages take as given."""
    onnx.save(onnx.parser.parse_model(POOL), folder / "pool.onnx")
    head = onnx.parser.parse_model(MODEL)
    for name in ("head.onnx", "model.onnx"):
        onnx.save(head, folder / name)
    np.savez(folder / "inputs.npz", x=np.ones((1, 2, 8, 8), np.float32), rois=np.float32([[0, 0, 0, 4, 4]]))
    del head.opset_import[1]
    onnx.save(head, folder / "unstamped.onnx")
    onnx.save(onnx.parser.parse_model(MODEL.replace("MMCVRoiAlign", "RoiAlignPlus")), folder / "renamed.onnx")
    onnx.save(onnx.parser.parse_model(HALF), folder / "half.onnx")
    (folder / "my_ops_lib").mkdir()
    library = folder / "my_ops_lib" / "libmy_ops_onnxruntime.so"
    run("gcc", "-shared", "-x", "c", "-", "-o", library, input="int polyop_sdk_version(void) { return 99; }")


def without(text: str, *sections: str) -> str:
    """Returns a page without the sections whose headings begin so."""
    for section in sections:
        text, removed = re.subn(rf"^## {re.escape(section)}.*?(?=^## |\Z)", "", text, flags=re.DOTALL | re.MULTILINE)
        assert removed == 1, section
    return text


def follow(fresh: Fresh, folder: Path, page: str, text: str | None = None, fails: bool = False) -> set[str]:
    copy = folder / page
    copy.write_text(text or (DOCS / page).read_text())
    return run_blocks(copy, folder, fresh.variables, fails=fails)


def test_onnxruntime(runtimes: Fresh, tmp_path: Path) -> None:
    given_files(tmp_path)
    assert follow(runtimes, tmp_path, "onnxruntime.md") == {"python", "sh", "text"}


def test_accelerator(runtimes: Fresh, tmp_path: Path) -> None:
    onnx.save(onnx.parser.parse_model(STANDARD), tmp_path / "model.onnx")
    assert follow(runtimes, tmp_path, "accelerator.md") == {"python"}


def test_questions(runtimes: Fresh, tmp_path: Path) -> None:
    """Without the sections about PyTorch and TensorRT, which are not installed; test_guides.py has them."""
    given_files(tmp_path)
    text = without((DOCS / "questions.md").read_text(), '"Plugin not found"', '"has no attribute" in torch.ops')
    assert follow(runtimes, tmp_path, "questions.md", text, fails=True) == {"python", "sh", "text"}


def test_openvino(runtimes: Fresh, tmp_path: Path) -> None:
    """`polyop portable` needs PyTorch."""
    given_files(tmp_path)
    text = re.sub(r"^polyop portable .*\n", "", (DOCS / "openvino.md").read_text(), flags=re.MULTILINE)
    assert follow(runtimes, tmp_path, "openvino.md", text) == {"python", "sh"}


def test_optimize(runtimes: Fresh, tmp_path: Path) -> None:
    given = inputs(batch=1, queries=300, heads=8, points=(3, 4))
    write(First(), given, tmp_path / "detector.onnx", "torchscript")
    assert follow(runtimes, tmp_path, "optimize.md") == {"python", "sh"}


def test_many_machines(runtimes: Fresh, tmp_path: Path) -> None:
    """Without Ray, which is not installed; test_ray.py has it."""
    shutil.copy(SRCNN / "srcnn3.onnx", tmp_path)
    photos(tmp_path / "photos", 3, extension="jpg")
    text = without((DOCS / "many-machines.md").read_text(), "A cluster")
    assert follow(runtimes, tmp_path, "many-machines.md", text) == {"sh"}
    assert len(list((tmp_path / "large").rglob("*.png"))) == 3
    assert (tmp_path / "repository" / "srcnn3" / "config.pbtxt").is_file()


NEEDS = {
    "polyop run head.onnx": "pip install onnxruntime",
    "polyop verify head.onnx": "pip install onnxruntime",
    "polyop bench head.onnx": "pip install onnxruntime",
    "polyop optimize head.onnx -o fast.onnx": "pip install 'polyop[optimize]'",
    "polyop batch head.onnx -i inputs.npz -o out": "pip install 'polyop[batch]'",
    "polyop triton head.onnx -o out": "pip install 'polyop[batch]'",
    "polyop portable head.onnx -o out.onnx": "pip install 'polyop[export]'",
    "polyop convert head.onnx -o head.engine": "pip install",
    "polyop convert head.onnx -o head.xml --to openvino": "pip install",
}


def test_without_any_runtime(bare: Fresh, tmp_path: Path) -> None:
    """Every command names what to install, with exit code 5; what needs no runtime works."""
    given_files(tmp_path)
    for command, hint in NEEDS.items():
        done = bare.run(*command.split(), cwd=tmp_path)
        assert (done.returncode, hint in done.stderr) == (5, True), f"{command}\n{done.stderr}"
        assert "Traceback" not in done.stderr, command
    for command in ("polyop --help", "polyop ops roi_align", "polyop inspect head.onnx", "polyop new a --project"):
        done = bare.run(*command.split(), cwd=tmp_path)
        assert done.returncode == 0, f"{command}\n{done.stderr}"


def test_python_of_pages_without_any_runtime(bare: Fresh, tmp_path: Path) -> None:
    """Every Python block of every page ends with an error that names a package, never with another one."""
    count = 0
    for page in [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]:
        for text in re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE):
            last = bare.run("python", "-c", text, cwd=tmp_path).stderr.splitlines()[-1:]
            assert last, f"{page.name}: it ran without any package:\n{text}"
            names = r"(ImportError|ModuleNotFoundError): (.*pip install|No module named '(?!polyop))"
            known = re.match(names, last[0])
            assert known, f"{page.name}: {last[0]}\n{text}"
            count += 1
    assert count > 15


# ---- with PyTorch ----------------------------------------------------------------------------------------------------

WITH_PYTORCH = list(filter(None, os.environ.get("POLYOP_PYTHONS_WITH_TORCH", "").split(os.pathsep)))
"""Further Pythons, of environments with the packages of polyop[export]; pip downloads gigabytes for one."""


@pytest.mark.parametrize("of_environment", [sys.executable, *WITH_PYTORCH])
def test_with_pytorch(
    of_environment: str,
    wheel: Path,
    tmp_path_factory: pytest.TempPathFactory,
    tmp_path: Path,
    not_run: Callable[[str], None],
) -> None:
    """The README's example, then the pages that need PyTorch."""
    if not WITH_PYTORCH:
        not_run("the pages were followed with PyTorch on this Python only: POLYOP_PYTHONS_WITH_TORCH names others")
    author = author_environment(of_environment, wheel, tmp_path_factory.mktemp("author") / "venv")
    given_files(tmp_path)
    readme = (ROOT / "README.md").read_text()
    program, printed = re.search(
        r"```python\n([^`]*polyop\.export[^`]*)```\n\n```\n(.*?)```", readme, re.DOTALL
    ).groups()
    done = subprocess.run(
        ["python", "-"], input=program, cwd=tmp_path, env=author, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == printed.split(), done.stderr
    for page in ("export.md", "training.md"):
        assert run_blocks(DOCS / page, tmp_path, author) == {"python", "text"}
    onnx.save(onnx.parser.parse_model(SAMPLER), tmp_path / "old.onnx")
    assert run_blocks(DOCS / "portable-files.md", tmp_path, author) == {"sh"}
