# SPDX-License-Identifier: Apache-2.0
"""Maps a PyTorch operator by hand to an ONNX operator, for either exporter: asinh -> Asinh. It does not use polyop. Try
this before you write an operator.

python examples/asinh/main.py [FOLDER]     writes the models into FOLDER
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import torch
from onnxscript import opset18
from torch import Tensor, nn
from torch.onnx.symbolic_helper import parse_args


class Net(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.asinh(x) + 1


@parse_args("v")
def asinh_symbolic(g, x):
    return g.op("Asinh", x)


def by_torchscript(path: Path, x: Tensor) -> None:
    """Registers the symbolic function of the operator from opset 9, for the whole process."""
    torch.onnx.register_custom_op_symbolic("aten::asinh", asinh_symbolic, 9)
    torch.onnx.export(Net().eval(), (x,), path, dynamo=False, opset_version=17, input_names=["x"])


def by_dynamo(path: Path, x: Tensor) -> None:
    """Passes a table to one export: from the overload to a function of ONNX operators."""
    table = {torch.ops.aten.asinh.default: lambda x: opset18.Asinh(x)}
    torch.onnx.export(
        Net().eval(), (x,), path, dynamo=True, custom_translation_table=table, input_names=["x"], verbose=False
    )


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    x = torch.linspace(-50, 50, 101).reshape(1, 101)
    for name, export in {"torchscript": by_torchscript, "dynamo": by_dynamo}.items():
        path = folder / f"asinh_{name}.onnx"
        export(path, x)
        nodes = [n.op_type for n in onnx.load(path).graph.node]
        assert "Asinh" in nodes, nodes
        (got,) = ort.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": x.numpy()})
        np.testing.assert_allclose(got, Net()(x).numpy(), rtol=1e-5, atol=1e-6)
        print(f"{name:12} {' '.join(nodes):24} equals PyTorch")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
