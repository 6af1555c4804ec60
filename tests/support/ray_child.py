# SPDX-License-Identifier: Apache-2.0
"""Runs on a Ray cluster of several nodes on this machine, in an environment with Ray and pyarrow, for test_ray.py.

python ray_child.py FOLDER MODEL [PART…]: writes FOLDER/said.json with the result of each part, or its error.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import ray
from PIL import Image
from pyarrow import parquet
from ray.cluster_utils import Cluster

from polyop import batch
from polyop.ray import Predictor
from tests.support.machines import identity, photos

FOLDER, MODEL = Path(sys.argv[1]), sys.argv[2]


def arrays(folder: Path) -> dict[str, list]:
    return {str(p.relative_to(folder)): np.load(p)["output"].tolist() for p in sorted(folder.rglob("*.npz"))}


def a_batch(cluster: batch.Cluster) -> dict[str, Any]:
    """Results equal those of one machine."""
    photos(FOLDER / "in", 30, width=12, height=10)
    alone = batch.run(MODEL, [str(FOLDER / "in")], FOLDER / "alone")
    report = batch.run(MODEL, [str(FOLDER / "in")], FOLDER / "ray", cluster=cluster)
    again = batch.run(MODEL, [str(FOLDER / "in")], FOLDER / "ray", cluster=cluster)
    got, want = arrays(FOLDER / "ray"), arrays(FOLDER / "alone")
    near = all(np.allclose(got[name], want[name], atol=1e-5) for name in want)
    return {
        "samples": [alone.samples, report.samples, again.samples],
        "equal": got.keys() == want.keys() and near,
        "workers": report.workers,
        "threads": report.threads,
    }


def killed(cluster: batch.Cluster) -> dict[str, Any]:
    """One of two workers is killed by SIGKILL when a part is done."""
    count = 240
    photos(FOLDER / "many", count)
    before: dict[Path, int] = {}  # modification times of the results that existed when the worker was killed
    output = FOLDER / "killed"

    def kill() -> None:
        while len(list(output.rglob("*.npz"))) < 40:
            time.sleep(0.05)
        workers = [p for p in psutil.process_iter() if "MapWorker" in "".join(p.cmdline()[:1])]
        mine = [p for p in workers if any(parent.pid == os.getpid() for parent in p.parents())]
        before.update({p: p.stat().st_mtime_ns for p in output.rglob("*.npz")})
        (mine or workers)[0].send_signal(signal.SIGKILL)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    report = batch.run(MODEL, [str(FOLDER / "many")], output, cluster=cluster)
    thread.join(60)
    files = list(output.rglob("*.npz"))
    whole = [np.load(p)["output"].ndim == 4 for p in files]
    kept = all(path.stat().st_mtime_ns == time_ for path, time_ in before.items())
    return {"count": count, "done_when_killed": len(before), "kept": kept, "files": len(files), "whole": all(whole),
            "failed": report.failed, "partial": [str(p) for p in output.rglob("*.partial-*")]}  # fmt: skip


def a_predictor() -> dict[str, Any]:
    """Reads images, Parquet and NumPy, writes Parquet and NumPy; keeps the order of rows and the other columns."""
    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True
    model = identity(FOLDER / "identity.onnx", ["n", 3, "h", "w"])
    files = photos(FOLDER / "rows", 50, width=8, height=6)
    want = [(np.asarray(Image.open(p)) / 255).astype(np.float32).transpose(2, 0, 1) for p in files]
    options = {
        "fn_constructor_args": (str(model),),
        "num_cpus": 1,
        "batch_size": 7,
        "compute": ray.data.ActorPoolStrategy(size=1),
    }
    images = ray.data.read_images(str(FOLDER / "rows"), mode="RGB", include_paths=True)
    rows = sorted(images.map_batches(Predictor, **options).take_all(), key=lambda row: row["path"])
    of_images = [row["y"].tolist() for row in rows] == [w.tolist() for w in want]
    table = ray.data.from_items([{"bytes": p.read_bytes(), "number": i} for i, p in enumerate(files)])
    table.write_parquet(str(FOLDER / "parquet"))
    predicted = ray.data.read_parquet(str(FOLDER / "parquet")).map_batches(Predictor, **options).materialize()
    predicted.write_parquet(str(FOLDER / "results"))
    numbers = [row["number"] for row in predicted.take_all()]
    back = [row for path in sorted((FOLDER / "results").iterdir()) for row in parquet.read_table(path).to_pylist()]
    of_parquet = all(np.array_equal(np.ravel(row["y"]), want[row["number"]].ravel()) for row in back)
    np.save(FOLDER / "want.npy", np.stack(want))
    numpy = ray.data.read_numpy(str(FOLDER / "want.npy")).map_batches(Predictor, **options)
    numpy.write_numpy(str(FOLDER / "numpy"), column="y")
    stored = np.concatenate([np.load(p) for p in sorted((FOLDER / "numpy").glob("*.npy"))])
    of_numpy = sorted(stored.reshape(50, -1).tolist()) == sorted(np.stack(want).reshape(50, -1).tolist())
    bad = ray.data.from_items([{"bytes": files[0].read_bytes()}, {"bytes": b"damaged"}])
    options["fn_constructor_kwargs"] = {"errors": "column"}
    errors = sorted(row["error"] for row in bad.map_batches(Predictor, **options).take_all())
    return {
        "images": of_images,
        "parquet": of_parquet and len(back) == 50,
        "numbers": numbers,
        "numpy": of_numpy,
        "errors": errors,
    }


class Watched(Predictor):
    """Also returns the memory of its process."""

    def __call__(self, rows: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        results = super().__call__(rows)
        memory = np.full(len(rows["id"]), psutil.Process().memory_info().rss / 2**20)
        return {"id": results["id"], "sum": results["output"].sum(axis=(1, 2, 3)), "memory": memory}


def memory() -> dict[str, Any]:
    """10,000 small images: a worker's memory in the second fifth and in the last."""
    count = 10000

    def image(rows: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        noise = np.random.default_rng(int(rows["id"][0])).integers(0, 256, (len(rows["id"]), 8, 9, 3), np.uint8)
        return {"id": rows["id"], "image": noise}

    images = ray.data.range(count, override_num_blocks=50).map_batches(image, batch_size=200)
    start = time.perf_counter()
    rows = images.map_batches(
        Watched, fn_constructor_args=(MODEL,), num_cpus=1, batch_size=50, compute=ray.data.ActorPoolStrategy(size=1)
    ).take_all()
    seconds = time.perf_counter() - start
    held = [row["memory"] for row in rows]
    return {
        "rows": len(rows),
        "different": len({row["id"] for row in rows}),
        "seconds": seconds,
        "early": float(np.median(held[count // 5 : 2 * count // 5])),
        "late": float(np.median(held[-count // 5 :])),
    }


def started() -> Cluster:
    """Starts a cluster. Ray gives a node half a minute to start, which may not be enough on a busy machine."""
    for last in (False, False, True):
        try:
            return Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        except Exception:
            if last:
                raise
    raise AssertionError


def main() -> None:
    cluster = started()
    cluster.add_node(num_cpus=2)
    cluster.wait_for_nodes()
    ray.init(address=cluster.address, log_to_driver=False)
    said: dict[str, Any] = {"nodes": len(ray.nodes())}
    two = batch.Cluster(address=cluster.address, workers=2)
    parts = {"batch": lambda: a_batch(two), "killed": lambda: killed(two), "predictor": a_predictor, "memory": memory}
    for name, part in parts.items():
        if sys.argv[3:] and name not in sys.argv[3:]:
            continue
        try:
            said[name] = part()
        except Exception:
            said[name] = {"error": traceback.format_exc()[-3000:]}
        (FOLDER / "said.json").write_text(json.dumps(said))
    try:
        batch.run(
            MODEL, [str(FOLDER / "in")], FOLDER / "large", cluster=batch.Cluster(address=cluster.address, workers=9)
        )
    except batch.BatchError as error:
        said["too_many"] = str(error)
    (FOLDER / "said.json").write_text(json.dumps(said))
    ray.shutdown()
    cluster.shutdown()


if __name__ == "__main__":
    main()
