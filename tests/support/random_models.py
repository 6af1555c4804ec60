# SPDX-License-Identifier: Apache-2.0
"""Random small models of ONNX's operators and polyop's, for commands that rewrite models: dynamic sizes, subgraphs,
functions, external data, every opset from 11 on.

A model depends on its seed and its number of steps alone, and the model of fewer steps has the same first nodes, so
that `python -m tests.support.random_models SECONDS [SEED]` can name the smallest one that fails. Every value is
continuous in the inputs of the model, and small, so that another order of additions changes it little.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from onnx.external_data_helper import set_external_data

import polyop
from polyop._onnx.graph import nodes_in, nodes_of, subgraphs_of
from polyop.optimizing import optimize
from polyop.portable import convert_file
from polyop.tensorrt.half import to_fp16

OPSETS = range(11, 24)
MAX_STEPS = 9
CHANNELS = 4
FLOAT = TensorProto.FLOAT


@dataclass
class RandomModel:
    """Inputs are x [n, 4, h, w], a grid, boxes with scores, and a flag; each model reads some of them."""

    proto: onnx.ModelProto
    seed: int
    steps: int

    def feeds(self, size: int) -> dict[str, np.ndarray]:
        """Returns inputs of the size-th size; 0 is that of static dimensions."""
        rng = np.random.default_rng([self.seed, size])
        extents = {"n": (2, 1, 3)[size], "h": (6, 5, 9)[size], "w": (7, 8, 4)[size], "boxes": (5, 9, 6)[size]}
        result = {}
        for info in self.proto.graph.input:
            tensor = info.type.tensor_type
            shape = [dim.dim_value or extents[dim.dim_param] for dim in tensor.shape.dim]
            if tensor.elem_type == TensorProto.BOOL:
                result[info.name] = np.array(size % 2 == 0)
            elif info.name == "boxes":
                corner = rng.uniform(0, 4, (*shape[:-1], 2))
                result[info.name] = np.concatenate([corner, corner + rng.uniform(0.5, 3, corner.shape)], -1).astype("f")
            elif info.name == "scores":
                count = int(np.prod(shape))
                result[info.name] = rng.permutation(np.linspace(0.1, 0.9, count, dtype=np.float32)).reshape(shape)
            else:
                result[info.name] = rng.uniform(-1, 1, shape).astype(np.float32)
        return result

    def save(self, path: Path) -> None:
        """Writes the file, by the seed with external weights, also of branches."""
        proto = onnx.ModelProto.FromString(self.proto.SerializeToString())
        if self.seed % 3 == 0:
            data = b""
            for tensor in _weights(proto.graph):
                set_external_data(tensor, f"{path.name}.weights", len(data), len(tensor.raw_data))
                data += tensor.raw_data
                tensor.ClearField("raw_data")
            path.with_name(f"{path.name}.weights").write_bytes(data)
        path.write_bytes(proto.SerializeToString())


def _weights(graph: onnx.GraphProto) -> list[onnx.TensorProto]:
    """Returns the tensors that shape inference does not read, also those of subgraphs."""
    inner = [_weights(a.g) for node in graph.node for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
    own = [t for t in graph.initializer if t.data_type == FLOAT and len(t.dims) > 2]
    return [*own, *(tensor for tensors in inner for tensor in tensors)]


def random_model(seed: int, steps: int | None = None) -> RandomModel:
    rng = np.random.default_rng(seed)
    graph = _Graph(rng, opset=int(rng.choice(OPSETS)), is_static=bool(rng.random() < 0.2))
    all_steps = int(rng.integers(2, MAX_STEPS + 1))
    steps = all_steps if steps is None else steps
    current = graph.input("x", ["n", CHANNELS, "h", "w"])
    for _ in range(steps):
        current = graph.step(current, graph.all_steps)
    return RandomModel(graph.finish(current), seed, steps)


@dataclass
class _Graph:
    """A graph that grows: the model's, a branch, or a function's body. Values are float32 images [n, 4, h, w]."""

    rng: np.random.Generator
    opset: int
    is_static: bool = False
    outer: _Graph | None = None
    is_function: bool = False
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    tensors: list[onnx.TensorProto] = field(default_factory=list)
    inputs: dict[str, onnx.ValueInfoProto] = field(default_factory=dict)
    functions: list[onnx.FunctionProto] = field(default_factory=list)
    images: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)  # further outputs of the model
    counter: list[int] = field(default_factory=lambda: [0])

    # ---- parts of nodes ----

    @property
    def root(self) -> _Graph:
        return self if self.outer is None else self.outer.root

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def name(self, kind: str) -> str:
        self.counter[0] += 1
        return f"{kind}{self.counter[0]}"

    def input(self, name: str, shape: Sequence[int | str], kind: int = FLOAT) -> str:
        """Returns an input of the model, which is captured in subgraphs."""
        sizes = {"n": 2, "h": 6, "w": 7, "boxes": 5}
        shape = [sizes.get(d, d) if self.root.is_static else d for d in shape]  # type: ignore[call-overload]
        self.root.inputs.setdefault(name, helper.make_tensor_value_info(name, kind, shape))
        return name

    def node(self, op_type: str, inputs: Sequence[str], domain: str = "", **attributes: object) -> str:
        output = self.name(op_type.lower())
        label = "" if self.chance(0.2) else f"node/{output}"
        self.nodes.append(helper.make_node(op_type, inputs, [output], label, domain=domain, **attributes))
        return output

    def constant(self, values: object, dtype: str = "float32") -> str:
        tensor = numpy_helper.from_array(np.array(values, dtype), self.name("constant"))
        if self.is_function or self.chance(0.3):
            return self.node("Constant", [], value=tensor)
        self.tensors.append(tensor)
        return tensor.name

    def uniform(self, *shape: int, scale: float = 0.5) -> str:
        return self.constant(self.rng.uniform(-scale, scale, shape))

    def reduced(self, op_type: str, x: str, axes: list[int]) -> str:
        """Adds a reduction that keeps dimensions, in the form of the opset."""
        if self.opset >= (13 if op_type == "ReduceSum" else 18):
            return self.node(op_type, [x, self.constant(axes, "int64")], keepdims=1)
        return self.node(op_type, [x], axes=axes, keepdims=1)

    def with_axes(self, op_type: str, x: str, axes: list[int]) -> str:
        if self.opset >= 13:
            return self.node(op_type, [x, self.constant(axes, "int64")])
        return self.node(op_type, [x], axes=axes)

    # ---- steps: each returns an image of the same shape ----

    def step(self, x: str, steps: Sequence[Callable[[str], str]]) -> str:
        chosen = steps[int(self.rng.integers(len(steps)))]
        result = chosen(x)
        self.images.append(result)
        return result

    @property
    def simple_steps(self) -> list[Callable[[str], str]]:
        steps = [self.activation, self.sum, self.scaled, self.pooled_mean, self.softmax, self.moved, self.convolution,
                 self.pool, self.written_norm, self.norm]  # fmt: skip
        # ONNX Runtime does not infer types through custom operators in functions.
        return steps if self.is_function else [*steps, self.corner, self.running]

    @property
    def all_steps(self) -> list[Callable[[str], str]]:
        steps = [*self.simple_steps, self.written_norm, self.resized, self.suppressed, self.branches, self.loop,
                 self.scan, self.called, self.called, self.branches]  # fmt: skip
        steps += [self.regions] if self.opset < 22 else []  # ONNX Runtime has no kernel for the newer one
        return [*steps, self.sampled] if self.opset >= 16 else steps

    def activation(self, x: str) -> str:
        op_type = str(self.rng.choice(["Relu", "Sigmoid", "Tanh", "Neg", "Abs", "Clip", "LeakyRelu", "Identity"]))
        if op_type == "Clip":
            return self.node("Clip", [x, self.constant(-0.7), self.constant(0.8)])
        return self.node(op_type, [x], **({"alpha": 0.25} if op_type == "LeakyRelu" else {}))

    def sum(self, x: str) -> str:
        other = self.images[int(self.rng.integers(len(self.images)))] if self.images else x
        mixed = self.node(str(self.rng.choice(["Add", "Sub", "Max", "Min"])), [x, other])
        return self.node("Mul", [mixed, self.constant(0.5)])

    def scaled(self, x: str) -> str:
        shifted = self.node("Mul", [x, self.uniform(1, CHANNELS, 1, 1, scale=1)])
        return self.node("Add", [shifted, self.uniform(CHANNELS, 1, 1)]) if self.chance(0.5) else shifted

    def pooled_mean(self, x: str) -> str:
        op_type = str(self.rng.choice(["ReduceMean", "ReduceMax", "ReduceMin"]))
        axes = [[2, 3], [1], [-1], [1, 2, 3]][int(self.rng.integers(4))]
        return self.node("Sub", [x, self.reduced(op_type, x, axes)])

    def softmax(self, x: str) -> str:
        axis = int(self.rng.choice([1, 2, 3, -1]))
        return self.node("Softmax", [x], **({"axis": axis} if self.chance(0.7) else {}))

    def moved(self, x: str) -> str:
        match int(self.rng.integers(4)):
            case 0:
                there = self.node("Transpose", [x], perm=[0, 2, 3, 1])
                return self.node("Transpose", [self.node("Relu", [there])], perm=[0, 3, 1, 2])
            case 1:
                return self.with_axes("Squeeze", self.with_axes("Unsqueeze", x, [1]), [1])
            case 2:
                shape = self.node("Shape", [x])
                flat = self.node("Reshape", [x, self.constant([0, CHANNELS, -1], "int64")])
                return self.node("Reshape", [self.node("Tanh", [flat]), shape])
            case _:
                halves = [
                    self.node("Slice", [x, *(self.constant([i], "int64") for i in (start, start + 2, 1))])
                    for start in (2, 0)
                ]
                return self.node("Concat", halves, axis=1)

    def convolution(self, x: str) -> str:
        kernel = int(self.rng.choice([1, 3]))
        weight = self.uniform(CHANNELS, CHANNELS, kernel, kernel, scale=0.6 / kernel)
        return self.node("Conv", [x, weight, self.uniform(CHANNELS)], pads=[kernel // 2] * 4)

    def pool(self, x: str) -> str:
        op_type = str(self.rng.choice(["MaxPool", "AveragePool"]))
        return self.node(op_type, [x], kernel_shape=[3, 3], pads=[1, 1, 1, 1])

    def norm(self, x: str) -> str:
        return self.node("InstanceNormalization", [x, self.uniform(CHANNELS), self.uniform(CHANNELS)], epsilon=0.1)

    def written_norm(self, x: str) -> str:
        """Instance or layer normalization in standard operators."""
        axes = [[2, 3], [1], [3], [1, 2, 3]][int(self.rng.integers(4))]
        centred = self.node("Sub", [x, self.reduced("ReduceMean", x, axes)])
        square = (
            self.node("Mul", [centred, centred])
            if self.chance(0.5)
            else self.node("Pow", [centred, self.constant(2.0)])
        )
        root = self.node("Sqrt", [self.node("Add", [self.reduced("ReduceMean", square, axes), self.constant(0.1)])])
        divided = self.node("Div", [centred, root])
        return self.scaled(divided) if self.chance(0.7) else divided

    def corner(self, x: str) -> str:
        return self.node("MMCVCornerPool", [x], "mmcv", mode=int(self.rng.integers(4)))

    def running(self, x: str) -> str:
        values = self.node("cummax", [x], "mmcv", dim=int(self.rng.integers(1, 4)))
        self.nodes[-1].output.append(self.name("indices"))
        return values

    def sampled(self, x: str) -> str:
        grid = self.input("grid", ["n", "h", "w", 2])
        domain, op_type, attributes = "", "GridSample", {"align_corners": 1, "padding_mode": "border"}
        if self.chance(0.3):
            domain, op_type, attributes = (
                "mmcv",
                "grid_sampler",
                {"align_corners": 1, "padding_mode": 1, "interpolation_mode": 0},
            )
        return self.node(op_type, [x, grid], domain, **attributes)

    def resized(self, x: str) -> str:
        """Enlarges by a factor or to a size, and reduces to the old size."""
        coordinates = str(self.rng.choice(["half_pixel", "align_corners", "asymmetric"]))
        mode = str(self.rng.choice(["cubic", "linear", "cubic"]))
        shape, none = self.node("Shape", [x]), self.constant([], "float32")
        if self.chance(0.5):
            larger = self.node("Resize", [x, none, self.constant([1, 1, 1.7, 2])], mode=mode,
                               coordinate_transformation_mode=coordinates, cubic_coeff_a=-0.75)  # fmt: skip
        else:
            size = self.node("Mul", [shape, self.constant([1, 1, 2, 3], "int64")])
            larger = self.node(
                "Resize",
                [x, none, self.constant([], "float32"), size],
                mode=mode,
                coordinate_transformation_mode=coordinates,
            )
        return self.node("Resize", [larger, none, none, shape], mode="linear")

    def regions(self, x: str) -> str:
        boxes = self.input("boxes", [1, "boxes", 4])
        rows = self.with_axes("Squeeze", boxes, [0])
        first = self.node(
            "Slice", [self.node("Shape", [rows]), self.constant([0], "int64"), self.constant([1], "int64")]
        )
        zeros = self.node("ConstantOfShape", [first], value=numpy_helper.from_array(np.zeros(1, np.int64)))
        pooled = self.node(
            "RoiAlign", [x, rows, zeros], output_height=3, output_width=3, sampling_ratio=2, spatial_scale=1.0
        )
        return self.node("Add", [x, self.reduced("ReduceMean", pooled, [0, 2, 3])])

    def suppressed(self, x: str) -> str:
        boxes, scores = self.input("boxes", [1, "boxes", 4]), self.input("scores", [1, 2, "boxes"])
        limits = [self.constant([20], "int64"), self.constant([0.4]), self.constant([0.2])]
        kept = self.node("NonMaxSuppression", [boxes, scores, *limits])
        best = self.node("Gather", [kept, self.constant(2, "int64")], axis=1)
        if self.outer is None:
            self.extra.append(best)
        rows = self.node("Gather", [self.with_axes("Squeeze", boxes, [0]), best], axis=0)
        mean = self.reduced("ReduceMean", rows, [0, 1])
        return self.node("Add", [x, self.node("Mul", [mean, self.constant(0.1)])])

    # ---- subgraphs and functions ----

    def inner(self, is_function: bool = False) -> _Graph:
        return _Graph(self.rng, self.opset, outer=self, is_function=is_function, counter=self.counter)

    def simple(self, graph: _Graph, x: str) -> str:
        for _ in range(int(self.rng.integers(1, 4))):
            x = graph.step(x, graph.simple_steps)
        return x

    def branches(self, x: str) -> str:
        if self.chance(0.5):
            condition = self.input("flag", [], TensorProto.BOOL)
        else:
            height = self.node("Gather", [self.node("Shape", [x]), self.constant(2, "int64")])
            condition = self.node("Greater", [height, self.constant(5, "int64")])
        parts = {}
        for name in ("then_branch", "else_branch"):
            graph = self.inner()
            graph.images = list(self.images)  # of this graph, which branches may read
            output = self.simple(graph, x)
            if self.chance(0.3) and self.outer is None:
                output = graph.branches(output)
            info = onnx.ValueInfoProto(name=output)
            parts[name] = helper.make_graph(graph.nodes, name, [], [info], graph.tensors)
        return self.node("If", [condition], **parts)

    def loop(self, x: str) -> str:
        graph = self.inner()
        iteration, keep, carried = (self.name(kind) for kind in ("iteration", "keep", "carried"))
        output = self.simple(graph, carried)
        on = graph.node("Identity", [keep])
        inputs = [
            helper.make_tensor_value_info(iteration, TensorProto.INT64, []),
            helper.make_tensor_value_info(keep, TensorProto.BOOL, []),
            helper.make_tensor_value_info(carried, FLOAT, None),
        ]
        outputs = [
            helper.make_tensor_value_info(on, TensorProto.BOOL, []),
            helper.make_tensor_value_info(output, FLOAT, None),
        ]
        body = helper.make_graph(graph.nodes, "body", inputs, outputs, graph.tensors)
        return self.node("Loop", [self.constant(2, "int64"), self.constant(True, "bool"), x], body=body)

    def scan(self, x: str) -> str:
        """A running mean of the channels, at every position."""
        state = self.with_axes("Squeeze", self.reduced("ReduceMean", x, [1]), [1])
        graph = self.inner()
        before, slice_ = self.name("before"), self.name("slice")
        after = graph.node("Mul", [graph.node("Add", [before, slice_]), graph.constant(0.5)])
        result = graph.node("Tanh", [after])
        inputs, outputs = (
            [helper.make_tensor_value_info(name, FLOAT, [None] * 3) for name in names]
            for names in ((before, slice_), (after, result))
        )
        body = helper.make_graph(graph.nodes, "scanned", inputs, outputs, graph.tensors)
        last, stacked = self.name("last"), self.name("stacked")
        self.nodes.append(helper.make_node("Scan", [state, x], [last, stacked], f"node/{last}", body=body, num_scan_inputs=1,
                                           scan_input_axes=[1], scan_output_axes=[1]))  # fmt: skip
        return stacked

    def called(self, x: str) -> str:
        """A call of a new function, or of one that the model has."""
        functions = self.root.functions
        if not functions or self.chance(0.6):
            graph = self.inner(is_function=True)
            output = self.simple(graph, "input")
            leaky = graph.node("LeakyRelu", [output])
            graph.nodes[-1].attribute.append(
                onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
            )
            if functions and self.chance(0.3):
                leaky = graph.node(functions[0].name, [leaky], "own", slope=0.5)
            opsets = [helper.make_opsetid(*of) for of in (("", self.opset), ("mmcv", 1), ("own", 1))]
            functions.append(
                helper.make_function("own", self.name("Function"), ["input"], [leaky], graph.nodes, opsets, ["slope"])
            )
        function = functions[int(self.rng.integers(len(functions)))]
        return self.node(function.name, [x], "own", slope=float(self.rng.choice([0.1, 0.5])))

    # ---- the model ----

    def finish(self, result: str) -> onnx.ModelProto:
        output = helper.make_node("Identity", [result], ["y"], "last")
        outputs = [helper.make_tensor_value_info("y", FLOAT, None)]
        outputs += [helper.make_tensor_value_info(name, TensorProto.INT64, None) for name in self.extra]
        graph = helper.make_graph([*self.nodes, output], "random", list(self.inputs.values()), outputs, self.tensors)
        used = {node.domain for node in self.nodes} | {node.domain for f in self.functions for node in f.node}
        domains = [("", self.opset), ("mmcv", 1), *([("own", 1)] if "own" in used else [])]
        opsets = [helper.make_opsetid(*of) for of in domains]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8, functions=self.functions)


# ---- checks ----------------------------------------------------------------------------------------------------------


def run(
    model: Path | onnx.ModelProto,
    feeds: dict[str, np.ndarray],
    with_polyop: bool = True,
    *,
    as_written: bool = False,
    by_provider: bool = False,
) -> list[np.ndarray]:
    """as_written: without ONNX Runtime's own optimization. by_provider: polyop's execution provider computes all nodes
    that it can, also where ONNX Runtime would be faster.
    """
    options = ort.SessionOptions()
    if as_written:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    if with_polyop and not by_provider:
        options.register_custom_ops_library(polyop.get_onnxruntime_op_path())
    source = str(model) if isinstance(model, Path) else model.SerializeToString()
    if by_provider:
        options.add_provider_for_devices(polyop.register(), {"only_faster": "0"})
    providers = None if by_provider else ["CPUExecutionProvider"]
    session = ort.InferenceSession(source, options, providers, enable_fallback=0)
    return session.run(None, {i.name: feeds[i.name] for i in session.get_inputs()})


def assert_close(got: Sequence[np.ndarray], want: Sequence[np.ndarray], tolerance: float, what: str) -> None:
    for g, w in zip(got, want, strict=True):
        assert g.dtype == w.dtype, what
        scale = max(1.0, float(np.abs(w).max(initial=0))) if w.dtype.kind == "f" else 0.0
        np.testing.assert_allclose(g, w, rtol=0, atol=tolerance * scale, err_msg=what)


def check(model: RandomModel, folder: Path) -> None:
    """Rewrites the model by `optimize`, `portable` and `convert --fp16`, and runs it by polyop's execution provider.
    Compares results at three sizes.
    """
    before = folder / "before.onnx"
    model.save(before)
    sizes = range(1 if all(d.dim_value for i in model.proto.graph.input for d in i.type.tensor_type.shape.dim) else 3)
    feeds = [model.feeds(size) for size in sizes]
    want = [run(before, feed) for feed in feeds]

    # ONNX Runtime 1.31 folds an If whose condition is constant. With another If in the branch, functions that both call
    # give wrong results then; without its optimization they are right.
    folded = len(sizes) == 1 and any(inner.op_type == "If" for node in _nodes(model.proto) for inner in _inner(node))

    def compare(after: Path | onnx.ModelProto, with_polyop: bool, tolerance: float, what: str) -> None:
        for size in sizes:
            got = run(after, feeds[size], with_polyop, as_written=folded and not with_polyop)
            assert_close(got, want[size], tolerance, f"{what}, size {size}")

    for size in sizes:
        assert_close(run(before, feeds[size], by_provider=True), want[size], 1e-3, f"provider, size {size}")
    after = folder / "after.onnx"
    report = optimize(before, after, all=True, threads=1)
    compare(after, True, 1e-3, "optimize")
    plain = {node.domain for node in _nodes(model.proto)} <= {"", "own"}
    if plain and not report.needs_polyop:
        compare(after, False, 1e-3, "optimize, without polyop")
    for inlined in (False, True):
        given = [record["given"] for record in convert_file(before, after, inlined=inlined)["nodes"]]
        compare(after, not all(given), 1e-3, f"portable, inlined={inlined}")
    compare(after, True, 1e-3, "portable, with polyop")
    compare(to_fp16(onnx.load(before)), True, 0.05, "fp16")


def _nodes(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    return list(nodes_of(model))


def _inner(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    return [inner for graph in subgraphs_of(node) for inner in nodes_in(graph.node)]


def failing_steps(seed: int) -> int:
    """Returns the smallest number of steps of a seed whose model fails, or 0 if all pass."""
    for steps in range(1, random_model(seed).steps + 1):
        with tempfile.TemporaryDirectory() as folder:
            try:
                check(random_model(seed, steps), Path(folder))
            except Exception:
                return steps
    return 0


def main() -> int:
    seconds, seed = float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time()) % 10**6 * 1000
    first, end = seed, time.monotonic() + seconds
    while time.monotonic() < end:
        with tempfile.TemporaryDirectory() as folder:
            try:
                check(random_model(seed), Path(folder))
            except Exception as error:
                steps = failing_steps(seed)
                print(f"random_model({seed}, {steps}) fails: {type(error).__name__}: {error}")
                print(onnx.printer.to_text(random_model(seed, steps or None).proto))
                return 1
        seed += 1
    print(f"{seed - first} random models from seed {first} pass")
    return 0


if __name__ == "__main__":
    sys.exit(main())
