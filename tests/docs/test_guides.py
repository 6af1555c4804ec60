# SPDX-License-Identifier: Apache-2.0
"""The guides' examples run and print what the pages say, and the errors that the FAQ quotes are the actual ones."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import onnx
import onnxruntime as ort
import pytest

import polyop
from tests.support.documented import run_blocks
from tests.support.processes import ROOT, environment

TENSORRT = ROOT / ".deps" / "tensorrt-rtx"
MODEL = """<ir_version: 8, opset_import: ["": 17, "mmcv": 1]>
    head (float[1, 2, 8, 8] x, float[R, 5] rois) => (float[R, 2, 2, 2] y) {
        y = mmcv.MMCVRoiAlign<output_height = 2, output_width = 2>(x, rois)
    }"""

HALF = """<ir_version: 8, opset_import: ["": 17, "mmcv": 1]>
    half (float16[N, 4] boxes, float16[N] scores) => (int64[K] kept) {
        [keep] kept = mmcv.NonMaxSuppression(boxes, scores)
    }"""


PYTHON = ROOT / "python"


def test_faq_quotes_the_actual_errors(tmp_path: Path, not_run: Callable[[str], None]) -> None:
    page = tmp_path / "questions.md"
    text = (ROOT / "docs" / "questions.md").read_text()
    if not TENSORRT.is_dir():
        not_run("TensorRT's parser was not run: TensorRT-RTX is installed only where CUDA is")
        text = re.sub(r'\n## "Plugin not found".*?(?=\n## )', "", text, flags=re.DOTALL)
    page.write_text(text)
    model = onnx.parser.parse_model(MODEL)
    onnx.save(model, tmp_path / "head.onnx")
    del model.opset_import[1]
    onnx.save(model, tmp_path / "unstamped.onnx")
    onnx.save(onnx.parser.parse_model(MODEL.replace("MMCVRoiAlign", "RoiAlignPlus")), tmp_path / "renamed.onnx")
    onnx.save(onnx.parser.parse_model(HALF), tmp_path / "half.onnx")
    (tmp_path / "tensorrt.py").write_text("from tensorrt_rtx_bindings import *\n")
    (tmp_path / "my_ops_lib").mkdir()
    subprocess.run(
        ["gcc", "-shared", "-x", "c", "-", "-o", tmp_path / "my_ops_lib" / "libmy_ops_onnxruntime.so"],
        input="int polyop_sdk_version(void) { return 99; }",
        text=True,
        check=True,
    )
    found = environment(PYTHON, tmp_path, TENSORRT, LD_LIBRARY_PATH=str(TENSORRT / "tensorrt_rtx_libs"))
    assert run_blocks(page, tmp_path, found, fails=True) == {"sh", "python", "text"}


def test_what_is_wrong_elsewhere_still_is(tmp_path: Path) -> None:
    assert run_blocks(ROOT / "docs" / "known-wrong.md", tmp_path, environment(PYTHON)) == {"python", "text"}


def test_the_page_about_the_same_boxes_runs(tmp_path: Path) -> None:
    page = ROOT / "docs" / "same-boxes.md"
    assert run_blocks(page, tmp_path, environment(PYTHON), fails=True) == {"python", "sh", "text"}


def test_training_page_runs(tmp_path: Path) -> None:
    assert run_blocks(ROOT / "docs" / "training.md", tmp_path, environment(PYTHON)) == {"python", "text"}


WITHOUT_ONNX_FORM = """
# A model with a separate operator.
import polyop
import torch


@torch.library.custom_op("shop::price", mutates_args=())
def price(x: torch.Tensor) -> torch.Tensor:
    return 2 * x


price.register_fake(torch.empty_like)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 2

    def forward(self, x):
        return torch.ops.shop.price(self.scale * x)


polyop.export(Net(), torch.rand(3, 3), "net.onnx", exporter="dynamo")
""".lstrip()


def test_export_page_quotes_the_actual_error(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(WITHOUT_ONNX_FORM)
    done = subprocess.run(
        [sys.executable, "model.py"], cwd=tmp_path, env=environment(PYTHON), capture_output=True, text=True, check=False
    )
    page = (ROOT / "docs" / "export.md").read_text()
    quoted = re.search(r"^```\n(\w+::\w+ has no ONNX form.*?)^```$", page, re.DOTALL | re.MULTILINE)[1]
    said = done.stderr.replace(f"{tmp_path}/", "")
    for line in quoted.splitlines():
        assert line in said, said


@pytest.mark.slow
def test_guides_run(tmp_path: Path) -> None:
    assert run_blocks(ROOT / "docs" / "export.md", tmp_path, environment(PYTHON)) == {"python", "text"}
    assert run_blocks(ROOT / "docs" / "onnxruntime.md", tmp_path, environment(PYTHON)) == {"python", "sh", "text"}


def test_options_of_coming_from_exist(program: str) -> None:
    """Each option in a right-hand column is one of its cell's command, or else of the section's commands."""
    checked = set()
    for section in (ROOT / "docs" / "coming-from.md").read_text().split("\n## ")[1:]:
        cells = [line.strip("|").split(" | ")[1] for line in section.splitlines() if line.startswith("| ")]
        named = {command for cell in cells for command in re.findall(r"polyop (\w+)", cell)}
        said = {
            c: subprocess.run([program, "help", c], capture_output=True, text=True, check=True).stdout for c in named
        }
        for cell in cells:
            commands = re.findall(r"polyop (\w+)", cell) or list(named)
            for option in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", cell):
                assert any(option in said[command] for command in commands), f"{commands}: {option}"
                checked.add(option)
    assert len(checked) > 20


def test_program_of_other_languages_in_cpp(tmp_path: Path) -> None:
    (runtime,) = (Path(ort.__file__).parent / "capi").glob("libonnxruntime.so*")
    for name in ("libonnxruntime.so", "libonnxruntime.so.1"):
        (tmp_path / name).symlink_to(runtime)
    headers = Path(os.environ.get("ONNXRUNTIME_ROOT", ROOT / ".deps" / "onnxruntime")) / "include"
    onnx.save(onnx.parser.parse_model(MODEL), tmp_path / "head.onnx")
    (text,) = re.findall(
        r"^```cpp\n(.*?)^```$", (ROOT / "docs" / "other-languages.md").read_text(), re.DOTALL | re.MULTILINE
    )
    (tmp_path / "program.cc").write_text(text)
    flags = ["-std=c++20", "-Wall", "-Wextra", "-Werror", "-isystem", headers, f"-L{tmp_path}", "-lonnxruntime"]
    command = ["g++", tmp_path / "program.cc", "-o", tmp_path / "program", *flags, f"-Wl,-rpath,{tmp_path}"]
    subprocess.run(command, check=True)
    done = subprocess.run(
        [tmp_path / "program", polyop.get_onnxruntime_op_path(), tmp_path / "head.onnx"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "2 input(s)\n"), done.stderr
