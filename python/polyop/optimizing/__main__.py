"""Optimises a model, for `polyop optimize`.

python -m polyop.optimizing REQUEST.json REPORT.json

The request says what `polyop.optimize` takes; the report is that of `Report.as_json`, or the error. Progress goes to stderr.
"""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from polyop.optimizing import FileError, OptimizeError, optimize
from polyop.progress import bars


def run(request: dict[str, Any]) -> dict[str, Any]:
    saved, model, output = request.pop("inputs"), request.pop("model"), request.pop("output")
    with ExitStack() as stack:
        progress = {"progress": step} if (step := bars(stack)) else {}
        report = optimize(model, output, inputs=dict(np.load(saved)) if saved else {}, **request, **progress)
    return report.as_json()


def main(request_path: str, report_path: str) -> None:
    request = json.loads(Path(request_path).read_text())
    try:
        report = run(request)
    except OptimizeError as error:
        report = {"error": str(error), "hint": error.hint, "of_file": isinstance(error, FileError)}
    Path(report_path).write_text(json.dumps(report, default=str))


if __name__ == "__main__":
    main(*sys.argv[1:])
