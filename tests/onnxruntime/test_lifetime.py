# SPDX-License-Identifier: Apache-2.0
"""Sessions and runs leak nothing. Each measurement runs in its own process."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.processes import environment

PROLOGUE = """
import gc, sys
import numpy as np
import onnxruntime as ort
import polyop
from tests.support import single_node
from tests.support.exported_nodes import NODES

def resident():
    gc.collect()
    return int(open("/proc/self/statm").read().split()[1]) * 4096

def loaded():
    return "libpolyop_onnxruntime" in open("/proc/self/maps").read()

a = np.ones((2, 3), np.float32)
add = single_node.model("custom::my_add", {"a": a, "b": a})
"""


def measure(code: str) -> str:
    command = [sys.executable, "-c", PROLOGUE + code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, env=environment())
    assert done.returncode == 0, done.stderr
    return done.stdout


SESSIONS = """
def one():
    session = single_node.session(add)
    assert loaded()
    assert (session.run(None, {"a": a, "b": a})[0] == 3).all()

for _ in range(50):
    one()
gc.collect()
assert not loaded(), "ONNX Runtime did not unload the library with its last session"
before = resident()
for _ in range(300):
    one()
print(resident() - before)
"""


def test_consecutive_sessions_leak_nothing() -> None:
    """Loads and unloads the library 300 times. A leaked table costs at least 100 kB each time."""
    assert int(measure(SESSIONS)) < 300 * 4096


RUNS = """
grown = {}
for node in NODES:
    inputs = {f"in{i}": array for i, array in enumerate(node.inputs)}
    outputs = [f"out{o}" for o in range(len(node.outputs))]
    session = single_node.session(single_node.model(node.name, inputs, outputs, node.attributes))
    feeds = {name: array for name, array in inputs.items() if array is not None}
    values = {name: ort.OrtValue.ortvalue_from_numpy(array) for name, array in feeds.items()}
    for _ in range(500):
        session.run_with_ort_values(outputs, values)
    halves = []
    for _ in range(2):
        before = resident()
        for _ in range(5000):
            session.run_with_ort_values(outputs, values)
        halves.append(resident() - before)
    grown[node.name] = max(min(halves), grown.get(node.name, 0))
worst = max(grown, key=grown.get)
print(len(grown), grown[worst], worst)
"""


@pytest.mark.slow
def test_runs_leak_nothing() -> None:
    """Runs each node of the catalogue 10,000 times.

    32 bytes leaked per run are 160 kB per half; a single growth is ignored.
    """
    count, bytes_, worst = measure(RUNS).split()
    assert int(count) >= 27
    assert int(bytes_) < 150_000, worst


ACCELERATED = """
from tests.support import standard_nodes
rng = np.random.default_rng(0)
x, grid = rng.random((1, 2, 6, 6), np.float32), rng.random((1, 3, 3, 2), np.float32)
cases = [
    standard_nodes.Case("GridSample", 16, [x, grid]),
    standard_nodes.Case("GridSample", 16, [x.astype(np.float16), grid]),  # the runtime's own kernel, between casts
    standard_nodes.Case("RoiAlign", 16, [x, grid.reshape(-1)[:4][None], np.array([0])], {"mode": "max"}),  # its own
]

def grown(step, count):
    for _ in range(100):
        step()
    before = resident()
    for _ in range(count):
        step()
    return resident() - before

worst = []
for case in cases:
    model = case.model().SerializeToString()
    def one():
        session = standard_nodes.session(model, True)
        session.run(None, case.feeds())
    sessions = min(grown(one, 200) for _ in range(2))
    gc.collect()
    assert not loaded()
    session = standard_nodes.session(model, True)
    values = {name: ort.OrtValue.ortvalue_from_numpy(array) for name, array in case.feeds().items()}
    runs = min(grown(lambda: session.run_with_ort_values(["out"], values), 5000) for _ in range(2))
    worst.append((sessions, runs))
    del session
print(max(sessions for sessions, _ in worst), max(runs for _, runs in worst))
"""


def test_accelerated_sessions_and_runs_leak_nothing() -> None:
    """Like the tests above, for nodes that polyop runs and for those that it passes to ONNX Runtime's own kernels."""
    sessions, runs = measure(ACCELERATED).split()
    assert int(sessions) < 200 * 4096
    assert int(runs) < 150_000


ORDERS = {
    "the session outlives the options": """
options = ort.SessionOptions()
options.register_custom_ops_library(polyop.get_onnxruntime_op_path())
session = ort.InferenceSession(add.SerializeToString(), options)
del options
gc.collect()
assert loaded()
assert (session.run(None, {"a": a, "b": a})[0] == 3).all()
del session
gc.collect()
assert not loaded()
""",
    "one of two sessions ends": """
first, second = single_node.session(add), single_node.session(add)
del first
gc.collect()
assert loaded()
assert (second.run(None, {"a": a, "b": a})[0] == 3).all()
del second
gc.collect()
assert not loaded()
third = single_node.session(add)
assert (third.run(None, {"a": a, "b": a})[0] == 3).all()
""",
    "options without a session": """
options = ort.SessionOptions()
options.register_custom_ops_library(polyop.get_onnxruntime_op_path())
assert loaded()
del options
gc.collect()
assert not loaded()
""",
    "a session lives until the process ends": """
session = single_node.session(add)
sys.kept_for_ever = session
""",
}


@pytest.mark.parametrize("order", ORDERS)
def test_order_of_destruction(order: str) -> None:
    measure(ORDERS[order])
