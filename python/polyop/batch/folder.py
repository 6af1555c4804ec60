# SPDX-License-Identifier: Apache-2.0
"""The folder of results, and the record of the job that it belongs to."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from polyop._base.system import try_lock
from polyop._onnx.atomic_file import write_atomically
from polyop._onnx.files import update_hash
from polyop.batch.errors import BatchError, OutputError
from polyop.batch.job import Job
from polyop.batch.report import Report
from polyop.batch.sources import RECORD
from polyop.errors import FileError

_LOCK = ".polyop-batch.lock"


@contextmanager
def claimed(folder: Path, job: Job) -> Iterator[str]:
    """Creates the folder, or reuses one of the same model and options, and keeps other batches out of it while the
    block runs. Yields the job's digest, for `note`.

    Raises BatchError if the folder belongs to another job, since results of two models would be indistinguishable, or
    to a batch that still runs. Raises OutputError if the folder cannot be written.
    """
    own = _digest(job)
    with ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(_locked(folder))
            _claim(folder, own)
        except OSError as error:
            raise OutputError(folder, error) from error
        yield own


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Holds the folder's lock, which ends with the process. Raises BatchError if another batch holds it."""
    path = folder / _LOCK
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        if not try_lock(file):
            os.close(file)
            raise BatchError(f"'{folder}': another batch is running into it", "wait for it, or choose another folder")
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file), os.stat(path)):
                break
        os.close(file)  # the batch before has removed it
    try:
        yield
    finally:
        with suppress(OSError):  # Windows keeps a file that is open
            path.unlink()
        os.close(file)


def _claim(folder: Path, own: str) -> None:
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
    if not (folder / RECORD).exists():
        write_atomically(folder / RECORD, json.dumps({"job": own}).encode())


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
