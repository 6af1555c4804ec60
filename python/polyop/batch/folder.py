"""The folder of results, and the record of the job that it belongs to."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from polyop._onnx.atomic_file import write_atomically
from polyop._onnx.files import update_hash
from polyop.batch.errors import BatchError, OutputError
from polyop.batch.job import Job
from polyop.batch.report import Report
from polyop.batch.sources import RECORD
from polyop.errors import FileError


def claim(folder: Path, job: Job) -> str:
    """Creates the folder, or reuses one of the same model and options. Returns the job's digest, for `note`.

    Raises BatchError if the folder belongs to another job: results of two models would be indistinguishable. Raises
    OutputError if the folder cannot be written.
    """
    own = _digest(job)
    try:
        return _claim(folder, own)
    except OSError as error:
        raise OutputError(folder, error) from error


def _claim(folder: Path, own: str) -> str:
    try:
        existing = json.loads((folder / RECORD).read_bytes()).get("job")
    except FileNotFoundError:
        existing = own
    except (ValueError, AttributeError):
        existing = None
    if existing != own:
        raise BatchError(
            f"'{folder}' has results of another model or of other options", "choose another folder, or remove it"
        )
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / RECORD).exists():
        write_atomically(folder / RECORD, json.dumps({"job": own}).encode())
    return own


def note(folder: Path, owner: str, report: Report) -> None:
    """Writes the last run's report next to the results. Raises OutputError."""
    text = json.dumps({"job": owner, "report": report.as_json()}, indent=1)
    try:
        write_atomically(folder / RECORD, text.encode())
    except OSError as error:
        raise OutputError(folder, error) from error


def _digest(job: Job) -> str:
    """Returns a digest of everything that results depend on: the model, its external tensors, and the options."""
    digest = hashlib.blake2b(digest_size=16)
    try:
        update_hash(digest, Path(job.model))
    except FileError as error:
        raise BatchError(str(error), error.hint) from error
    for name, array in sorted(job.constants.items()):
        digest.update(f"{name} {array.dtype} {array.shape}".encode() + array.tobytes())
    options = (job.stream, job.outputs, job.format, job.images, job.session.libraries, job.session.accelerate)
    digest.update(repr(options).encode())
    return digest.hexdigest()
