# SPDX-License-Identifier: Apache-2.0
"""Sparse convolutions, compared with torch's dense ones at the voxels."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import polyop
from polyop import sparse
from polyop.compat import mmcv

DOUBLE = torch.float64


def voxels(shape: tuple[int, ...], count: int, batch: int = 2, seed: int = 0) -> Tensor:
    """Returns distinct voxels in random order."""
    rng = np.random.default_rng(seed)
    cells = rng.permutation(batch * int(np.prod(shape)))[:count]
    return torch.from_numpy(np.stack(np.unravel_index(cells, (batch, *shape)), 1).astype(np.int32))


def tensor(
    shape: tuple[int, ...], count: int, channels: int, seed: int = 0, dtype: torch.dtype = DOUBLE
) -> sparse.SparseConvTensor:
    torch.manual_seed(seed)
    features = torch.randn(count, channels, dtype=dtype, requires_grad=True)
    return sparse.SparseConvTensor(features, voxels(shape, count, seed=seed), shape, 2)


def weight_of(layer: nn.Module) -> Tensor:
    """Returns the weight in the layout of torch's dense convolutions: [out, in, *kernel]."""
    return layer.weight.movedim(-1, 1)


def occupied(x: sparse.SparseConvTensor) -> Tensor:
    """Returns [B, 1, *shape]: 1 at voxels."""
    return x.replace_feature(torch.ones(len(x.features), 1, dtype=x.features.dtype)).dense()


def assert_like_dense(out: sparse.SparseConvTensor, dense: Tensor, bias: Tensor | None, layer: nn.Module) -> None:
    """Compares outputs, and gradients of the inputs and of the layer's parameters."""
    where = occupied(out)
    if bias is not None:
        dense = dense + bias.view(1, -1, *[1] * (dense.dim() - 2))
    torch.testing.assert_close(out.dense(), dense * where)
    leaves = [t for t in (*layer.parameters(),) if t.requires_grad]
    weigh = torch.randn_like(dense)
    ours = torch.autograd.grad((out.dense() * weigh).sum(), leaves, retain_graph=True)
    theirs = torch.autograd.grad((dense * where * weigh).sum(), leaves, retain_graph=True)
    for got, want in zip(ours, theirs, strict=True):
        torch.testing.assert_close(got, want)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("size", "dilation"), [(3, 1), ((1, 3, 5), 1), (3, 2)])
