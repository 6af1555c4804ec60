"""polyop's models in Ray Data.

import ray
from polyop.ray import Predictor

photos = ray.data.read_images("photos", mode="RGB")
large = photos.map_batches(Predictor, fn_constructor_args=("srcnn.onnx",), concurrency=4, num_cpus=1, batch_size=16)
large.write_parquet("large")

It needs Ray: pip install 'polyop[ray]'. `polyop batch --ray` runs files without a program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from polyop.batch.errors import BatchError, SampleError, said
from polyop.batch.interface import SessionOptions, Tensor, open_model
from polyop.batch.pictures import PictureOptions
from polyop.batch.reading import Reader
from polyop.batch.runner import Runner

__all__ = ["Predictor", "connection", "granted"]


class Predictor:
    """For `Dataset.map_batches`: an actor that makes a session once, with polyop's operators, as many threads as Ray granted it CPUs,
    and on the GPU if it granted one.

    A column of an input's name is that input; where there is one input and no such column, the one called "image" or "bytes" is.
    Rows are samples: pixels [H, W, 3] of uint8 or a picture's bytes become what the model takes, as `polyop run` does it;
    arrays may lack the leading extents of 1. Rows of the same shapes run together. Each output becomes a column, without the extent
    that counts samples; the other columns stay.
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
        """columns: inputs' names by columns' names, where they are not the same.
        constants: inputs that are the same for all rows.
        errors: "raise" ends the whole at a row that the model cannot take; "column" adds a column "error" and leaves
            the row's outputs None.
        The rest is as in `polyop.batch.run`. Raises BatchError."""
        if errors not in ("raise", "column"):
            raise BatchError(f"errors='{errors}' is neither 'raise' nor 'column'")
        processors, gpu = granted()
        self._model = open_model(model, SessionOptions(processors, tuple(libraries), accelerate, gpu))
        values = {
            name: self._model.input(name).take(np.asarray(value), "constants")
            for name, value in (constants or {}).items()
        }
        self._columns = {column: self._model.input(name).name for column, name in (columns or {}).items()}
        self._reader = Reader(self._model, "", list(values), PictureOptions(layout, range, color))
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
        made = {column: values for column, values in renamed.items() if column not in taken}
        for name in self._runner.outputs:
            made[name] = self._column(self._model.outputs[name], answers)
        if not self._raises:
            made["error"] = np.array([said(a) if isinstance(a, Exception) else "" for a in answers], object)
        return made

    def _sample(self, batch: Mapping[str, np.ndarray], row: int) -> dict[str, np.ndarray] | Exception:
        try:
            return self._reader.of_row(list(batch), lambda column: batch[column][row], f"row {row}")
        except (SampleError, ValueError) as error:
            return error

    def _column(self, tensor: Tensor, answers: Sequence[Any]) -> np.ndarray:
        arrays = [
            None if isinstance(answer, Exception) else self._row(tensor, answer[tensor.name]) for answer in answers
        ]
        if arrays and all(array is not None and array.shape == arrays[0].shape for array in arrays):
            return np.stack(arrays)
        column = np.empty(len(arrays), object)
        column[:] = arrays
        return column

    def _row(self, tensor: Tensor, array: np.ndarray) -> np.ndarray:
        """Without the extent of samples, if the output has one: 1, or what the first input calls its own."""
        if not tensor.shape or len(array) != 1:
            return array
        first = self._runner.free[0].shape if self._runner.free else ()
        counts_samples = tensor.shape[0] == 1 or (tensor.shape[0] is not None and first[:1] == tensor.shape[:1])
        return array[0] if counts_samples else array


def granted() -> tuple[int, bool]:
    """How many processors Ray granted this actor or task, 1 at least, and whether a GPU."""
    import ray

    resources = ray.get_runtime_context().get_assigned_resources()
    return max(1, int(resources.get("CPU", 0))), bool(resources.get("GPU", 0))


@contextmanager
def connection(address: str = "") -> Iterator[Any]:
    """Ray, connected to the cluster of this address, to one of this machine alone if there is none, or to that which the program
    is connected to already. Raises BatchError."""
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise BatchError(f"running on a cluster needs Ray: {error}", "pip install 'polyop[ray]'") from None
    mine = not ray.is_initialized()
    if mine:
        try:
            own = {} if address else {"include_dashboard": False}
            ray.init(address=address or "local", log_to_driver=False, logging_level="ERROR", **own)
        except Exception as error:  # some of Ray's are no more than that
            raise BatchError(f"there is no Ray cluster at '{address or 'local'}': {said(error)}") from None
    try:
        yield ray
    finally:
        if mine:
            ray.shutdown()
