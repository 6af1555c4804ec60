# SPDX-License-Identifier: Apache-2.0
"""Builds engines in TensorRT-RTX for test_tensorrt.py, in a process with the library paths that the runtime needs.

Reads pickled cases from a file and writes a pickled answer for each. Each case runs in a process that is forked after
the imports, because TensorRT may abort on invalid input.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import tempfile
import traceback

import onnx

from polyop import tensorrt as polyop_tensorrt


def build(case: dict) -> dict:
    model = onnx.load_from_string(case.pop("model"))
    engine = polyop_tensorrt.onnx2trt(model, case.pop("shapes", None), **case)
    return {"size": len(engine.data), "layers": engine.layers, "runtime": engine.runtime, "shapes": engine.shapes}


def answer(case: dict) -> dict:
    """Returns the result of a case. "said" is its stderr, to which plugins write their errors."""
    reader, writer = os.pipe()
    said = tempfile.TemporaryFile()  # noqa: SIM115 (closed below)
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.dup2(said.fileno(), 2)
        try:
            result = build(case)
        except (polyop_tensorrt.EngineError, polyop_tensorrt.ModelError) as error:
            result = {"error": f"{type(error).__name__}: {error}"}
        except Exception:
            result = {"error": traceback.format_exc()}
        with os.fdopen(writer, "wb") as pipe:
            pickle.dump(result, pipe)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        data = pipe.read()
    _, status = os.waitpid(child, 0)
    with said:
        said.seek(0)
        text = said.read().decode(errors="replace")
    if os.WIFSIGNALED(status):
        return {"error": f"the process died of {signal.Signals(os.WTERMSIG(status)).name}", "said": text}
    return {**pickle.loads(data), "said": text}


if __name__ == "__main__":
    cases_path, answers_path = sys.argv[1:]
    assert polyop_tensorrt.is_tensorrt_plugin_loaded(), "TensorRT-RTX did not take polyop's plugin library"
    with open(cases_path, "rb") as file:
        cases = pickle.load(file)
    with open(answers_path, "wb") as file:
        pickle.dump([answer(case) for case in cases], file)
