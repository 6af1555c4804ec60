# SPDX-License-Identifier: Apache-2.0
"""Writes SRCNN as ONNX in three forms; the trained weights are in srcnn.npz.

srcnn.onnx    the scale 3 is fixed
srcnn2.onnx   ONNX Resize, the scales f32[4] are the input `factor`
srcnn3.onnx   Just_A_Scope_Name::DynamicTRTResize, the same input

python models/srcnn/export.py [FOLDER]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import warnings
from pathlib import Path

import onnx
import torch
from model import DynamicResize, FixedScale, OnnxResize, RunTimeScale, load_weights

IMAGE = json.dumps({"layout": "NCHW", "range": [0, 1], "color": "RGB"})
SPATIAL = {2: "height", 3: "width"}
OPSET = 17


def export(module: torch.nn.Module, names: list[str], path: Path, *, custom: bool) -> None:
    """Exports with dynamic batch and extents, and records in the model how images become tensors."""
    arguments = (torch.zeros(1, 3, 8, 10), torch.tensor([1.0, 1.0, 3.0, 3.0]))[: len(names)]
    axes = {"input": {0: "batch", **SPATIAL}, "output": {0: "batch", 2: "out_height", 3: "out_width"}}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the TorchScript exporter announces its deprecation
        raw = str(Path(folder) / "raw.onnx")
        torch.onnx.export(
            module.eval(), arguments, raw, dynamo=False, opset_version=OPSET,
            custom_opsets={"Just_A_Scope_Name": 1} if custom else {},
            input_names=names, output_names=["output"], dynamic_axes=axes,
        )  # fmt: skip
        model = onnx.load(raw)
    onnx.helper.set_model_props(model, {"polyop.image.input": IMAGE, "polyop.image.output": IMAGE})
    onnx.checker.check_model(model)
    onnx.save(model, path)


def export_all(folder: Path) -> list[Path]:
    """Returns the three files, in the order of the module's description."""
    layers = load_weights()
    folder.mkdir(parents=True, exist_ok=True)
    forms = {
        "srcnn": (FixedScale(layers, 3.0), ["input"]),
        "srcnn2": (RunTimeScale(layers, OnnxResize), ["input", "factor"]),
        "srcnn3": (RunTimeScale(layers, DynamicResize), ["input", "factor"]),
    }
    paths = []
    for name, (module, names) in forms.items():
        paths.append(folder / f"{name}.onnx")
        export(module, names, paths[-1], custom=name == "srcnn3")
    return paths


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=Path(__file__).parent, help="where the files go")
    for path in export_all(parser.parse_args().folder):
        print(f"{path}  {path.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
