# SPDX-License-Identifier: Apache-2.0
"""`polyop verify`: every kind of reference, and the report of a difference."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
import torch
from onnx import helper, numpy_helper

from tests.support.processes import ROOT, environment
from tests.support.single_node import model, run

OK, FAILED, USAGE, BAD_FILE, NOT_PROVIDED, NO_RUNTIME = range(6)


@pytest.fixture
def verify(program: str, tmp_path: Path):
    """Runs `polyop verify` in a temporary folder; returns (exit code, stdout, stderr)."""

    def call(*arguments: object) -> tuple[int, str, str]:
        command = [program, "verify", *map(str, arguments)]
        result = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment(), timeout=300
        )
        return result.returncode, result.stdout, result.stderr

    return call


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """Writes a convolution, a deformable one and a pool, for images of any size; the first computes the offsets."""
    rng = np.random.default_rng(0)
    weights = {
        "w1": rng.standard_normal((18, 4, 3, 3)).astype(np.float32) / 4,
        "w2": rng.standard_normal((6, 4, 3, 3)).astype(np.float32) / 4,
    }
    deform = {"stride": [1, 1], "padding": [1, 1], "dilation": [1, 1], "groups": 1, "deform_groups": 1}
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["offset"], name="offsets", pads=[1, 1, 1, 1]),
        helper.make_node("MMCVDeformConv2d", ["x", "offset", "w2"], ["f"], name="deform", domain="mmcv", **deform),
        helper.make_node("MMCVCornerPool", ["f"], ["y"], name="pool", domain="mmcv", mode=2),
    ]
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ("N", 4, "H", "W"))
    initializers = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    graph = helper.make_graph(nodes, "net", [x], [onnx.ValueInfoProto(name="y")], initializers)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mmcv", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "net.onnx")
    return tmp_path / "net.onnx"


SHAPE = ("--shape", "x=2x4x11x9")


@pytest.mark.parametrize("reference", ["kernels", "isa=sse4", "threads=1"])
def test_equal_layer_by_layer(verify, net: Path, reference: str) -> None:
    code, out, err = verify(net, *SHAPE, "--layers", "--reference", reference)
    assert code == OK, out + err
    for word in ("Conv 'offsets'", "mmcv::MMCVDeformConv2d 'deform'", "mmcv::MMCVCornerPool 'pool'"):
        assert word in out
    assert "all of 3 tensor(s)" in out
    assert "differs" not in out


def test_reference_kernels_are_independent(verify, net: Path) -> None:
    """With a tolerance of 0, the naive double-precision kernels differ from polyop's in the last bits."""
    code, out, _ = verify(net, *SHAPE, "--layers", "--rtol", 0, "--atol", 0)
    assert code == FAILED
    assert "first difference: mmcv::MMCVDeformConv2d 'deform', tensor 'f'" in out


