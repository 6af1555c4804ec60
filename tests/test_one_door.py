"""Every runtime refuses the same wrong calls with the same words: each passes the one door of core/call.h.

One table of calls. For each: the operator in PyTorch, the node in ONNX Runtime and in the program, and, where CUDA's
toolkit is installed, the plugin in TensorRT-RTX. A check that the door lacks is missing in all of them at once.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument, RuntimeException
from single_node import model, session
from test_tensorrt import HAS_PLUGINS, build_all

import polyop.functional  # noqa: F401 (torch.ops.polyop)

BOXES = np.array([[0, 0, 4, 4], [1, 1, 5, 5]], np.float32)
SCORES = np.array([0.9, 0.8], np.float32)
PICTURE = np.zeros((1, 2, 4, 4), np.float32)
ROIS = np.zeros((1, 5), np.float32)
PYRAMID = [np.zeros((1, 1, 4, 4), np.float32)]


@dataclass(frozen=True)
class Wrong:
    """A call that is refused, and what the message says."""

    what: str
    operator: str
    node: str
    inputs: tuple
    message: str
    attributes: dict = field(default_factory=dict)
    node_attributes: dict | None = None  # where a node calls them otherwise
    not_in: dict = field(default_factory=dict)  # runtime: why it cannot be asked there
    outputs: tuple = ("y",)


ALIGN = {"output_height": 2, "output_width": 2}
LEVELS = {**ALIGN, "finest_scale": 56, "roi_scale_factor": -1.0}
STATIC = "TensorRT's parser has types and ranks of its own to refuse first"

WRONG = [
    Wrong("attribute out of range", "roi_align", "mmcv::MMCVRoiAlign", (PICTURE, ROIS),
          "attribute 'output_height' is 0, wanted a number in [1, 4096]", {**ALIGN, "output_height": 0}),
    Wrong("attribute too small for the kernel's type", "soft_nms", "mmcv::SoftNonMaxSuppression", (BOXES, SCORES),
          "attribute 'sigma' is", {"sigma": 1e-50}, outputs=("dets", "keep")),  # a file holds 0, PyTorch 1e-50
    Wrong("unknown choice", "roi_align", "mmcv::MMCVRoiAlign", (PICTURE, ROIS),
          "attribute 'mode' is median, wanted one of {avg, max}", {**ALIGN, "mode": "median"}),
    Wrong("unknown code", "grid_sampler", "mmcv::grid_sampler",
          (PICTURE, np.zeros((1, 3, 3, 2), np.float32)),
          "attribute 'interpolation_mode' is", {"interpolation_mode": "cubic"}, {"interpolation_mode": 7}),
    Wrong("rank", "roi_align", "mmcv::MMCVRoiAlign", (PICTURE[0], ROIS), "'input' has rank 3 (shape [2, 4, 4])", ALIGN),
    Wrong("extent", "roi_align", "mmcv::MMCVRoiAlign", (PICTURE, ROIS[:, :4]),
          "'rois' has shape [1, 4], wanted [R, 5]: dimension 1 is 4, wanted 5", ALIGN),
    Wrong("extents that belong together", "nms", "mmcv::NonMaxSuppression", (BOXES, SCORES[:1]), "dimension 0 is 1"),
    Wrong("nine dimensions", "my_add", "custom::my_add", (np.zeros((1,) * 9, np.float32), SCORES[:1]),
          "'a' has 9 dimensions, at most 8 are possible",
          not_in={"tensorrt": "it has at most 8 dimensions itself"}),
    Wrong("element type", "roi_align", "mmcv::MMCVRoiAlign", (PICTURE.astype(np.int32), ROIS),
          "no kernel takes inputs (i32[1, 2, 4, 4], f32[1, 5])", ALIGN,
          not_in={"onnxruntime": "it refuses the type when it loads the model", "program": "the same",
                  "tensorrt": STATIC}),
    Wrong("too many tensors", "multi_level_roi_align", "mmdeploy::MMCVMultiLevelRoiAlign", (ROIS, *PYRAMID * 17),
          "17 tensors came for 'feats', at most 16 are possible", {**LEVELS, "featmap_strides": [4.0] * 16}),
    Wrong("far too many tensors", "multi_level_roi_align", "mmdeploy::MMCVMultiLevelRoiAlign", (ROIS, *PYRAMID * 40),
          "40 tensors came for 'feats', at most 16 are possible", {**LEVELS, "featmap_strides": [4.0] * 16}),
    Wrong("too few inputs", "multi_level_roi_align", "mmdeploy::MMCVMultiLevelRoiAlign", (ROIS,),
          "1 inputs came, wanted 2 or more", {**LEVELS, "featmap_strides": [4.0]},
          not_in={"onnxruntime": "it counts inputs when it loads the model", "program": "the same"}),
    Wrong("size that overflows", "grid_priors", "mmdeploy::GridPriorsTRT",
          (np.zeros((2**20, 4), np.float32), np.zeros(2**20, np.float32), np.zeros(2**20, np.float32)),
          "its size overflows 64 bits", {"stride_h": 1, "stride_w": 1},
          not_in={"tensorrt": "its extents have 32 bits"}),
]  # fmt: skip
IDS = [wrong.what for wrong in WRONG]


def cannot_ask(wrong: Wrong, runtime: str, not_run: Callable[[str], None]) -> bool:
    """Whether the call cannot be asked of this runtime; the end of the run says why."""
    if runtime in wrong.not_in:
        not_run(f"not asked of {runtime}: {wrong.not_in[runtime]}")
    return runtime in wrong.not_in


def proto_of(wrong: Wrong, static: bool = False) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A model of the node. Its inputs' ranks are not told, so that nothing is refused before the call, or all extents."""
    inputs = {f"in{i}": array for i, array in enumerate(wrong.inputs)}
    attributes = wrong.attributes if wrong.node_attributes is None else wrong.node_attributes
    shapes = None if static else dict.fromkeys(inputs)
    return model(wrong.node, inputs, wrong.outputs, attributes, shapes), inputs


