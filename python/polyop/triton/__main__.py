"""Writes a model repository, for `polyop triton`.

python -m polyop.triton REQUEST.json REPORT.json

The request says what `write_repository` takes; the report is what it wrote, or the error.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from polyop.batch.errors import BatchError
from polyop.triton import write_repository


def main(request_path: str, report_path: str) -> None:
    try:
        report = asdict(write_repository(**json.loads(Path(request_path).read_text())))
    except BatchError as error:
        report = {"error": str(error), "hint": error.hint}
    Path(report_path).write_text(json.dumps(report))


if __name__ == "__main__":
    main(*sys.argv[1:])
