# SPDX-License-Identifier: Apache-2.0
"""A model with polyop's operators in Triton's Python backend: the server runs this file as the model's model.py.

Requires numpy, onnxruntime and polyop[batch] in the backend's Python.
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
        parameters = {key: value["string_value"] for key, value in config.get("parameters", {}).items()}
        libraries = tuple(filter(None, parameters.get("op_libraries", "").split(":")))
        gpu = args["model_instance_kind"] == "GPU"
        folder = Path(args["model_repository"], args["model_version"])
        self._model = open_model(
            folder / "model.onnx", SessionOptions(int(parameters.get("threads", 0)), libraries, gpu=gpu)
        )
        self._runner = Runner(self._model, {}, tuple(self._model.outputs), max(1, config["max_batch_size"]))

    def execute(self, requests: list[Any]) -> list[Any]:
        """Returns a response per request: the results, or an error if the model rejects this request."""
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
    """Converts by DLPack: servers of 2024 misread arrays of NumPy 2. DLPack has no bool there."""
    if array.size == 0 or array.dtype == bool:
        return pb_utils.Tensor(name, array)
    return pb_utils.Tensor.from_dlpack(name, np.ascontiguousarray(array))
