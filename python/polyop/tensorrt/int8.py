# SPDX-License-Identifier: Apache-2.0
"""Quantizes a model for engines that compute convolutions and matrix products in int8."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import onnx

from polyop.errors import MissingRuntimeError, PolyopError
from polyop.tensorrt.graph import ModelError

_QUANTIZED = ["Conv", "ConvTranspose", "Gemm", "MatMul"]


def to_int8(model: onnx.ModelProto, samples: Iterable[Mapping[str, np.ndarray]]) -> onnx.ModelProto:
    """Returns the model with QuantizeLinear and DequantizeLinear around convolutions and matrix products.

    ONNX Runtime's quantization tool computes the scales from the values that the samples give: symmetric ones, as
    TensorRT requires, of each channel for weights. polyop's nodes run by their functions of standard operators.

    samples: the inputs of runs of the model. Raises ModelError if the model does not run with them.
    """
    try:
        from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    except ImportError as error:
        raise MissingRuntimeError(f"int8 needs ONNX Runtime and its requirements: {error}") from error

    from polyop.portable import add_functions

    class Reader(CalibrationDataReader):
        def __init__(self) -> None:
            self.rest = iter(samples)

        def get_next(self) -> dict[str, np.ndarray] | None:
            sample = next(self.rest, None)
            return None if sample is None else dict(sample)

    runnable = onnx.ModelProto()
    runnable.CopyFrom(model)
    add_functions(runnable)
    with tempfile.TemporaryDirectory(prefix="polyop-") as folder:
        before, after = Path(folder, "model.onnx"), Path(folder, "int8.onnx")
        onnx.save(runnable, before)
        level = logging.root.level
        logging.root.setLevel(logging.ERROR)  # the tool advises to preprocess any model
        try:
            quantize_static(
                before, after, Reader(), quant_format=QuantFormat.QDQ, per_channel=True, activation_type=QuantType.QInt8,
                weight_type=QuantType.QInt8, op_types_to_quantize=_QUANTIZED, extra_options={"ActivationSymmetric": True},
            )  # fmt: skip
        except PolyopError:  # of reading a sample
            raise
        except Exception as error:  # ONNX Runtime's error types are not public
            raise ModelError(f"calibrating for int8 failed: {error}") from error
        finally:
            logging.root.setLevel(level)
        return onnx.load(after)
