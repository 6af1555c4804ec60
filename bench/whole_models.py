# SPDX-License-Identifier: Apache-2.0
"""Compares whole models in ONNX Runtime and in OpenVINO, with and without polyop, and lists what takes the remaining
time.

python bench/whole_models.py [--only NAME] [--threads 1,2] [--seconds 5] [--keep FOLDER] [--out bench/results]
    [--runtime onnxruntime] [--busy]

Writes models.md, models.json and models.png. Models of bench/optimize.py are exported and optimised first, which takes
most of the time; with --keep, later runs reuse the files. YOLO is measured if the folder has the file that
bench/ultralytics_models.py writes. On a busy machine, --busy measures processor time, of one thread.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import onnx
import onnxruntime as ort
import optimize
import records
from chart import bars
from contenders import Run, model_in_openvino
from harness import machine
from onnx import TensorProto, helper

import polyop
from models import PAIRS, Graph, Pair
from polyop import portable
from polyop.openvino import core
from polyop.optimizing.running import time_runs_interleaved

ROOT = Path(__file__).resolve().parent.parent
Feeds = Mapping[str, np.ndarray]
WITH, WITHOUT = ("ONNX Runtime + polyop", "OpenVINO + polyop"), ("ONNX Runtime", "OpenVINO")
# The file without polyop's nodes, by polyop's execution provider and with the accelerator.
PROVIDER, ACCELERATOR = "ONNX Runtime, provider", "ONNX Runtime, accelerator"
STANDARD_DOMAINS = ("", "ai.onnx", "com.microsoft")
MAX_LISTED = 3  # kinds of nodes that are listed
# The relevant part of OpenVINO's long errors.
REASON = re.compile(r"No conversion rule found for operations: [\w.-]+(?:, [\w.-]+)*")
MIN_ROUNDS, PROFILED_CALLS = 3, 3


@dataclass
class Model:
    """A file with polyop's nodes, one without them if it exists, and inputs of both."""

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
    # Shares of the time of all nodes in ONNX Runtime + polyop, by kind.
    shares: dict[str, float] = field(default_factory=dict)

    @property
    def gain(self) -> float | None:
        """Returns the time of the best engine without polyop divided by that of the best with it."""
        without, with_it = (
            min((self.milliseconds[e] for e in engines if e in self.milliseconds), default=None)
            for engines in (WITHOUT, WITH)
        )
        return without / with_it if without and with_it else None

    @property
    def left(self) -> str:
        longest = sorted(((share, kind) for kind, share in self.shares.items() if kind != "polyop"), reverse=True)
        return ", ".join(f"{kind} {share:.0%}" for share, kind in longest[:MAX_LISTED] if share >= 0.01)


# ---- models ------------------------------------------------------------------------------------------------


def of_pair(pair: Pair, folder: Path, threads: int) -> Model:
    *protos, feeds = pair.make()
    paths = [folder / f"{pair.make.__name__}_{kind}.onnx" for kind in ("ours", "theirs")]
    for path, proto in zip(paths, protos, strict=True):
        onnx.save(proto, path)
    return Model(pair.title, *paths, feeds)


def of_lidar(name: str, folder: Path, threads: int) -> Model:
    """Standard operators cannot express its voxels, boxes and suppression. The sweep is synthetic."""
    path = folder / f"{name.lower()}.onnx"
    if not path.exists():
        subprocess.run([sys.executable, str(ROOT / "models" / "lidar" / "write.py"), str(folder)], check=True)
    sys.path.insert(0, str(ROOT / "models" / "scenes"))
    import scenes

    return Model(f"{name}, a synthetic sweep", path, None, {"points": scenes.street().points})


def of_others(name: str, folder: Path, threads: int) -> Model | None:
    """Returns the model as exported and as `polyop optimize` writes it, or None if they are equal."""
    return of_file(name, optimize.export(name, folder), threads)


def of_yolo(folder: Path, threads: int) -> Model | None:
    path = folder / "yolo_with_nms.onnx"
    return of_file("YOLO11 n with suppression", path, threads) if path.exists() else None