def test_saved_outputs(verify, net: Path, tmp_path: Path, program: str) -> None:
    command = [program, "run", net, "-i", "x=random", *SHAPE, "-o", "good.npz"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert verify(net, *SHAPE, "--reference", "npz=good.npz")[0] == OK
    y = np.load(tmp_path / "good.npz")["y"]
    y[1, 2, 3, 4] += 1
    np.savez(tmp_path / "bad.npz", y=y)
    code, out, _ = verify(net, *SHAPE, "--reference", "npz=bad.npz")
    assert code == FAILED
    assert f"1 of {y.size} elements differ, most at element {np.ravel_multi_index((1, 2, 3, 4), y.shape)}" in out
    np.savez(tmp_path / "other.npz", y=y[:1])
    assert "expected f32[1, 6, 11, 9], got f32[2, 6, 11, 9]" in verify(net, *SHAPE, "--reference", "npz=other.npz")[1]
    np.savez(tmp_path / "names.npz", z=y)
    code, _, err = verify(net, *SHAPE, "--reference", "npz=names.npz")
    assert code == BAD_FILE
    assert "no tensor 'y'" in err
    assert "it has z" in err


@pytest.mark.parametrize("layers", [False, True])
def test_another_onnxruntime(verify, net: Path, layers: bool) -> None:
    old = sorted((ROOT / ".deps").glob("onnxruntime-1.*/onnxruntime/capi/libonnxruntime.so.*"))
    assert old, "no older ONNX Runtime in .deps: run `make setup`"
    options = ["--layers"] if layers else []
    code, out, err = verify(net, *SHAPE, *options, "--reference", f"onnxruntime={old[0]}")
    assert code == OK, out + err


def two_inputs(path: Path, node: str, order: str, dtype: type) -> None:
    """Writes y = node(a, b), or node(b, a), with inputs of one shape and type.

    The order of the model's inputs does not change.
    """
    x = np.zeros((2, 3), dtype)
    proto = model(node, {"a": x, "b": x}, ["y"])
    proto.graph.node[0].input[:] = list(order)
    onnx.save(proto, path)


@pytest.mark.parametrize(
    ("node", "dtype"),
    [("custom::my_add", np.float32), ("::Sub", np.int64), ("::Sub", np.int32)],
)
def test_finds_exchanged_operands(verify, tmp_path: Path, program: str, node: str, dtype: type) -> None:
    """Synthetic inputs differ from each other, integers too: otherwise a - b and b - a would agree."""
    for order in ("ab", "ba"):
        two_inputs(tmp_path / f"{order}.onnx", node, order, dtype)
    command = [program, "run", "ab.onnx", "-i", "a=random", "-i", "b=random", "-o", "saved.npz"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert verify("ab.onnx", "--reference", "npz=saved.npz")[0] == OK
    code, out, _ = verify("ba.onnx", "--reference", "npz=saved.npz")
    assert code == FAILED
    assert "differs" in out


def test_synthetic_integers_are_valid_for_the_model(verify, tmp_path: Path, program: str) -> None:
    """Indices become smaller until the model accepts them; values that determine shapes or axes are sensible."""
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, 3])
    integers = [
        helper.make_tensor_value_info(n, onnx.TensorProto.INT64, [c]) for n, c in (("i", 8), ("k", 1), ("s", 2))
    ]
    nodes = [
        helper.make_node("Gather", ["x", "i"], ["g"], axis=0),  # 0 and 1 are valid
        helper.make_node("TopK", ["g", "k"], ["t", "positions"], axis=1),
        helper.make_node("Expand", ["t", "s"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "g", [x, *integers], [onnx.ValueInfoProto(name="y")])
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), tmp_path / "m.onnx")
    code, out, err = verify("m.onnx")
    assert code == OK, out + err
    assert "f32[8, 1]" in out
    assert "rejects integers greater than 1" in out
    random_inputs = [word for n in "xiks" for word in ("-i", f"{n}=random")]
    report = subprocess.run(
        [program, "run", "m.onnx", *random_inputs, "--json"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    sources = {entry["name"]: entry["source"] for entry in json.loads(report.stdout)["inputs"]}
    assert sources == {"x": "random", "i": "random 0 to 1", "k": "all 1", "s": "all 1"}
    code, _, err = verify("m.onnx", "--set", "i=0,1,2,3,4,5,6,7")  # given inputs are not changed
    assert code == FAILED
    assert "the model failed" in err


# ---- what is compared ----


def parsed(path: Path, graph: str) -> Path:
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {graph}'), path)
    return path


def test_integers_are_compared_exactly(verify, tmp_path: Path) -> None:
    """Neighbours that are equal as doubles differ."""
    parsed(tmp_path / "i64.onnx", "g (int64[2] x) => (int64[2] y) { y = Identity (x) }")
    np.save(tmp_path / "x.npy", np.array([2**60, 5]))
    np.savez(tmp_path / "same.npz", y=np.array([2**60, 5]))
    np.savez(tmp_path / "next.npz", y=np.array([2**60 + 1, 5]))
    assert verify("i64.onnx", "-i", "x.npy", "--reference", "npz=same.npz")[0] == OK
    code, out, _ = verify("i64.onnx", "-i", "x.npy", "--reference", "npz=next.npz")
    assert code == FAILED
    assert f"1 of 2 elements differ, most at element 0: expected {2**60 + 1}, got {2**60}" in out


def test_comparing_nothing_is_an_error(verify, tmp_path: Path) -> None:
    parsed(tmp_path / "none.onnx", "g (float[0] x) => (float[0] y) { y = Neg (x) }")
    for options in ([], ["--layers"], ["--json"]):
        code, _, err = verify("none.onnx", *options)
        assert code == FAILED
        assert "nothing was compared: all of 1 tensor(s) are empty" in err
    np.savez(tmp_path / "other.npz", z=np.zeros(1, np.float32))
    code, _, err = verify("none.onnx", "--layers", "--reference", "npz=other.npz")
    assert code == BAD_FILE
    assert "the reference has no tensor 'y'" in err


BRANCHES = """g (bool c, float[2] x, int64 n) => (float[2] y) {
    a = Neg (x)
    i = If (c) <then_branch = t () => (float[2] p) { q = Relu (a) p = Neg (q) }, else_branch = e () => (float[2] r) { r = Neg (a) }>
    l = Loop (n, c, i) <body = b (int64 k, bool on, float[2] s) => (bool o, float[2] u) { o = Identity (on) u = Add (s, a) }>
    sequence = SequenceConstruct (i, l)
    y = ConcatFromSequence <axis = 0> (sequence)
}"""


def test_layers_include_if_and_loop(verify, tmp_path: Path) -> None:
    """Sequences and inner nodes are named as not compared."""
    parsed(tmp_path / "m.onnx", BRANCHES.replace("(float[2] y)", "(float[4] y)", 1))
    given = ("--set", "c=1", "--set", "x=-1,2", "--set", "n=2", "--layers")
    code, out, err = verify("m.onnx", *given)
    assert code == OK, out + err
    assert "all of 4 tensor(s)" in out
    assert "not compared, not numbers: 'sequence' of SequenceConstruct" in out
    assert "not compared, nodes inside, alone: If (3), Loop (2)" in out
    correct = {"y": np.float32([-1, 0, 1, -4]), "i": np.float32([-1, 0])}
    np.savez(tmp_path / "right.npz", **correct)
    code, out, _ = verify("m.onnx", *given, "--reference", "npz=right.npz", "--json")
    assert code == OK
    report = json.loads(out)
    assert [entry["tensor"] for entry in report["tensors"]] == ["i", "y"]
    assert "not in the reference: 'a' of Neg, 'l' of Loop" in report["not_compared"][1]
    np.savez(tmp_path / "wrong.npz", **{**correct, "i": np.float32([-1, 777])})
    code, out, _ = verify("m.onnx", *given, "--reference", "npz=wrong.npz")
    assert code == FAILED
    assert "first difference: If, tensor 'i'" in out


class Add(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return 2 * a + b


@pytest.mark.parametrize("kind", ["jit", "export"])
def test_torch_program(verify, tmp_path: Path, kind: str) -> None:
    a = np.zeros((2, 3), np.float32)
    onnx.save(model("custom::my_add", {"b": a, "a": a}, ["c"]), tmp_path / "add.onnx")
    example = (torch.zeros(2, 3), torch.zeros(2, 3))
    if kind == "jit":
        torch.jit.save(torch.jit.trace(Add(), example), tmp_path / "add.pt")
    else:
        torch.export.save(torch.export.export(Add(), example), tmp_path / "add.pt")
    code, out, err = verify("add.onnx", "--reference", "torch=add.pt")
    assert code == OK, out + err
    code, _, err = verify("add.onnx", "--reference", "torch=nothing.pt")
    assert code == BAD_FILE
    assert "nothing.pt' does not exist" in err


def test_files_with_other_names_are_compared_by_position(verify, tmp_path: Path) -> None:
    """The kind of a file is its extension, and f16 is compared with f32. What differs in number is an error."""
    parsed(tmp_path / "a.onnx", "g (float[2] x, float[2] w) => (float[2] y, float[2] z) { y = Sub (x, w) z = Neg (w) }")
    parsed(
        tmp_path / "b.onnx",
        "g (float16[2] u, float16[2] v) => (float16[2] p, float16[2] q) { p = Sub (u, v) q = Neg (v) }",
    )
    code, out, err = verify("a.onnx", "--against", "b.onnx", "--rtol", 1e-3, "--atol", 1e-3)
    assert code == OK, out + err
    for note in ("input 'w' is the reference's 'v', by position", "output 'z' is the reference's 'q', by position"):
        assert note in out
    assert verify("a.onnx", "--against", "b.onnx")[0] == FAILED
    parsed(tmp_path / "one.onnx", "g (float[2] x, float[2] w) => (float[2] q) { q = Sub (x, w) }")
    code, _, err = verify("a.onnx", "--against", "one.onnx")
    assert (code, "--against one.onnx: " in err or "no tensor 'y'" in err) == (BAD_FILE, True), err
    np.savez(tmp_path / "y.npz", y=np.zeros(2, np.float32), z=np.zeros(2, np.float32))
    assert verify("a.onnx", "--set", "x=1,2", "--set", "w=1,2", "--against", "y.npz")[0] == FAILED


GRID = """g (float[1,8,64,64] x, float[1,64,64,2] g) => (float[1,8,64,64] y, float[1,8,64,64] z) {
    t = Tanh (x) y = GridSample (t, g) z = Relu (y) }"""


def test_providers(verify, tmp_path: Path) -> None:
    """polyop's own provider runs a node of three. A provider that runs none proves nothing, and a missing one is
    named."""
    parsed(tmp_path / "m.onnx", GRID)
    code, out, err = verify("m.onnx", "--provider", "polyop", "--against", "provider=cpu", "--json")
    assert code == OK, out + err
    report = json.loads(out)
    assert report["runtime"].endswith("PolyopExecutionProvider")
    assert report["notes"][0].startswith("PolyopExecutionProvider ran 1 of 3 node(s)")
    assert report["notes"][1].startswith("CPUExecutionProvider ran 3 of 3 node(s)")
    assert {t["tensor"]: t["relative_error"] < 1e-5 for t in report["tensors"]} == {"y": True, "z": True}
    parsed(tmp_path / "neg.onnx", "g (float[2] x) => (float[2] y) { y = Neg (x) }")
    code, _, err = verify("neg.onnx", "--provider", "polyop", "--layers")
    assert (code, "--provider polyop: PolyopExecutionProvider ran none of" in err) == (FAILED, True), err
    for option in (("--provider", "cuda:device_id=0"), ("--against", "provider=cuda:device_id=0")):
        code, _, err = verify("neg.onnx", *option)
        assert (code, "provider 'cuda': expected polyop, " in err) == (NO_RUNTIME, True), err
        assert "pip install onnxruntime-gpu" in err
    code, _, err = verify("neg.onnx", "--provider", "./none.so")
    assert (code, "'./none.so' does not exist" in err) == (FAILED, True), err


def test_several_references_and_a_page(verify, tmp_path: Path) -> None:
    """Each is compared; one that does not run leaves the others, and its exit code."""
    parsed(tmp_path / "a.onnx", "g (float[2] x) => (float[2] y) { a = Exp (x) y = Neg (a) }")
    parsed(tmp_path / "b.onnx", "g (float[2] x) => (float[2] y) { a = Cos (x) y = Neg (a) }")
    words = ("--against", "threads=1", "--against", "b.onnx", "--against", "provider=<b>", "--report", "page.html")
    code, out, err = verify("a.onnx", *words, "--json")
    assert (code, "provider '<b>'" in err) == (NO_RUNTIME, True), err
    report = json.loads(out)
    assert [c["equal"] for c in report["comparisons"]] == [True, False, False]
    assert "provider '<b>'" in report["comparisons"][2]["error"]
    assert [f["file"] for f in report["files"]] == ["a.onnx", "b.onnx"]
    page = (tmp_path / "page.html").read_text()
    assert page.count("<html") == 1
    assert "provider=&lt;b&gt;" in page
    assert "<b>" not in page
    for word in (report["files"][0]["sha256"], "polyop verify a.onnx --against threads=1", onnx.__version__, "b.onnx"):
        assert word in page


def test_two_outputs_of_one_name(verify, tmp_path: Path) -> None:
    parsed(tmp_path / "a.onnx", "g (float[2] x) => (float[2] y, float[2] y) { y = Tanh (x) }")
    code, _, err = verify("a.onnx", "--against", "a.onnx")
    assert (code, "expected outputs of different names, got 'y' twice" in err) == (BAD_FILE, True), err


def test_bisect(verify, tmp_path: Path) -> None:
    """The command that it prints shows the difference by the files alone."""
    parsed(tmp_path / "a.onnx", "g (float[2] x) => (float[2] y) { a = Tanh (x) b = Exp (a) y = Neg (b) }")
    parsed(tmp_path / "b.onnx", "g (float[2] x) => (float[2] y) { a = Tanh (x) b = Cos (a) y = Neg (b) }")
    code, out, err = verify("a.onnx", "--against", "b.onnx", "--bisect", "--output", "found/first.onnx")
    assert code == FAILED, err
    assert "first node whose output differs: Exp, tensor 'b'" in out
    command = next(line for line in out.splitlines() if "polyop verify found/first.onnx" in line).split()
    for name in ("first.onnx", "first.npz", "first-reference.onnx"):
        assert (tmp_path / "found" / name).is_file()
    code, out, err = verify(*command[2:])
    assert (code, "first difference: Exp, tensor 'b'" in out) == (FAILED, True), out + err
    code, _, err = verify("a.onnx", "--against", "b.onnx", "--bisect", "--layers")
    assert (code, "expected one of them, got both" in err) == (USAGE, True)
    np.savez(tmp_path / "y.npz", y=np.zeros(2, np.float32))
    code, _, err = verify("a.onnx", "--against", "y.npz", "--bisect")
    assert (code, "expected a reference whose inner values can be outputs, got npz" in err) == (USAGE, True), err


def test_json_report(verify, net: Path) -> None:
    code, out, _ = verify(net, *SHAPE, "--json")
    report = json.loads(out)
    assert code == OK
    assert report["equal"]
    assert report["tensors"][0]["tensor"] == "y"
    assert report["tensors"][0]["count"] == 2 * 6 * 11 * 9


def test_errors_say_what_to_do(verify, net: Path, tmp_path: Path) -> None:
    code, _, err = verify(net)
    assert code == USAGE
    assert "--shape x=" in err
    code, _, err = verify(net, *SHAPE, "--reference", "magic")
    assert code == USAGE
    assert "onnxruntime=LIBRARY" in err
    assert verify(net, *SHAPE, "--reference", "isa=mmx")[0] == USAGE
    for wrong in ("none", "0", "-1", "1e3", "1000000", "4294967297", "nan", ""):
        code, _, err = verify(net, *SHAPE, "--reference", f"threads={wrong}")
        assert code == USAGE
        assert "is not an integer in [1 - 1024]" in err
    assert verify(net, *SHAPE, "--reference", "npz=missing.npz")[0] == BAD_FILE
    onnx.save(model("mmcv::Unheard", {"x": np.zeros(2, np.float32)}), tmp_path / "unheard.onnx")
    assert verify("unheard.onnx")[0] == NOT_PROVIDED


def test_reference_kernels_by_the_environment() -> None:
    """POLYOP_KERNELS=reference: the library runs the naive kernels in any program."""
    code = (
        "import numpy as np; from tests.support import single_node;"
        "x = np.random.default_rng(0).standard_normal((2, 3, 40)).astype(np.float32);"
        "w = np.ones(3, np.float32);"
        "print(single_node.run('mmcv::MMCVInstanceNormalization', {'x': x, 's': w, 'b': w})[0].tobytes().hex())"
    )
    kernels = environment(POLYOP_KERNELS="reference")
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=kernels)
    slow = np.frombuffer(bytes.fromhex(result.stdout.strip()), np.float32).reshape(2, 3, 40)
    x = np.random.default_rng(0).standard_normal((2, 3, 40)).astype(np.float32)
    w = np.ones(3, np.float32)
    wide = x.astype(np.float64)
    exact = (wide - wide.mean(2, keepdims=True)) / np.sqrt(wide.var(2, keepdims=True) + 1e-5) + 1
    np.testing.assert_array_max_ulp(slow, exact.astype(np.float32))
    (fast,) = run("mmcv::MMCVInstanceNormalization", {"x": x, "s": w, "b": w})
    np.testing.assert_allclose(fast, slow, rtol=1e-5, atol=1e-5)
