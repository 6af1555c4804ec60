# SPDX-License-Identifier: Apache-2.0
"""A YOLO of Ultralytics with random weights and its suppression, as ONNX file. Needs the package ultralytics, which no
other benchmark needs: `pip install ultralytics` in a separate environment, and run this program there.

python bench/ultralytics_models.py "YOLO with NMS" FILE [--full]
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from pathlib import Path

MODELS = {"YOLO with NMS": "yolo11n.yaml"}


def export(name: str, path: Path, full: bool = False) -> None:
    os.environ["YOLO_AUTOINSTALL"] = "false"
    import torch
    from torchvision_models import torchvision

    torchvision()  # whose operators ultralytics imports
    from ultralytics import YOLO

    torch.manual_seed(0)
    path = path.absolute()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        size = 640 if full else 160
        model = YOLO(MODELS[name])
        # A random detector's scores are all low: suppression then has as many boxes as a trained one's.
        written = model.export(format="onnx", nms=True, imgsz=size, conf=0.001, simplify=False, opset=18, device="cpu")
        shutil.move(written, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=MODELS)
    parser.add_argument("path", type=Path)
    parser.add_argument("--full", action="store_true", help="the usual size")
    options = parser.parse_args()
    export(options.name, options.path, options.full)


if __name__ == "__main__":
    main()