@pytest.mark.parametrize("wrong", WRONG, ids=IDS)
def test_pytorch(wrong: Wrong, not_run: Callable[[str], None]) -> None:
    if cannot_ask(wrong, "torch", not_run):
        return
    tensors = [torch.from_numpy(array) for array in wrong.inputs]
    variadic = wrong.operator.startswith("multi_level")
    arguments = [tensors[0], tensors[1:]] if variadic else tensors
    with pytest.raises((RuntimeError, ValueError)) as error:
        getattr(torch.ops.polyop, wrong.operator)(*arguments, **wrong.attributes)
    assert wrong.message in str(error.value)
    assert f"polyop::{wrong.operator}" in str(error.value)


@pytest.mark.parametrize("wrong", WRONG, ids=IDS)
def test_onnxruntime(wrong: Wrong, not_run: Callable[[str], None]) -> None:
    if cannot_ask(wrong, "onnxruntime", not_run):
        return
    proto, feeds = proto_of(wrong)
    with pytest.raises((InvalidArgument, Fail, RuntimeException)) as error:
        session(proto).run(None, feeds)
    assert wrong.message in str(error.value)
    assert f"{wrong.node} (node 'node')" in str(error.value)


@pytest.mark.parametrize("wrong", WRONG, ids=IDS)
def test_program(wrong: Wrong, program: str, tmp_path: Path, not_run: Callable[[str], None]) -> None:
    if cannot_ask(wrong, "program", not_run):
        return
    proto, feeds = proto_of(wrong)
    onnx.save(proto, tmp_path / "model.onnx")
    np.savez(tmp_path / "inputs.npz", **feeds)
    done = subprocess.run(
        [program, "run", tmp_path / "model.onnx", "-i", tmp_path / "inputs.npz"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    said = " ".join(done.stderr.split())
    assert wrong.message in said
    assert f"{wrong.node} (node 'node')" in said


if HAS_PLUGINS:

    @pytest.fixture(scope="module")
    def answers() -> dict[str, dict]:
        asked = [wrong for wrong in WRONG if "tensorrt" not in wrong.not_in]
        cases = [{"model": proto_of(wrong, static=True)[0].SerializeToString()} for wrong in asked]
        return {wrong.what: answer for wrong, answer in zip(asked, build_all(cases), strict=True)}

    @pytest.mark.parametrize("wrong", WRONG, ids=IDS)
    def test_tensorrt(wrong: Wrong, answers: dict[str, dict], not_run: Callable[[str], None]) -> None:
        if cannot_ask(wrong, "tensorrt", not_run):
            return
        answer = answers[wrong.what]
        assert "error" in answer
        assert wrong.message in answer["said"]
