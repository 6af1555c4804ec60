"""Runs a batch, for `polyop batch`.

python -m polyop.batch REQUEST.json REPORT.json

The request says what `polyop.batch.run` takes; the report is that of `Report.as_json` with its lines for people, or the
error. Progress goes to stderr.
"""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from polyop.batch import BatchError, Cluster, run
from polyop.progress import bars


def answer(request: dict[str, Any]) -> dict[str, Any]:
    cluster = request.pop("cluster")
    with ExitStack() as stack:
        progress = {"progress": step} if (step := bars(stack)) else {}
        report = run(**request, cluster=Cluster(**cluster) if cluster else None, **progress)
    return {**report.as_json(), "lines": report.lines()}


def main(request_path: str, report_path: str) -> None:
    request = json.loads(Path(request_path).read_text())
    try:
        report = answer(request)
    except BatchError as error:
        report = {"error": str(error), "hint": error.hint}
    Path(report_path).write_text(json.dumps(report))


if __name__ == "__main__":
    main(*sys.argv[1:])
