"""Whole models side by side: ONNX Runtime and OpenVINO as they are, and both with polyop; and what takes the time that is left.

python bench/whole_models.py [--only NAME] [--threads 1,2] [--seconds 5] [--keep FOLDER] [--out bench/results]

Writes models.md, models.json and models.png. Three of bench/optimize.py's detectors, of which polyop finds most, are
exported and optimised first, which takes longer than all else; with --keep the next run finds the files.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import numpy as np
import onnx
import onnxruntime as ort
import optimize
from chart import draw_models
from harness import Run, machine, model_in_openvino

import polyop
from models import PAIRS, Pair
from polyop import portable
from polyop.openvino import core
from polyop.optimizing.running import time_runs_in_turns

ROOT = Path(__file__).resolve().parent.parent
Feeds = Mapping[str, np.ndarray]
WITH, WITHOUT = ("ONNX Runtime + polyop", "OpenVINO + polyop"), ("ONNX Runtime", "OpenVINO")
STANDARD_DOMAINS = ("", "ai.onnx", "com.microsoft")
MOST_LEFT = 3  # kinds of nodes that are named
# What OpenVINO's long errors come down to.
REASON = re.compile(r"No conversion rule found for operations: [\w.-]+(?:, [\w.-]+)*")
FEWEST_TURNS, PROFILED_CALLS = 3, 3


@dataclass
class Model:
    """A file with polyop's nodes, one without them where there is one, and inputs of both."""

    name: str
    ours: Path
    theirs: Path | None
    feeds: Feeds


@dataclass
class Row:
    name: str
    threads: int
    milliseconds: dict[str, float] = field(default_factory=dict)  # medians
    missing: dict[str, str] = field(default_factory=dict)  # why an engine does not run it
    # Of the time of nodes in ONNX Runtime + polyop, by their kind.
    shares: dict[str, float] = field(default_factory=dict)

    @property
    def gain(self) -> float | None:
        """How many times as long the best without polyop takes as the best with it."""
        without, with_it = (
            min((self.milliseconds[e] for e in engines if e in self.milliseconds), default=None)
            for engines in (WITHOUT, WITH)
        )
        return without / with_it if without and with_it else None

    @property
    def left(self) -> str:
        most = sorted(((share, kind) for kind, share in self.shares.items() if kind != "polyop"), reverse=True)
        return ", ".join(f"{kind} {share:.0%}" for share, kind in most[:MOST_LEFT] if share >= 0.01)


# ---- models ------------------------------------------------------------------------------------------------


def of_pair(pair: Pair, folder: Path, threads: int) -> Model:
    *protos, feeds = pair.make()
    paths = [folder / f"{pair.make.__name__}_{kind}.onnx" for kind in ("ours", "theirs")]
    for path, proto in zip(paths, protos, strict=True):
        onnx.save(proto, path)
    return Model(pair.title, *paths, feeds)


def of_lidar(name: str, folder: Path, threads: int) -> Model:
    """Standard operators cannot say its voxels, boxes and suppression. The sweep is made."""
    path = folder / f"{name.lower()}.onnx"
    if not path.exists():
        subprocess.run([sys.executable, str(ROOT / "models" / "lidar" / "write.py"), str(folder)], check=True)
    sys.path.insert(0, str(ROOT / "models" / "scenes"))
    import scenes

    return Model(f"{name}, a made sweep", path, None, {"points": scenes.street().points})


def of_others(name: str, folder: Path, threads: int) -> Model | None:
    """As it was exported, and as `polyop optimize` leaves it; None where that is the same."""
    before = optimize.export(name, folder)
    after = optimize.place_of_optimized(before)
    if not after.exists():
        optimize.optimized(name, before, threads)
    if after.read_bytes() == before.read_bytes():
        return None
    return Model(name, after, before, optimize.feeds_of(optimize.session(before, threads)))


MAKERS: dict[str, Callable[[Path, int], Model | None]] = {
    **{pair.title: partial(of_pair, pair) for pair in PAIRS},
    **{name: partial(of_lidar, name) for name in ("PointPillars", "SECOND")},
    **{name: partial(of_others, name) for name in ("Deformable DETR", "RT-DETR", "Mask2Former")},
}


# ---- measuring ---------------------------------------------------------------------------------------------


def in_onnxruntime(path: Path, feeds: Feeds, threads: int, with_polyop: bool) -> Run:
    if with_polyop:
        session = optimize.session(path, threads)
    else:
        session = ort.InferenceSession(path, optimize.options_of(threads), providers=["CPUExecutionProvider"])
    return lambda: session.run(None, dict(feeds))


