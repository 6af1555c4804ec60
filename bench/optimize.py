# SPDX-License-Identifier: Apache-2.0
"""Runs `polyop optimize` on third-party models at their usual size: what it finds, and interleaved times.

python bench/optimize.py [--only NAME] [--threads 2] [--seconds 10] [--keep FOLDER] [--out TABLE.md]

The first run writes fourteen models, which takes most of the time; with --keep, later runs reuse the files.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime as ort
from harness import machine

import polyop
from polyop.optimizing import Report, optimize
from polyop.optimizing.running import time_interleaved

BENCH = Path(__file__).resolve().parent
# Each model runs in its own process, so that transformers does not find torchvision's Python part.
PROGRAMS = {
    "transformers_models.py": [
        "Deformable DETR", "Mask2Former", "OneFormer", "Grounding DINO", "RT-DETR", "RT-DETRv2", "D-FINE", "DEIMv2",
        "SegFormer", "Swin",
    ],
    "torchvision_models.py": ["Faster R-CNN", "Mask R-CNN"],
    "deformed_models.py": ["BiRefNet's decoder", "BasicVSR++'s alignment"],
}  # fmt: skip


@dataclass
class Row:
    name: str
    before: Path
    after: Path
    report: Report
    seconds: tuple[float, float] = (0, 0)

    def text(self) -> str:
        found = ", ".join(f"{n} {what}" for what, n in sorted(self.report.replaced.items()))
        differences = [self.report.differences.get(f"{way} polyop", 0.0) for way in ("with", "without")]
        before, after = self.seconds
        cells = [self.name, found or "nothing", *(f"{difference:.1e}" for difference in differences)]
        return " | ".join([*cells, f"{before * 1e3:.0f}", f"{after * 1e3:.0f}", f"{before / after:.2f}x"])


def export(name: str, folder: Path) -> Path:
    path = folder / f"{name.lower().replace(' ', '_')}.onnx"
    if not path.exists():
        program = next(program for program, names in PROGRAMS.items() if name in names)
        subprocess.run([sys.executable, str(BENCH / program), name, str(path), "--full"], check=True)
    return path


def options_of(threads: int) -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    return options


def session(path: Path, threads: int) -> ort.InferenceSession:
    return polyop.session(path, options=options_of(threads))


def feeds_of(session: ort.InferenceSession) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    kinds = {"tensor(float)": lambda s: rng.random(s, np.float32), "tensor(int64)": lambda s: np.ones(s, np.int64)}
    return {i.name: kinds[i.type](i.shape) for i in session.get_inputs()}


def path_of_optimized(before: Path) -> Path:
    return before.with_name(f"{before.stem}_fast.onnx")


def optimized(name: str, before: Path, threads: int) -> Row:
    after = path_of_optimized(before)
    report = optimize(before, after, threads=threads)
    print(report, flush=True)
    return Row(name, before, after, report)


def measure(row: Row, threads: int, seconds: float) -> None:
    sessions = [session(path, threads) for path in (row.before, row.after)]
    times = time_interleaved(sessions, feeds_of(sessions[0]), seconds)
    row.seconds = (times[0], times[1])


def table(rows: list[Row], threads: int) -> str:
    about = ", ".join(f"{key} {value}" for key, value in machine().items())
    head = f"model | replaced | largest difference | without polyop | before, ms ({threads} threads) | after, ms | gain"
    lines = [head, " | ".join("---" for _ in head.split("|")), *(row.text() for row in rows)]
    return f"Medians; the two files are interleaved. {about}.\n\n" + "".join(f"| {line} |\n" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", help="a model's name")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=10, help="minimum time for which each file runs")
    parser.add_argument("--keep", type=Path, help="a folder in which the files are kept for later runs")
    parser.add_argument("--out", type=Path, help="a file to which the table is also written")
    options = parser.parse_args()
    names = [name for names in PROGRAMS.values() for name in names if not options.only or name in options.only]
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        rows = [optimized(name, export(name, folder), options.threads) for name in names]
        # All models are exported before the first one is measured, because the machine must be idle during
        # measurements.
        print(f"Measuring {len(rows)} models", flush=True)
        for measured, row in enumerate(rows, 1):
            measure(row, options.threads, options.seconds)
            print(row.text(), flush=True)
            if options.out:  # rewritten after each model: later ones may take long, or fail
                text = table(rows[:measured], options.threads)
                options.out.write_text(f"# `polyop optimize` on whole models\n\n{text}")
    print(table(rows, options.threads))


if __name__ == "__main__":
    main()
