# SPDX-License-Identifier: Apache-2.0
"""Times the creation of a session of some 1,600 nodes that polyop leaves to ONNX Runtime: plain, with polyop's
operators, and with its execution provider.

python bench/session_creation.py [--rounds 25] [--library FILE]

The models are an exported network of attention, norms and convolutions, and a chain of nodes of one input, for which
ONNX Runtime takes least. Sessions are interleaved. Prints minima and medians of the calling thread's processor time in
milliseconds, and their ratios to the plain session's. With --library, operators and provider are those of another
build's library.
"""

from __future__ import annotations

import argparse
import gc
import io
import statistics
import time
import warnings
from collections.abc import Callable

import onnx
import onnxruntime as ort
import torch
from onnx import TensorProto, helper
from torch import Tensor, nn

import polyop


class Network(nn.Module):
    def __init__(self, layers: int = 12, convolutions: int = 70) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True) for _ in range(layers))
        self.convolutions = nn.ModuleList(
            nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.SiLU()) for _ in range(convolutions)
        )

    def forward(self, tokens: Tensor, image: Tensor) -> tuple[Tensor, Tensor]:
        for layer in self.layers:
            tokens = layer(tokens)
        for convolution in self.convolutions:
            image = image + convolution(image)
        return tokens, image


def exported() -> bytes:
    torch.backends.mha.set_fastpath_enabled(False)  # which cannot be exported
    given, file = (torch.randn(2, 10, 32), torch.randn(1, 4, 16, 16)), io.BytesIO()
    names = ["tokens", "image"]
    with warnings.catch_warnings(action="ignore"):
        torch.onnx.export(
            Network().eval(), given, file, opset_version=17, dynamo=False, input_names=names,
            dynamic_axes={name: {0: "batch"} for name in names},
        )  # fmt: skip
    return file.getvalue()


def chain(nodes: int = 1600) -> bytes:
    kinds = ("Abs", "Relu", "Neg", "Sigmoid")
    listed = [helper.make_node(kinds[i % len(kinds)], [f"t{i}"], [f"t{i + 1}"]) for i in range(nodes)]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in ("t0", f"t{nodes}")]
    graph = helper.make_graph(listed, "g", ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9).SerializeToString()


Maker = Callable[[bytes], ort.InferenceSession]


def makers(library: str | None) -> dict[str, Maker]:
    def create(proto: bytes, options: ort.SessionOptions) -> ort.InferenceSession:
        options.intra_op_num_threads = 1
        return ort.InferenceSession(proto, options, enable_fallback=0)

    def plain(proto: bytes) -> ort.InferenceSession:
        return create(proto, ort.SessionOptions())

    def operators(proto: bytes) -> ort.InferenceSession:
        options = ort.SessionOptions()
        options.register_custom_ops_library(library or polyop.get_onnxruntime_op_path())
        return create(proto, options)

    def provider(proto: bytes) -> ort.InferenceSession:
        options = ort.SessionOptions()
        options.add_provider_for_devices(devices, {})
        return create(proto, options)

    if library is None:
        devices = polyop.register()
    else:
        ort.register_execution_provider_library("polyop", library)
        devices = [d for d in ort.get_ep_devices() if d.ep_name == "PolyopExecutionProvider"]
    return {"plain": plain, "operators": operators, "provider": provider}


def measure(proto: bytes, kinds: dict[str, Maker], rounds: int) -> dict[str, list[float]]:
    """Returns the milliseconds of each kind of session."""
    taken: dict[str, list[float]] = {kind: [] for kind in kinds}
    for make in kinds.values():  # libraries are loaded once
        make(proto)
    for _ in range(rounds):
        for kind, make in kinds.items():
            gc.collect()
            begin = time.thread_time()
            session = make(proto)
            taken[kind].append(1e3 * (time.thread_time() - begin))
            del session
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--library")
    given = parser.parse_args()
    kinds = makers(given.library)
    for name, proto in (("exported network", exported()), ("chain", chain())):
        nodes = [node for node in onnx.load_from_string(proto).graph.node if node.op_type != "Constant"]
        print(f"{name}, {len(nodes)} nodes without constants")
        taken = measure(proto, kinds, given.rounds)
        for kind, times in taken.items():
            least, median = min(times), statistics.median(times)
            ratios = least / min(taken["plain"]), median / statistics.median(taken["plain"])
            print(f"  {kind:10} {least:7.1f} {ratios[0]:5.2f}x   {median:7.1f} {ratios[1]:5.2f}x", flush=True)


if __name__ == "__main__":
    main()