def measured(model: Model, threads: int, seconds: float) -> Row:
    row = Row(model.name, threads)
    makers: dict[str, Callable[[], Run]] = {}
    if model.theirs is not None:
        makers[WITHOUT[0]] = lambda: in_onnxruntime(model.theirs, model.feeds, threads, False)
        makers[WITHOUT[1]] = lambda: model_in_openvino(model.theirs, model.feeds, threads)
    makers[WITH[0]] = lambda: in_onnxruntime(model.ours, model.feeds, threads, True)
    makers[WITH[1]] = lambda: model_in_openvino(model.ours, model.feeds, threads, core())
    runs = {}
    for engine, make in makers.items():
        try:
            run = make()
            run()
            runs[engine] = run
        except Exception as error:  # engines' own types
            said = " ".join(str(error).split())
            row.missing[engine] = found[0] if (found := REASON.search(said)) else said[:200]
    taken = time_runs_in_turns([*runs.values()], seconds, FEWEST_TURNS)
    row.milliseconds = {engine: 1e3 * median for engine, median in zip(runs, taken, strict=True)}
    row.shares = shares(model, threads)
    return row


def shares(model: Model, threads: int) -> dict[str, float]:
    """By kinds of nodes: polyop's all together, others by their operator."""
    ours = {node.op_type for node in portable.nodes_of(onnx.load(model.ours)) if node.domain not in STANDARD_DOMAINS}
    with tempfile.TemporaryDirectory() as folder:
        options = optimize.options_of(threads)
        options.enable_profiling, options.profile_file_prefix = True, f"{folder}/profile"
        session = polyop.session(model.ours, options=options)
        for _ in range(PROFILED_CALLS):
            session.run(None, dict(model.feeds))
        events = json.loads(Path(session.end_profiling()).read_text())
    taken: Counter[str] = Counter()
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
            kind = event["args"]["op_name"]
            taken["polyop" if kind in ours else kind] += event["dur"]
    return {kind: time / taken.total() for kind, time in taken.items()}


# ---- reports -----------------------------------------------------------------------------------------------

HEADER = ["model", "threads", *(f"{engine}, ms" for pair in zip(WITHOUT, WITH, strict=True) for engine in pair),
          "gain", "polyop's nodes", "what takes the rest"]  # fmt: skip
LEGEND = (
    "Medians in turns. Gain: the best engine without polyop beside the best with it. Shares are of the time of all nodes in "
    "ONNX Runtime with polyop, by its profiler. Weights are random. PointPillars and SECOND have nodes that standard operators "
    "cannot say."
)


def cells(row: Row) -> list[str]:
    times = [row.milliseconds.get(engine) for pair in zip(WITHOUT, WITH, strict=True) for engine in pair]
    return [
        row.name,
        str(row.threads),
        *("-" if time is None else f"{time:.3g}" if time < 1000 else f"{time:,.0f}" for time in times),
        "-" if row.gain is None else f"{row.gain:.2f}x",
        f"{row.shares.get('polyop', 0):.0%}",
        row.left,
    ]


def markdown(rows: list[Row], about: Mapping[str, object]) -> str:
    lines = ["# Whole models", "", ", ".join(f"{k} {v}" for k, v in about.items()) + ".", "", LEGEND, ""]
    lines += ["| " + " | ".join(HEADER) + " |", "|" + " --- |" * len(HEADER)]
    lines += ["| " + " | ".join(cells(row)) + " |" for row in rows]
    missing = dict.fromkeys(f"- {row.name}, {e}: {why}" for row in rows for e, why in row.missing.items())
    return "\n".join([*lines, "", *(["What an engine does not run:", "", *missing, ""] if missing else [])])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", help="a part of a model's name")
    parser.add_argument("--threads", default="1,2", help="numbers, separated by commas")
    parser.add_argument("--seconds", type=float, default=5, help="how long each engine runs at least")
    parser.add_argument("--keep", type=Path, help="where the files stay, to be used again")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results")
    options = parser.parse_args()
    threads = [int(number) for number in options.threads.split(",")]
    makers = [make for name, make in MAKERS.items() if not options.only or any(w in name for w in options.only)]
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        # All are made before one is measured: the machine has to be quiet for the measurements alone.
        models = [model for make in makers if (model := make(folder, max(threads))) is not None]
        rows = []
        for model in models:
            for number in threads:
                rows.append(measured(model, number, options.seconds))
                print(" | ".join(cells(rows[-1])), flush=True)
                for engine, why in rows[-1].missing.items():
                    print(f"    {engine}: {why}", flush=True)
    about = machine()
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "models.md").write_text(markdown(rows, about))
    made = {"machine": about, "rows": [asdict(row) for row in rows]}
    (options.out / "models.json").write_text(json.dumps(made, indent=1))
    draw_models(rows, about, options.out / "models.png")


if __name__ == "__main__":
    main()