def test_submanifold_convolution(size: int | tuple[int, ...], dilation: int, bias: bool) -> None:
    x = tensor((5, 6, 7), 60, 4)
    layer = sparse.SubMConv3d(4, 3, size, stride=2, padding=7, dilation=dilation, bias=bias).double()
    out = layer(x)
    assert out.indices is x.indices
    padding = tuple((k // 2) * dilation for k in layer.kernel_size)
    dense = F.conv3d(x.dense(), weight_of(layer), None, 1, padding, dilation)
    assert_like_dense(out, dense, layer.bias, layer)
    (got,) = torch.autograd.grad(out.features.square().sum(), x.features, retain_graph=True)
    picked = (dense if layer.bias is None else dense + layer.bias.view(1, -1, 1, 1, 1)) * occupied(x)
    (want,) = torch.autograd.grad(picked.square().sum(), x.features)
    torch.testing.assert_close(got, want)


@pytest.mark.parametrize(
    ("size", "stride", "padding", "dilation"),
    [(3, 2, 1, 1), (2, 2, 0, 1), ((3, 1, 2), (2, 1, 3), (0, 1, 1), (1, 2, 2))],
)
def test_convolution(size: object, stride: object, padding: object, dilation: object) -> None:
    x = tensor((7, 6, 8), 40, 4, seed=1)
    layer = sparse.SparseConv3d(4, 5, size, stride, padding, dilation).double()
    out = layer(x)
    dense = F.conv3d(x.dense(), weight_of(layer), None, stride, padding, dilation)
    assert tuple(dense.shape[2:]) == tuple(out.spatial_shape)
    assert_like_dense(out, dense, layer.bias, layer)
    # There is an output wherever a voxel contributes, in ascending order.
    fed = F.conv3d(occupied(x), torch.ones(1, 1, *layer.kernel_size, dtype=DOUBLE), None, stride, padding, dilation)
    torch.testing.assert_close(out.indices.long(), fed[:, 0].nonzero())


def test_transposed_convolution() -> None:
    x = tensor((3, 4, 3), 20, 4, seed=2)
    layer = sparse.SparseConvTranspose3d(4, 3, 3, 2, 1, output_padding=1).double()
    out = layer(x)
    dense = F.conv_transpose3d(x.dense(), weight_of(layer).transpose(0, 1), None, 2, 1, 1)
    assert tuple(dense.shape[2:]) == tuple(out.spatial_shape)
    assert_like_dense(out, dense, layer.bias, layer)


def test_two_dimensions() -> None:
    x = tensor((9, 8), 40, 3, seed=3)
    layer = sparse.SparseConv2d(3, 4, 3, 2, 1).double()
    assert_like_dense(layer(x), F.conv2d(x.dense(), weight_of(layer), None, 2, 1), layer.bias, layer)
    same = sparse.SubMConv2d(3, 4, 3).double()
    assert_like_dense(same(x), F.conv2d(x.dense(), weight_of(same), None, 1, 1), same.bias, same)


def test_inverse_convolution_restores_the_inputs_voxels() -> None:
    x = tensor((6, 7, 5), 40, 4, seed=4)
    down = sparse.SparseConv3d(4, 6, 3, 2, 1, indice_key="down").double()
    up = sparse.SparseInverseConv3d(6, 3, 3, "down").double()
    middle = down(x)
    out = up(middle)
    assert out.indices is x.indices
    assert out.spatial_shape == x.spatial_shape
    # An entry of the filter connects the same pairs in both directions: this is the transposed convolution.
    outputs = [(n - 1) * 2 + 1 for n in middle.spatial_shape]
    extra = [n - o for n, o in zip(x.spatial_shape, outputs, strict=True)]
    dense = F.conv_transpose3d(middle.dense(), weight_of(up).transpose(0, 1), None, 2, 1, extra)
    assert_like_dense(out, dense, up.bias, up)
    pairs = middle.indice_dict["down"].inverse()
    bits = sum((pairs.pair_fwd[f] >= 0).long() << f for f in range(27))
    torch.testing.assert_close(pairs.pair_mask[:, 0].long(), bits)


def test_max_pool() -> None:
    x = tensor((6, 6, 7), 50, 3, seed=5)
    out = sparse.SparseMaxPool3d(3, 2, 1)(x)
    lowest = torch.where(occupied(x) > 0, x.dense(), -torch.inf)
    dense = F.max_pool3d(lowest, 3, 2, 1)
    torch.testing.assert_close(out.dense(), torch.where(occupied(out) > 0, dense, 0))
    (got,) = torch.autograd.grad(out.features.square().sum(), x.features, retain_graph=True)
    (want,) = torch.autograd.grad(torch.where(occupied(out) > 0, dense, 0).square().sum(), x.features)
    torch.testing.assert_close(got, want)


def test_max_pool_of_spconv_and_of_mmcv() -> None:
    """spconv's default stride is the kernel's size; MMCV's is 1, and its maxima start at 0."""
    cells = torch.tensor([[0, 0, 0, 0], [0, 0, 0, 1]], dtype=torch.int32)
    x = sparse.SparseConvTensor(torch.tensor([[-1.0], [-2.0]]), cells, (2, 2, 4), 1)
    pool = sparse.SparseMaxPool3d(2)
    assert (pool.stride, sparse.SparseMaxPool2d(3).stride, sparse.SparseMaxPool3d(2, 1).stride) == (
        (2, 2, 2),
        (3, 3),
        (1, 1, 1),
    )
    assert pool(x).features.tolist() == [[-1.0]]
    assert mmcv.SparseMaxPool2d(3).stride == (1, 1)
    out = mmcv.SparseMaxPool3d(2)(x)
    assert out.features.tolist() == [[0.0], [0.0]]
    assert out.indices.tolist() == cells.tolist()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_types(dtype: torch.dtype) -> None:
    x = tensor((5, 6, 7), 60, 8, dtype=dtype)
    layer = sparse.SubMConv3d(8, 16, 3).to(dtype)
    out = layer(x)
    assert out.features.dtype == dtype
    wide = F.conv3d(x.dense().double(), weight_of(layer).double(), layer.bias.double(), 1, 1) * occupied(x)
    eps = torch.finfo(dtype).eps
    torch.testing.assert_close(out.dense().double(), wide, rtol=4 * eps, atol=4 * eps)
    out.features.float().sum().backward()
    assert x.features.grad.dtype == dtype


def test_pairs_are_computed_once_per_key() -> None:
    x = tensor((5, 6, 7), 30, 4)
    net = sparse.SparseSequential(
        sparse.SubMConv3d(4, 4, 3, indice_key="a"),
        nn.BatchNorm1d(4),
        nn.ReLU(),
        sparse.SubMConv3d(4, 2, 3, indice_key="a"),
    ).double()
    net.eval()
    out = net(x)
    assert list(x.indice_dict) == ["a"]
    assert len(net) == 4
    assert isinstance(net[1], nn.BatchNorm1d)
    alone = net[0](sparse.SparseConvTensor(x.features, x.indices, x.spatial_shape, 2))
    want = net[3](alone.replace_feature(net[2](net[1](alone.features))))
    torch.testing.assert_close(out.features, want.features)
    named = sparse.SparseSequential(OrderedDict(first=net[0], second=net[3]))
    assert [name for name, _ in named.named_children()] == ["first", "second"]


def test_rejects_the_key_of_another_layer() -> None:
    x = tensor((5, 6, 7), 30, 4)
    sparse.SubMConv3d(4, 4, 3, indice_key="a").double()(x)
    with pytest.raises(ValueError, match="indice_key 'a': expected"):
        sparse.SubMConv3d(4, 4, 5, indice_key="a").double()(x)
    with pytest.raises(ValueError, match="indice_key: expected one of an earlier layer, got 'b'"):
        sparse.SparseInverseConv3d(4, 4, 3, "b")(x)
    with pytest.raises(ValueError, match=r"got \(3, 3, 3\)"):
        sparse.SparseInverseConv3d(4, 4, 2, "a")(x)


def test_rejects_impossible_arguments() -> None:
    with pytest.raises(ValueError, match="groups: expected 1, got 2"):
        sparse.SparseConv3d(4, 4, 3, groups=2)
    with pytest.raises(ValueError, match="expected odd numbers"):
        sparse.SubMConv3d(4, 4, 2)
    with pytest.raises(ValueError, match=r"expected shape \[N, 4\]"):
        sparse.SparseConvTensor(torch.rand(3, 2), torch.zeros(3, 3), (4, 4, 4), 1)
    with pytest.raises(ValueError, match="expected voxels with 3 dimensions, got 2"):
        sparse.SparseConv3d(3, 4, 3)(tensor((9, 8), 40, 3))
    outside = torch.tensor([[0, 4, 0, 0]], dtype=torch.int32)
    x = sparse.SparseConvTensor(torch.rand(1, 2), outside, (4, 4, 4), 1)
    with pytest.raises(RuntimeError, match=r"'indices'\[0\]: expected a cell .*, got \(0, 4, 0, 0\)"):
        sparse.SparseConv3d(2, 4, 3)(x)


def test_dense_and_back() -> None:
    x = tensor((3, 4, 5), 20, 2)
    back = sparse.SparseConvTensor.from_dense(x.dense(channels_first=False))
    torch.testing.assert_close(back.dense(), x.dense())
    assert back.spatial_shape == [3, 4, 5]


def test_no_voxels() -> None:
    x = sparse.SparseConvTensor(torch.rand(0, 4), torch.zeros(0, 4, dtype=torch.int32), (4, 4, 4), 1)
    out = sparse.SparseSequential(sparse.SubMConv3d(4, 4, 3), sparse.SparseConv3d(4, 2, 3, 2, 1))(x)
    assert out.features.shape == (0, 2)
    assert out.dense().shape == (1, 2, 2, 2, 2)


def test_lists_of_pairs_give_the_same_result() -> None:
    x = tensor((5, 6, 7), 60, 4, dtype=torch.float32)
    filters = torch.randn(3, 3, 3, 3, 4)
    for given in ({"subm": True}, {"stride": (2, 2, 2), "padding": (1, 1, 1)}):
        call = (x.indices, 2, x.spatial_shape, (3, 3, 3))
        cells, pairs, counts, number = polyop.get_indice_pairs(*call, **given)
        got = polyop.indice_conv(x.features, filters, pairs, counts, number, "subm" in given)
        want_cells, *table, want_number = polyop.get_indice_pairs_implicit_gemm(*call, **given)
        torch.testing.assert_close(cells, want_cells)
        assert number == want_number == len(cells)
        torch.testing.assert_close(got, polyop.implicit_gemm(x.features, filters, *table))


def test_mmcv_keeps_its_weight_layout() -> None:
    x = tensor((5, 6, 7), 60, 4)
    layer = mmcv.SubMConv3d(4, 3, 3).double()
    assert layer.weight.shape == (3, 3, 3, 4, 3)
    dense = F.conv3d(x.dense(), layer.weight.permute(4, 3, 0, 1, 2), None, 1, 1)
    assert_like_dense(layer(x), dense, layer.bias, layer)


@pytest.mark.parametrize("act", ["none", "relu", "sigmoid", "leaky_relu"])
def test_gradients_of_the_products(act: str) -> None:
    x = tensor((3, 3, 3), 12, 2)
    table = polyop.get_indice_pairs_implicit_gemm(x.indices, 2, x.spatial_shape, (3, 3, 1), subm=True)[1:4]
    filters = torch.randn(3, 3, 3, 1, 2, dtype=DOUBLE, requires_grad=True)
    bias = torch.randn(3, dtype=DOUBLE, requires_grad=True)

    def products(features: Tensor, weight: Tensor, shift: Tensor) -> Tensor:
        return polyop.implicit_gemm(features, weight, *table, shift, act_type=act, act_alpha=0.25)

    assert torch.autograd.gradcheck(products, (x.features, filters, bias))


# ---- export --------------------------------------------------------------------------------------------


class Net(nn.Module):
    """A residual block, a strided convolution, pooling, and the way back up."""

    def __init__(self) -> None:
        super().__init__()
        self.first = sparse.SparseSequential(
            sparse.SubMConv3d(4, 8, 3, indice_key="a"), nn.ReLU(), sparse.SubMConv3d(8, 4, 3, indice_key="a")
        )
        self.down = sparse.SparseConv3d(4, 8, 3, 2, 1, indice_key="down")
        self.middle = sparse.SubMConv3d(8, 8, 3)
        self.up = sparse.SparseInverseConv3d(8, 6, 3, "down")
        self.pool = sparse.SparseMaxPool3d(2, 2)

    def forward(self, features: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
        x = sparse.SparseConvTensor(features, indices, (6, 8, 8), 2)
        x = x.replace_feature(self.first(x).features + x.features)
        return self.up(self.middle(self.down(x))).features, self.pool(x).dense()


@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
def test_both_exporters_write_the_nodes(exporter: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    net, file = Net().eval(), tmp_path / "net.onnx"
    indices = voxels((6, 8, 8), 70)
    dynamic = {"features": {0: "n"}, "indices": {0: "n"}}
    done = polyop.export(
        net, (torch.randn(70, 4), indices), file, exporter=exporter, dynamic=dynamic, domain="autoware", verbose=False
    )
    assert done.nodes["autoware::GetIndicePairsImplicitGemm"] == 4
    assert done.nodes["autoware::ImplicitGemm"] == 5
    node = next(n for n in onnx.load(file).graph.node if n.op_type == "GetIndicePairsImplicitGemm")
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    assert {"subm": 1, "batch_size": 2, "spatial_shape": [6, 8, 8], "algo": 1}.items() <= attributes.items()
    options = ort.SessionOptions()
    options.register_custom_ops_library(polyop.get_onnxruntime_op_path())
    session = ort.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    features, other = torch.randn(31, 4), voxels((6, 8, 8), 31, seed=8)  # another number of voxels
    got = session.run(None, {"features": features.numpy(), "indices": other.numpy()})
    with torch.no_grad():
        for g, want in zip(got, net(features, other), strict=True):
            np.testing.assert_allclose(g, want.numpy(), rtol=1e-4, atol=1e-5)


def test_torch_compile_has_no_graph_breaks() -> None:
    net = Net().eval()
    features, indices = torch.randn(70, 4), voxels((6, 8, 8), 70)
    compiled = torch.compile(net, backend="aot_eager", fullgraph=True)
    with torch.no_grad():
        for got, want in zip(compiled(features, indices), net(features, indices), strict=True):
            torch.testing.assert_close(got, want)