def of_masks(folder: Path, threads: int) -> Model | None:
    """What SOLOv2 does with its masks: convolutions with a kernel for each mask, Matrix NMS, and the extents of the
    masks by cumulative sums. Weights are random."""
    g, rng = Graph(), np.random.default_rng(0)
    count, channels, height, width = 200, 128, 100, 152
    kernels = g.constant(rng.standard_normal((count, channels, 1, 1)) / channels**0.5, np.float32)
    soft = g.add("Sigmoid", g.add("Conv", "features", kernels))
    flat = g.add("Reshape", soft, g.constant([count, -1]))
    masks = g.add("Cast", g.add("Greater", flat, g.constant(0.5, np.float32)), to=TensorProto.FLOAT)
    areas = g.add("ReduceSum", masks, g.constant([1]), keepdims=0)
    sure = g.add("Div", g.add("ReduceSum", g.add("Mul", flat, masks), g.constant([1]), keepdims=0), areas)
    order = g.add("Mul", sure, areas)
    scores, best = f"{order}_scores", f"{order}_best"
    g.nodes.append(helper.make_node("TopK", [order, g.constant([count])], [scores, best]))
    chosen = g.add("Gather", masks, best)
    shared = g.add("MatMul", chosen, g.add("Transpose", chosen, perm=[1, 0]))
    sizes = g.add("Gather", areas, best)
    both = g.add(
        "Sub",
        g.add("Add", g.add("Unsqueeze", sizes, g.constant([0])), g.add("Unsqueeze", sizes, g.constant([1]))),
        shared,
    )
    over = g.add("Trilu", g.add("Div", shared, both), g.constant(1), upper=1)
    most = g.add("ReduceMax", over, axes=[0], keepdims=0)
    square = g.add("Sub", g.add("Mul", over, over), g.add("Unsqueeze", g.add("Mul", most, most), g.constant([1])))
    decay = g.add("ReduceMin", g.add("Exp", g.add("Mul", square, g.constant(-2, np.float32))), axes=[0], keepdims=0)
    image = g.add("Reshape", chosen, g.constant([count, height, width]))
    across = g.add("CumSum", image, g.constant(2))
    down = g.add("CumSum", g.add("Transpose", image, perm=[0, 2, 1]), g.constant(2))
    outputs = [g.add("Mul", scores, decay), across, down]
    feeds = {"features": rng.standard_normal((1, channels, height, width)).astype(np.float32)}
    path = folder / "masks.onnx"
    onnx.save(onnx.shape_inference.infer_shapes(g.model(feeds, outputs, ())), path)
    return of_file("SOLOv2's masks", path, threads, feeds)


def of_file(name: str, before: Path, threads: int, feeds: Feeds | None = None) -> Model | None:
    after = optimize.path_of_optimized(before)
    if not after.exists():
        optimize.optimized(name, before, threads)
    if after.read_bytes() == before.read_bytes():
        return None
    return Model(name, after, before, feeds or optimize.feeds_of(optimize.session(before, threads)))


MAKERS: dict[str, Callable[[Path, int], Model | None]] = {
    **{pair.title: partial(of_pair, pair) for pair in PAIRS},
    **{name: partial(of_lidar, name) for name in ("PointPillars", "SECOND")},
    **{name: partial(of_others, name) for name in ("Deformable DETR", "RT-DETR", "Mask2Former", "Mask R-CNN")},
    "YOLO with suppression": of_yolo,
    "SOLOv2's masks": of_masks,
}


# ---- measuring ---------------------------------------------------------------------------------------------


def in_onnxruntime(path: Path, feeds: Feeds, threads: int, with_polyop: bool) -> Run:
    if with_polyop:
        session = optimize.session(path, threads)
    else:
        session = ort.InferenceSession(path, optimize.options_of(threads), providers=["CPUExecutionProvider"])
    return lambda: session.run(None, dict(feeds))


def by_provider(path: Path, feeds: Feeds, threads: int) -> Run:
    options = optimize.options_of(threads)
    options.add_provider_for_devices(polyop.register(), {})
    session = ort.InferenceSession(path, options, enable_fallback=0)
    return lambda: session.run(None, dict(feeds))


def accelerated(path: Path, feeds: Feeds, threads: int) -> Run:
    session = polyop.session(
        path, accelerate=True, options=optimize.options_of(threads), providers=["CPUExecutionProvider"]
    )
    return lambda: session.run(None, dict(feeds))


def processor_times(runs: Sequence[Run], seconds: float) -> list[float]:
    """Like time_runs_interleaved; returns the processor time of the calling thread."""
    times: list[list[float]] = [[] for _ in runs]
    end = time.thread_time() + seconds * len(runs)
    while len(times[0]) < MIN_ROUNDS or time.thread_time() < end:
        for taken, run in zip(times, runs, strict=True):
            begin = time.thread_time()
            run()
            taken.append(time.thread_time() - begin)
    return [float(np.median(t)) for t in times]


