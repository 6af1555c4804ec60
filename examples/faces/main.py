# SPDX-License-Identifier: Apache-2.0
"""Writes facenet-pytorch's MTCNN as one ONNX file: from a photo's pixels to faces, with the pyramid, the crops and the
three kinds of suppression inside. Compares it with the package in ONNX Runtime, with and without polyop, and draws the
faces.

python examples/faces/main.py FOLDER [PHOTO]     the default photo is scikit-image's astronaut
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import torch

import polyop
import polyop.portable
from cascade import Cascade
from facenet import detect, load
from polyop.attaching.drawing import detections, draw
from polyop.batch.images import encode, read

OUTPUTS = ("image_indices", "detection_boxes", "detection_scores", "detection_classes", "detection_points")


def export(cascade: Cascade, photo: np.ndarray, file: Path) -> None:
    """Writes a portable file for photos of this size."""
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            cascade, (torch.from_numpy(photo)[None],), file, dynamo=False, opset_version=17, input_names=["photo"],
            output_names=list(OUTPUTS), dynamic_axes={name: {0: "faces"} for name in OUTPUTS},
        )  # fmt: skip
    model = onnx.load(file)
    records = polyop.portable.add_functions(model)
    assert all(record.given for record in records), records
    onnx.save(model, file)


def main(folder: Path, photo: np.ndarray) -> None:
    networks = load().MTCNN(keep_all=True)
    begin = time.perf_counter()
    boxes, points = detect(networks, photo)
    print(f"facenet-pytorch: {len(boxes)} faces, {(time.perf_counter() - begin) * 1e3:.0f} ms")
    file = folder / "mtcnn.onnx"
    export(Cascade(networks.pnet, networks.rnet, networks.onet).eval(), photo, file)
    sessions = {"with polyop": polyop.session(file), "without polyop": ort.InferenceSession(file)}
    for name, session in sessions.items():
        session.run(None, {"photo": photo[None]})
        begin = time.perf_counter()
        found = dict(zip(OUTPUTS, session.run(None, {"photo": photo[None]}), strict=True))
        milliseconds = (time.perf_counter() - begin) * 1e3
        np.testing.assert_allclose(found["detection_boxes"], boxes[:, :4], atol=1e-2)
        np.testing.assert_allclose(found["detection_points"], points, atol=1e-2)
        print(f"{file.name} {name}: equals facenet-pytorch, {milliseconds:.0f} ms")
    drawing = draw(photo, detections(found, ("face",)))
    (folder / "faces.png").write_bytes(encode(drawing, "png"))
    print(f"wrote {file} ({file.stat().st_size / 1e6:.1f} MB) and {folder / 'faces.png'}")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    if len(sys.argv) == 3:
        pixels = read(Path(sys.argv[2]).read_bytes(), sys.argv[2])
    else:
        from skimage import data

        pixels = data.astronaut()
    main(target, np.ascontiguousarray(pixels))
