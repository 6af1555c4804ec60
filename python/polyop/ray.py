# SPDX-License-Identifier: Apache-2.0
"""polyop's models in Ray Data.

import ray
from polyop.ray import Predictor

photos = ray.data.read_images("photos", mode="RGB")
large = photos.map_batches(Predictor, fn_constructor_args=("srcnn.onnx",), concurrency=4, num_cpus=1, batch_size=16)
large.write_parquet("large")

Requires Ray: pip install 'polyop[ray]'. `polyop batch --ray` runs files without a program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from polyop.batch.cluster import connection, granted
from polyop.batch.errors import BatchError, SampleError, describe_error
from polyop.batch.images import ImageOptions
from polyop.batch.interface import SessionOptions, Tensor, open_model
from polyop.batch.reading import Reader
from polyop.batch.runner import Runner

__all__ = ["Predictor", "connection", "granted"]


class Predictor:
    """An actor for `Dataset.map_batches`. Creates one session with polyop's operators, with as many threads as Ray
    assigned CPUs, and on the GPU if Ray assigned one.

    A column with an input's name is that input. If there is one input and no such column, the column "image" or "bytes"
    is the input. Rows are samples: pixels [H, W, 3] of uint8 or an image's bytes are converted as `polyop run` does;
    arrays may lack leading dimensions of 1. Rows of the same shapes run in a batch. Each output becomes a column,
    without the batch dimension; other columns are kept.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        columns: Mapping[str, str] | None = None,
        constants: Mapping[str, Any] | None = None,
        outputs: Sequence[str] = (),
        batch: int = 0,
        errors: str = "raise",
        layout: str | None = None,
        range: tuple[float, float] | None = None,
        color: str | None = None,
        libraries: Sequence[str] = (),
        accelerate: bool = False,
    ) -> None:
        """Opens the model. Raises BatchError.

        Args:
            model: an ONNX file.
            columns: inputs' names by columns' names, where they differ.
            constants: inputs with the same value for all rows.
            errors: "raise" raises an exception for a row that fails; "column" adds a column "error" and sets the row's
                outputs to None.
            outputs, batch, layout, range, color, libraries, accelerate: as in `polyop.batch.run`.
        """
        if errors not in ("raise", "column"):
            raise BatchError(f"errors: expected 'raise' or 'column', got '{errors}'")
        processors, gpu = granted()
        self._model = open_model(model, SessionOptions(processors, tuple(libraries), accelerate, gpu))
        values = {
            name: self._model.input(name).take(np.asarray(value), "constants")
            for name, value in (constants or {}).items()
        }
        self._columns = {column: self._model.input(name).name for column, name in (columns or {}).items()}
        self._reader = Reader(self._model, "", list(values), ImageOptions(layout, range, color))
        self._runner = Runner(self._model, values, self._model.chosen(outputs), batch)
        self._raises = errors == "raise"

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        renamed = {self._columns.get(column, column): values for column, values in batch.items()}
        rows = range(len(next(iter(renamed.values()), ())))
        answers = self._runner.run([self._sample(renamed, row) for row in rows])
        failed = next((answer for answer in answers if isinstance(answer, Exception)), None)
        if failed is not None and self._raises:
            raise failed
        taken = self._reader.taken(list(renamed))
        result = {column: values for column, values in renamed.items() if column not in taken}
        for name in self._runner.outputs:
            result[name] = self._column(self._model.outputs[name], answers)
        if not self._raises:
            result["error"] = np.array([describe_error(a) if isinstance(a, Exception) else "" for a in answers], object)
        return result

    def _sample(self, batch: Mapping[str, np.ndarray], row: int) -> dict[str, np.ndarray] | Exception:
        try:
            return self._reader.of_row(list(batch), lambda column: batch[column][row], f"row {row}")
        except (SampleError, ValueError) as error:
            return error

    def _column(self, tensor: Tensor, answers: Sequence[Any]) -> np.ndarray:
        arrays = [
            None if isinstance(answer, Exception) else self._row(tensor, answer[tensor.name]) for answer in answers
        ]
        valid = [array for array in arrays if array is not None]
        if arrays and len(valid) == len(arrays) and len({array.shape for array in valid}) == 1:
            return np.stack(valid)
        column = np.empty(len(arrays), object)
        column[:] = arrays
        return column

    def _row(self, tensor: Tensor, array: np.ndarray) -> np.ndarray:
        """Removes the batch dimension if the output has one: 1, or the symbol of the first input's."""
        if not tensor.shape or len(array) != 1:
            return array
        first = self._runner.free[0].shape if self._runner.free else ()
        counts_samples = tensor.shape[0] == 1 or (tensor.shape[0] is not None and first[:1] == tensor.shape[:1])
        return array[0] if counts_samples else array