def measured(model: Model, threads: int, seconds: float, runtimes: Sequence[str], busy: bool) -> Row:
    row = Row(model.name, threads)
    makers: dict[str, Callable[[], Run]] = {}
    if model.theirs is not None:
        makers[WITHOUT[0]] = lambda: in_onnxruntime(model.theirs, model.feeds, threads, False)
        makers[WITHOUT[1]] = lambda: model_in_openvino(model.theirs, model.feeds, threads)
        makers[PROVIDER] = lambda: by_provider(model.theirs, model.feeds, threads)
        makers[ACCELERATOR] = lambda: accelerated(model.theirs, model.feeds, threads)
    makers[WITH[0]] = lambda: in_onnxruntime(model.ours, model.feeds, threads, True)
    makers[WITH[1]] = lambda: model_in_openvino(model.ours, model.feeds, threads, core())
    runs = {}
    for engine, make in makers.items():
        if not any(engine.lower().replace(" ", "").startswith(runtime) for runtime in runtimes):
            continue
        try:
            run = make()
            run()
            runs[engine] = run
        except Exception as error:  # engines have their own error types
            said = " ".join(str(error).split())
            row.missing[engine] = found[0] if (found := REASON.search(said)) else said[:200]
    time_all = processor_times if busy else partial(time_runs_interleaved, min_runs=MIN_ROUNDS)
    taken = time_all([*runs.values()], seconds)
    row.milliseconds = {engine: 1e3 * median for engine, median in zip(runs, taken, strict=True)}
    row.shares = shares(model, threads)
    return row


def shares(model: Model, threads: int) -> dict[str, float]:
    """Returns shares by kinds of nodes: polyop's together, others by operator."""
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
          f"{PROVIDER}, ms", f"{ACCELERATOR}, ms", "gain", "polyop's nodes", "what takes the rest"]  # fmt: skip
LEGEND = (
    "Medians of interleaved runs. Gain: the time of the best engine without polyop divided by that of the best with it. Shares are "
    "of the time of all nodes in ONNX Runtime with polyop, according to its profiler. Weights are random. PointPillars and SECOND "
    "have nodes that standard operators cannot express."
)


def cells(row: Row) -> list[str]:
    engines = [engine for pair in zip(WITHOUT, WITH, strict=True) for engine in pair] + [PROVIDER, ACCELERATOR]
    times = [row.milliseconds.get(engine) for engine in engines]
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


def draw_models(rows: list[Row], about: Mapping[str, object], path: Path) -> None:
    """Draws bars of milliseconds, one per engine, in one panel per number of threads."""
    engines = list(dict.fromkeys(engine for row in rows for engine in row.milliseconds))
    names = list(dict.fromkeys(row.name for row in rows))
    counts = sorted({row.threads for row in rows})
    figure, panels = plt.subplots(
        1,
        len(counts),
        figsize=(7.5 * len(counts), 1.5 + 0.75 * len(names)),
        layout="constrained",
        sharey=True,
        squeeze=False,
    )
    for axes, count in zip(panels.flat, counts, strict=True):
        times = {row.name: row.milliseconds for row in rows if row.threads == count}
        for index, engine in enumerate(engines):
            widths = [times.get(name, {}).get(engine, np.nan) for name in names]
            texts = ["" if np.isnan(w) else f"{w:,.0f}" for w in widths]
            bars(axes, widths, texts, index, len(engines), engine)
        axes.set_xscale("log")
        axes.margins(x=0.15)
        axes.set_yticks(range(len(names)), names, fontsize=8)
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.set_xlabel(f"milliseconds, median, {count} thread{'s' * (count > 1)}")
        axes.spines[["top", "right"]].set_visible(False)
    figure.legend(
        *panels.flat[0].get_legend_handles_labels(), loc="outside upper right", ncols=len(engines), frameon=False
    )
    figure.suptitle(f"polyop {about['polyop']} on {about['processor']}", fontsize=11, x=0.02, ha="left")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", help="a part of a model's name")
    parser.add_argument("--threads", default="1,2", help="numbers, separated by commas")
    parser.add_argument("--seconds", type=float, default=5, help="minimum time for which each engine runs")
    parser.add_argument("--keep", type=Path, help="a folder in which the files are kept for later runs")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results")
    parser.add_argument("--runtime", action="append", choices=["onnxruntime", "openvino"], help="the default is both")
    parser.add_argument("--busy", action="store_true", help="processor time instead of time; one thread only")
    options = parser.parse_args()
    threads = [int(number) for number in options.threads.split(",")]
    if options.busy and threads != [1]:
        parser.error("--busy measures one thread: add --threads 1")
    makers = [make for name, make in MAKERS.items() if not options.only or any(w in name for w in options.only)]
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        # All models are created before the first one is measured, because the machine must be idle during measurements.
        models = [model for make in makers if (model := make(folder, max(threads))) is not None]
        rows = []
        for model in models:
            for number in threads:
                runtimes = options.runtime or ["onnxruntime", "openvino"]
                rows.append(measured(model, number, options.seconds, runtimes, options.busy))
                print(" | ".join(cells(rows[-1])), flush=True)
                for engine, why in rows[-1].missing.items():
                    print(f"    {engine}: {why}", flush=True)
    about = machine()
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "models.md").write_text(markdown(rows, about))
    records.write(options.out / "models.json", about, [asdict(row) for row in rows])
    draw_models(rows, about, options.out / "models.png")


if __name__ == "__main__":
    main()
