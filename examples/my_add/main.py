# SPDX-License-Identifier: Apache-2.0
"""2a + b as a PyTorch extension and as an operator of polyop, with a gradient, exported as Mul + Add and as one custom
node. All give the same results in PyTorch, ONNX Runtime and OpenVINO.

python examples/my_add/main.py [FOLDER]     builds the extension and writes the models into FOLDER
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from torch import Tensor, nn

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from runtimes import BOTH, RUNTIMES  # noqa: E402

import polyop.functional  # noqa: E402, F401 (torch.ops.polyop)


def build_extension(folder: Path) -> None:
    """Builds the extension by setuptools and loads it: torch.ops.my_extension.my_add."""
    subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--build-lib", folder, "--build-temp", folder / "objects"],
        cwd=HERE,
        check=True,
    )
    (library,) = folder.glob("my_extension*.so")
    torch.ops.load_library(library)


class MyAddDecomposed(torch.autograd.Function):
    """The extension with a gradient; an exporter writes it as standard nodes."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        return torch.ops.my_extension.my_add(a, b)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        return 2 * gradient, gradient

    @staticmethod
    def symbolic(g: Any, a: Any, b: Any) -> Any:
        two = g.op("Constant", value_t=torch.tensor(2.0))
        return g.op("Add", g.op("Mul", a, two), b)


class MyAddNode(MyAddDecomposed):
    """Like MyAddDecomposed, but exported as the node that polyop provides."""

    @staticmethod
    def symbolic(g: Any, a: Any, b: Any) -> Any:
        return g.op("custom::my_add", a, b)


class Net(nn.Module):
    def __init__(self, add) -> None:
        super().__init__()
        self.add = add

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return self.add(a, b).relu()


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    build_extension(folder)
    polyop_add = torch.ops.polyop.my_add  # from ops/example/my_add/, for all runtimes
    a, b = torch.randn(4, 5), torch.randn(4, 5)
    want = (2 * a + b).relu()

    torch.autograd.gradcheck(MyAddNode.apply, (a.double().requires_grad_(), b.double().requires_grad_()))
    ways = {
        "decomposed": (MyAddDecomposed.apply, False),
        "one node": (MyAddNode.apply, False),
        "polyop, TorchScript exporter": (polyop_add, False),
        "polyop, dynamo exporter": (polyop_add, True),
    }
    for name, (add, dynamo) in ways.items():
        path = folder / f"{name.replace(', ', '_').replace(' ', '_')}.onnx"
        given = {} if dynamo else {"custom_opsets": {"custom": 1}}
        torch.onnx.export(Net(add).eval(), (a, b), path, dynamo=dynamo, input_names=["a", "b"], verbose=False, **given)
        nodes = [f"{n.domain}::{n.op_type}".removeprefix("::") for n in onnx.load(path).graph.node]
        np.testing.assert_allclose(Net(add)(a, b).numpy(), want.numpy(), rtol=1e-6)
        for load in RUNTIMES.values():
            (got,) = load(path)({"a": a.numpy(), "b": b.numpy()})
            np.testing.assert_allclose(got, want.numpy(), rtol=1e-6, atol=1e-6)
        print(f"{name:30} {' '.join(nodes):36} equals 2a + b in {BOTH}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]).resolve())
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
