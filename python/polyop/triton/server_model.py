"""A model with polyop's operators in Triton's Python backend: the server runs this file as the model's model.py.

It needs numpy, onnxruntime and polyop[batch] in the Python that the backend has.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils

from polyop.batch.interface import SessionOptions, open_model
from polyop.batch.runner import Runner


class TritonPythonModel:
    def initialize(self, args: dict[str, str]) -> None:
        config = json.loads(args["model_config"])
        said = {key: value["string_value"] for key, value in config.get("parameters", {}).items()}
        libraries = tuple(filter(None, said.get("op_libraries", "").split(":")))
        gpu = args["model_instance_kind"] == "GPU"
        folder = Path(args["model_repository"], args["model_version"])
        self._model = open_model(folder / "model.onnx", SessionOptions(int(said.get("threads", 0)), libraries, gpu=gpu))
        self._runner = Runner(self._model, {}, tuple(self._model.outputs), max(1, config["max_batch_size"]))

    def execute(self, requests: list[Any]) -> list[Any]:
        """An answer for each request; one that the model does not take gets an error, and the others their results."""
        answers = self._runner.run([self._sample(request) for request in requests])
        return [self._response(answer) for answer in answers]

    def _sample(self, request: Any) -> Any:
        try:
            return {
                name: tensor.take(np.from_dlpack(pb_utils.get_input_tensor_by_name(request, name)), "the request")
                for name, tensor in self._model.inputs.items()
            }
        except Exception as error:
            return error

    def _response(self, answer: Any) -> Any:
        if isinstance(answer, Exception):
            return pb_utils.InferenceResponse(error=pb_utils.TritonError(str(answer)))
        return pb_utils.InferenceResponse([_tensor(name, array) for name, array in answer.items()])


def _tensor(name: str, array: np.ndarray) -> Any:
    """By DLPack, as inputs are read: servers of 2024 misread NumPy 2's arrays, whose results have no data then. It has no bool
    there."""
    if array.size == 0 or array.dtype == bool:
        return pb_utils.Tensor(name, array)
    return pb_utils.Tensor.from_dlpack(name, np.ascontiguousarray(array))
