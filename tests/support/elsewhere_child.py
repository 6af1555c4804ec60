# SPDX-License-Identifier: Apache-2.0
"""Runs the models of elsewhere.py in a Python that has only ONNX Runtime and NumPy.

Arguments: polyop's library and a folder. Runs each NAME.onnx with the inputs NAME.npz and writes NAME.results.npz, or
the text of an error to NAME.error.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnxruntime as ort

library, folder = sys.argv[1:]
for model in sorted(Path(folder).glob("*.onnx")):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 2
    options.register_custom_ops_library(library)
    try:
        session = ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        results = session.run(None, dict(np.load(model.with_suffix(".npz"))))
        np.savez(model.with_suffix(".results.npz"), *results)
    except Exception as error:
        model.with_suffix(".error").write_text(str(error))
