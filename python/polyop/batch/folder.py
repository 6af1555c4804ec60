"""The folder of results: whose they are, and what of them is there."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from polyop._whole_files import write_whole
from polyop.batch.errors import BatchError
from polyop.batch.report import Report
from polyop.batch.worker import Job

NAME = "polyop-batch.json"
_BLOCK = 1 << 22


def claim(folder: Path, job: Job) -> str:
    """Makes the folder, or takes one of the same model and options; returns whose it is, for `note`. Raises BatchError for
    another's: results of two models in one folder would look like those of one."""
    mine = _digest(job)
    try:
        theirs = json.loads((folder / NAME).read_bytes()).get("job")
    except FileNotFoundError:
        theirs = mine
    except (ValueError, AttributeError):
        theirs = None
    if theirs != mine:
        raise BatchError(
            f"'{folder}' has results of another model or of other options", "choose another folder, or remove it"
        )
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / NAME).exists():
        write_whole(folder / NAME, json.dumps({"job": mine}).encode())
    return mine


def note(folder: Path, owner: str, report: Report) -> None:
    """Keeps the last run's report beside the results."""
    write_whole(folder / NAME, json.dumps({"job": owner, "report": report.as_json()}, indent=1).encode())


def _digest(job: Job) -> str:
    """Of all that decides results: the model's bytes, with tensors that lie outside, and the options."""
    from polyop.optimizing.files import locations

    digest = hashlib.blake2b(digest_size=16)
    path = Path(job.model)
    for part in (path, *(path.parent / location for location in locations(path))):
        with part.open("rb") as stream:
            while block := stream.read(_BLOCK):
                digest.update(block)
    for name, array in sorted(job.constants.items()):
        digest.update(f"{name} {array.dtype} {array.shape}".encode() + array.tobytes())
    options = (job.stream, job.outputs, job.format, job.pictures, job.session.libraries, job.session.accelerate)
    digest.update(repr(options).encode())
    return digest.hexdigest()
