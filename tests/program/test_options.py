# SPDX-License-Identifier: Apache-2.0
"""The options of all commands: one name for one meaning, and one meaning for one name."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.support.single_node import model

COMMANDS = (
    "run", "inspect", "verify", "bench", "batch", "triton", "attach", "optimize", "convert", "portable", "doctor",
    "ops", "new", "test", "cmake-dir", "completion", "man",
)  # fmt: skip

MEANINGS = {
    # A new option is added here, next to those that are about the same, unless one of these has its meaning already.
    # Inputs and outputs.
    "--help": "explain the command",
    "--input": "the value of an input, or the files of one",
    "--set": "an input from numbers",
    "--shape": "the shape of an input, or the least, usual and largest",
    "--output": "the file or folder that is written",
    "--keep": "the outputs that are kept",
    "--format": "the kind of the files of results",
    "--json": "a report for programs",
    "--markdown": "as Markdown",
    "--verbose": "more text",
    "--memory": "the limit of memory for the contents of files",
    "--calibration": "the samples that quantization measures",
    # Images.
    "--layout": "NCHW or NHWC",
    "--range": "the values of black and white",
    "--color": "the order of channels",
    "--resize": "scale images",
    "--letterbox": "scale images with their aspect ratio",
    "--mean": "subtracted from images",
    "--std": "images are divided by it",
    # Where and how a model runs.
    "--runtime": "the runtime that runs the model, or that its file is for",
    "--provider": "the execution provider of ONNX Runtime",
    "--onnxruntime": "the library of ONNX Runtime",
    "--ops": "a further library of operators",
    "--plugins": "whose plugins the file of a TensorRT model names",
    "--without": "operators of which no node may remain",
    "--domain": "the domain of the nodes that are written",
    "--accelerate": "polyop's kernels for standard nodes",
    "--isa": "the instruction set",
    "--threads": "the threads of a run",
    "--max-batch": "the samples that one run takes together",
    "--fp16": "half precision",
    "--int8": "integers of 8 bits",
    "--half": "half precision but for what it would lose",
    "--loss": "the most that half precision may lose",
    "--builder-optimization-level": "how long TensorRT searches",
    "--workspace": "the GPU memory of TensorRT's layers",
    "--timing-cache": "the file of TensorRT's measurements",
    # Times.
    "--warmup": "the runs before those that are timed",
    "--repeat": "the number of timed runs",
    "--seconds": "the time of the timed runs",
    "--layers": "each node alone",
    "--measure": "also time the replacements",
    # Comparisons.
    "--against": "what the model is compared with",
    "--against-provider": "the execution provider of what the model is compared with",
    "--rtol": "the relative tolerance",
    "--atol": "the absolute tolerance",
    "--bisect": "search the first node that differs",
    "--report": "a page of the comparison",
    "--images": "photos to compare on",
    "--truth": "annotations of the photos",
    "--match-iou": "the IoU from which boxes are the same",
    "--min-map": "the mean average precision of success",
    # Detections.
    "--head": "which head the outputs are",
    "--task": "what the head finds",
    "--points": "the number of key points",
    "--score": "the least score",
    "--iou": "the IoU that suppresses",
    "--max": "the number of detections",
    "--classes": "the classes that are found",
    "--agnostic": "classes suppress each other",
    "--labels": "how many classes a box has",
    "--soft": "lower scores instead of removing boxes",
    "--sigma": "of --soft",
    "--thresholds-as-inputs": "thresholds are inputs of the graph",
    "--flat": "outputs without unused rows",
    "--anchors": "the anchors of the head",
    "--image": "take the pixels of a photo",
    "--names": "the names of classes",
    "--draw": "drawings of detections",
    "--sheet": "a contact sheet of the drawings",
    "--csv": "a table of detections",
    # Many files, and servers.
    "--strict": "stop at the first failure",
    "--ray": "a Ray cluster",
    "--workers": "the processes of the cluster",
    "--worker-cpus": "the cores of a process of the cluster",
    "--worker-gpus": "the GPUs of a process of the cluster",
    "--name": "the name of the model on the server",
    "--backend": "the backend of Triton",
    "--delay": "how long a request waits for others",
    "--instances": "the copies of the model on the server",
    "--gpu": "these copies are on GPUs",
    "--at": "the folder on the server",
    # Graphs and operators.
    "--svg": "a drawing of the graph",
    "--html": "a page of the graph",
    "--open": "show the drawing",
    "--all": "also replace what is too small to gain",
    "--allow-fix": "also replace what ONNX Runtime computes wrong",
    "--inline": "replace nodes by those of their functions",
    "--only": "only these nodes or tests",
    "--search": "only operators with these words",
    "--long": "all columns of the list",
    "--project": "a project around the operator",
    "--operator": "the name of the project's operator",
    "--gradient": "also the gradient",
    "--node": "the name of the operator's node",
    "--into": "the folder of the new folder",
    "--build": "the build tree",
}

OTHER_NAMES = {
    "convert m.onnx -o m.engine --shapes y=1": "the model has no input 'y'",
    "convert m.onnx -o m.bin --to openvino": "expected a .xml file",
    "convert m.onnx -o m.engine --plugins": "--ops: expected one argument",
    "optimize m.onnx -o f.onnx --for nowhere": "--runtime: expected onnxruntime",
    "optimize m.onnx -o f.onnx --tolerance=nan": "--rtol: 'nan' is not a number",
    "optimize m.onnx -o f.onnx --plugins polyop": "--plugins: expected --runtime tensorrt",
    "batch m.onnx -i x -o o --batch 0": "--max-batch: '0' is not an integer",
    "batch m.onnx -i x=x.npy -o o --device nowhere": "provider 'nowhere'",
    "run m.onnx --shapes y=1": "the model has no input 'y'",
    "run m.onnx x.npy --device nowhere": "provider 'nowhere'",
    "bench m.onnx --runs 0": "--repeat: '0' is not an integer",
    "bench m.onnx --reference none.onnx": "'none.onnx' does not exist",
    "verify m.onnx --reference=magic": "--against: 'magic' is unknown",
    "verify m.onnx --iou 0": "--match-iou: '0' is not a number",
}


@pytest.fixture(scope="module")
def options(program: Path) -> dict[str, set[str]]:
    """Returns the options of each command."""
    found = {}
    for command in COMMANDS:
        text = subprocess.run([program, command, "--help"], capture_output=True, text=True, check=True).stdout
        lines = text[re.search(r"^options:$", text, re.IGNORECASE | re.MULTILINE).end() :].splitlines()
        heads = [line.strip().partition("  ")[0] for line in lines if re.match(r" {1,4}-", line)]
        found[command] = {name for head in heads for name in re.findall(r"(?:^|[ ,])(--[a-z][a-z0-9-]*)", head)}
    return found


def test_one_name_for_each_meaning(options: dict[str, set[str]]) -> None:
    names = set.union(*options.values())
    assert names == set(MEANINGS)
    assert len(set(MEANINGS.values())) == len(MEANINGS)


def test_commands_that_run_a_model_have_the_same_options(options: dict[str, set[str]]) -> None:
    """What one of them has and another lacks would be found by trial alone."""
    of_all = {"--input", "--set", "--shape", "--provider", "--threads", "--isa", "--ops", "--accelerate", "--json"}
    of_times = {"--runtime", "--warmup", "--repeat", "--seconds"}
    for command, expected in (("run", of_all | of_times), ("bench", of_all | of_times), ("verify", of_all)):
        assert expected - options[command] == set(), command
    assert {"--input", "--set", "--provider", "--threads", "--ops", "--accelerate"} - options["batch"] == set()
    images = {"--layout", "--range", "--color", "--resize", "--letterbox", "--mean", "--std"}
    for command, has in options.items():
        assert images & has in (set(), images), command


@pytest.mark.parametrize("words", OTHER_NAMES)
def test_other_names_of_options_work(program: Path, tmp_path: Path, words: str) -> None:
    x = np.zeros((2, 3), np.float32)
    onnx.save(model("::Identity", {"x": x}), tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", x)
    done = subprocess.run([program, *words.split()], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode != 0
    assert OTHER_NAMES[words] in done.stderr
