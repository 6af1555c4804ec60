# SPDX-License-Identifier: Apache-2.0
"""polyop.compat.spconv: equal to spconv's CPU build and to dense convolutions; models of mmdet3d and OpenPCDet."""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import polyop
from polyop.compat import cumm, spconv
from polyop.compat.spconv import pytorch as sp
from polyop.compat.spconv import utils
from polyop.compat.spconv.pytorch.utils import PointToVoxel, gather_features_by_pc_voxel_id
from tests.support.processes import ROOT, environment, run

DOUBLE = torch.float64
THEIRS = ROOT / ".deps" / "spconv"


def cells(shape: tuple[int, ...], count: int, batch: int = 2, seed: int = 0) -> Tensor:
    """Returns distinct voxels in random order."""
    chosen = np.random.default_rng(seed).permutation(batch * int(np.prod(shape)))[:count]
    return torch.from_numpy(np.stack(np.unravel_index(chosen, (batch, *shape)), 1).astype(np.int32))


def scene(shape: tuple[int, ...], count: int, channels: int, seed: int = 0) -> sp.SparseConvTensor:
    torch.manual_seed(seed)
    features = torch.randn(count, channels, dtype=DOUBLE, requires_grad=True)
    return sp.SparseConvTensor(features, cells(shape, count, seed=seed), shape, 2)


def occupied(x: sp.SparseConvTensor) -> Tensor:
    return x.replace_feature(torch.ones(len(x.features), 1, dtype=DOUBLE)).dense()


# ---- spconv's CPU build --------------------------------------------------------------------------------

COMPARISON = """
import json, types
import numpy as np
import torch
torch.cuda.current_stream = lambda: types.SimpleNamespace(cuda_stream=0)  # spconv asks for one on the CPU, too
import spconv.pytorch as theirs
import spconv.pytorch.functional
from cumm import tensorview as tv
from spconv.pytorch.utils import PointToVoxel as TheirVoxels
from spconv.utils import Point2VoxelCPU3d
from polyop.compat.spconv import pytorch as ours, utils
from polyop.compat.spconv.pytorch.utils import PointToVoxel
from tests.compat.test_spconv import cells

assert "polyop" not in theirs.__file__ and theirs.ConvAlgo.Native
torch.set_num_threads(1)  # spconv's sums differ from run to run with more


def by_voxel(x):
    '''Rows in the order of voxels, which is another one in spconv.'''
    order = np.lexsort(x.indices.numpy().T[::-1])
    return x.indices[order], x.features[order]


def compare(name, build, shape, channels, count=40, exact_order=False):
    torch.manual_seed(0)
    indices = cells(shape, count, seed=3)
    values = torch.randn(count, channels)
    nets = [build(library) for library in (theirs, ours)]
    nets[1].load_state_dict(nets[0].state_dict())
    results = []
    for library, net in zip((theirs, ours), nets):
        features = values.clone().requires_grad_()
        out = net(library.SparseConvTensor(features, indices, list(shape), 2))
        found, rows = by_voxel(out)
        torch.manual_seed(1)
        rows.backward(torch.randn_like(rows))
        results.append((out, found, rows, features.grad, [p.grad for p in net.parameters()]))
    (a, ai, ar, ag, ap), (b, bi, br, bg, bp) = results
    assert list(a.spatial_shape) == list(b.spatial_shape), (name, a.spatial_shape, b.spatial_shape)
    assert torch.equal(ai, bi), name
    if exact_order:
        assert torch.equal(a.indices, b.indices)
    close = lambda x, y: torch.testing.assert_close(y, x, rtol=1e-4, atol=1e-5, msg=lambda m: name + ": " + m)
    close(ar, br)
    close(ag, bg)
    assert len(ap) == len(bp)
    for x, y in zip(ap, bp):
        close(x, y)
    print(name)


grid = {1: (23,), 2: (9, 8), 3: (6, 7, 8)}
for n, shape in grid.items():
    count = 15 if n == 1 else 40
    for bias in (True, False):
        compare(f"subm{n}", lambda l: getattr(l, f"SubMConv{n}d")(4, 6, 3, bias=bias), shape, 4, count, True)
    compare(f"dilated{n}", lambda l: getattr(l, f"SubMConv{n}d")(4, 6, 3, dilation=2), shape, 4, count, True)
    compare(f"point{n}", lambda l: getattr(l, f"SubMConv{n}d")(4, 6, 1), shape, 4, count, True)
    compare(f"strided{n}", lambda l: getattr(l, f"SparseConv{n}d")(4, 6, 3, 2, 1), shape, 4, count)
    compare(f"even{n}", lambda l: getattr(l, f"SparseConv{n}d")(4, 6, 2, 2), shape, 4, count)
    compare(f"transposed{n}", lambda l: getattr(l, f"SparseConvTranspose{n}d")(4, 6, 3, 2, 1), shape, 4, count)
    compare(f"pool{n}", lambda l: getattr(l, f"SparseMaxPool{n}d")(3, 2, 1, algo=l.ConvAlgo.Native), shape, 4, count)
    compare(f"back{n}", lambda l: l.SparseSequential(
        getattr(l, f"SparseConv{n}d")(4, 6, 3, 2, 1, indice_key="a"), torch.nn.ReLU(),
        getattr(l, f"SubMConv{n}d")(6, 6, 3, indice_key="b"), getattr(l, f"SubMConv{n}d")(6, 6, 3, indice_key="b"),
        getattr(l, f"SparseInverseConv{n}d")(6, 5, 3, "a")), shape, 4, count, True)
    compare(f"unpool{n}", lambda l: l.SparseSequential(
        getattr(l, f"SparseMaxPool{n}d")(3, 2, 1, indice_key="a", algo=l.ConvAlgo.Native),
        getattr(l, f"SparseInverseConv{n}d")(4, 5, 3, "a")), shape, 4, count, True)
compare("boxes", lambda l: l.SparseConv3d(4, 6, (3, 1, 2), (2, 1, 3), (0, 0, 1), (1, 1, 2)), grid[3], 4)
compare("large", lambda l: l.SubMConv3d(4, 6, 5), grid[3], 4, 60, True)

a, b = cells(grid[3], 30, seed=5), cells(grid[3], 20, seed=6)
sums = []
for library in (theirs, ours):
    xs = [library.SparseConvTensor(torch.arange(2.0 * len(i)).view(-1, 2), i, list(grid[3]), 2) for i in (a, b)]
    sums.append(by_voxel(library.functional.sparse_add(*xs)))
assert torch.equal(sums[0][0], sums[1][0]) and torch.equal(sums[0][1], sums[1][1])

# Voxels of points: limits, points outside, on the borders.
rng = np.random.default_rng(0)
for features, max_voxels, max_points in ((3, 1000, 4), (5, 60, 2), (4, 7, 1)):
    points = rng.uniform(-0.3, 2.3, (400, features)).astype(np.float32)
    points[:50] = np.round(points[:50] * 2) / 2
    arguments = ([0.5, 0.25, 1.0], [0, 0, 0, 2, 2, 2], features, max_voxels, max_points)
    expected = [t.numpy() for t in Point2VoxelCPU3d(*arguments).point_to_voxel(tv.from_numpy(points))]
    for found in (utils.Point2VoxelCPU3d(*arguments).point_to_voxel(tv.from_numpy(points)),
                  utils.Point2VoxelCPU3d(*arguments).point_to_voxel(points)):
        for x, y in zip(expected, found):
            np.testing.assert_array_equal(x, y.numpy())
    cloud = torch.from_numpy(points)
    expected = TheirVoxels(*arguments).generate_voxel_with_id(cloud)
    found = PointToVoxel(*arguments).generate_voxel_with_id(cloud)
    for x, y in zip(expected, found, strict=True):
        assert torch.equal(x, y), (x, y)
print(json.dumps("done"))
"""


def test_equals_spconv() -> None:
    """Results and gradients of features, weights and biases, and voxels of points."""
    assert (THEIRS / "spconv").is_dir(), f"{THEIRS} is missing: run tools/setup.sh"
    said = run("python", "-c", COMPARISON, env=environment(THEIRS)).splitlines()
    assert json.loads(said[-1]) == "done"
    assert len(said) == 3 * 10 + 2 + 1


# ---- dense convolutions --------------------------------------------------------------------------------


def dense_of(layer: nn.Module, function: Callable[..., Tensor], x: sp.SparseConvTensor, *window: object) -> Tensor:
    return function(x.dense(), layer.weight.movedim(-1, 1), None, *window)


def assert_like_dense(out: sp.SparseConvTensor, dense: Tensor, layer: nn.Module) -> None:
    """Compares outputs, and gradients of the layer's parameters."""
    where = occupied(out)
    dense = dense + layer.bias.view(1, -1, *[1] * (dense.dim() - 2))
    torch.testing.assert_close(out.dense(), dense * where)
    weigh = torch.randn_like(dense)
    leaves = list(layer.parameters())
    ours = torch.autograd.grad((out.dense() * weigh).sum(), leaves, retain_graph=True)
    theirs = torch.autograd.grad((dense * where * weigh).sum(), leaves, retain_graph=True)
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_equals_dense_convolutions(dimensions: int) -> None:
    shape = {1: (23,), 2: (9, 8), 3: (5, 6, 7)}[dimensions]
    x = scene(shape, 12 * dimensions, 4)
    convolve = getattr(F, f"conv{dimensions}d")
    subm = getattr(sp, f"SubMConv{dimensions}d")(4, 3, 3).double()
    assert_like_dense(subm(x), dense_of(subm, convolve, x, 1, 1), subm)
    strided = getattr(sp, f"SparseConv{dimensions}d")(4, 3, 3, 2, 1).double()
    out = strided(x)
    assert_like_dense(out, dense_of(strided, convolve, x, 2, 1), strided)
    mean = getattr(sp, f"SparseAvgPool{dimensions}d")(3, 2, 1)(x)
    ones = torch.ones(1, 1, *[3] * dimensions, dtype=DOUBLE)
    total = convolve(x.dense().flatten(0, 1)[:, None], ones, None, 2, 1).unflatten(0, (2, 4))[:, :, 0]
    count = convolve(occupied(x), ones, None, 2, 1)
    torch.testing.assert_close(mean.dense(), torch.where(count > 0, total / count.clamp(min=1), 0))
    assert torch.equal(mean.indices, out.indices)
    greatest = getattr(sp, f"SparseMaxPool{dimensions}d")(3, 2, 1)(x)
    lowest = torch.where(occupied(x) > 0, x.dense(), -torch.inf)
    expected = getattr(F, f"max_pool{dimensions}d")(lowest, 3, 2, 1)
    torch.testing.assert_close(greatest.dense(), torch.where(occupied(greatest) > 0, expected, 0))


def test_global_pools() -> None:
    x = scene((5, 6, 7), 30, 4)
    for sample in range(2):
        rows = x.features[x.indices[:, 0] == sample]
        torch.testing.assert_close(sp.SparseGlobalAvgPool()(x)[sample], rows.mean(0))
        torch.testing.assert_close(sp.SparseGlobalMaxPool()(x)[sample], rows.max(0).values)


# ---- what code expects of the package ------------------------------------------------------------------


def test_keys() -> None:
    """Pairs of a key are found from the outputs of the layer that computed them, and only from there."""
    x = scene((5, 6, 7), 30, 4)
    subm = sp.SubMConv3d(4, 4, 3, indice_key="a").double()
    out = subm(x)
    assert (list(x.indice_dict), list(out.indice_dict)) == ([], ["a"])
    assert subm(out).indice_dict["a"] is out.indice_dict["a"]
    down = sp.SparseConv3d(4, 4, 3, 2, 1, indice_key="b").double()
    lower = down(out)
    assert list(lower.indice_dict) == ["a", "b"]
    data = lower.find_indice_pair("b")
    assert (data.ksize, data.stride, data.is_subm) == ([3, 3, 3], [2, 2, 2], False)
    assert data.spatial_shape == [5, 6, 7]
    assert data.out_spatial_shape == lower.spatial_shape == [3, 3, 4]
    pairs, number = data.indice_pairs, data.indice_pair_num
    assert int(number.sum()) == int((pairs[0] >= 0).sum()) == int((data.pair_fwd >= 0).sum())
    k = int(number.argmax())
    for source, target in pairs[:, k, : number[k]].T.tolist():
        assert data.pair_fwd[k, target] == source
    with pytest.raises(ValueError, match="SparseConv3d: indice_key 'b': expected a new key"):
        down(lower)
    with pytest.raises(ValueError, match=r"SubMConv3d: indice_key 'a': expected .*\[5, 5, 5\].* got .*\[3, 3, 3\]"):
        sp.SubMConv3d(4, 4, 5, indice_key="a").double()(out)
    fewer = sp.SparseConvTensor(x.features[1:], x.indices[1:], [5, 6, 7], 2, indice_dict=out.indice_dict)
    with pytest.raises(ValueError, match="indice_key 'a': expected 30 voxels, got 29"):
        subm(fewer)
    with pytest.raises(ValueError, match=r"SparseInverseConv3d: indice_key 'c': expected an earlier .*, got none"):
        sp.SparseInverseConv3d(4, 4, 3, "c")(lower)
    with pytest.raises(ValueError, match="got a submanifold convolution"):
        sp.SparseInverseConv3d(4, 4, 3, "a")(lower)
    with pytest.raises(ValueError, match=r"expected kernel_size \[3, 3, 3\], got \[2, 2, 2\]"):
        sp.SparseInverseConv3d(4, 4, 2, "b")(lower)


def test_tensors() -> None:
    x = scene((3, 4, 5), 20, 2)
    back = sp.SparseConvTensor.from_dense(x.dense(channels_first=False))
    torch.testing.assert_close(back.dense(), x.dense())
    assert (x.spatial_size, back.spatial_shape) == (60, [3, 4, 5])
    torch.testing.assert_close((x + x).features, 2 * x.features)
    torch.testing.assert_close((x + 1).features, x.features + 1)
    torch.testing.assert_close(x.minus().features, -x.features)
    few = x.select_by_index(torch.tensor([4, 2]))
    assert torch.equal(few.indices, x.indices[[4, 2]])
    with pytest.raises(ValueError, match="replace_feature"):
        x.features = x.features + 1
    with pytest.raises(ValueError, match=r"indices: expected shape \[N, 4\], got \[3, 3\]"):
        sp.SparseConvTensor(torch.rand(3, 2), torch.zeros(3, 3, dtype=torch.int32), (4, 4, 4), 1)
    with pytest.raises(ValueError, match=r"indices: expected i32, got torch.int64"):
        sp.SparseConvTensor(torch.rand(3, 2), torch.zeros(3, 4, dtype=torch.int64), (4, 4, 4), 1)


def test_sequences_and_tables() -> None:
    x = scene((5, 6, 7), 30, 4)
    net = sp.SparseSequential(OrderedDict(conv=sp.SubMConv3d(4, 4, 3, indice_key="a"), norm=nn.BatchNorm1d(4))).double()
    net.add(nn.ReLU())
    net.add(sp.SparseReLU(), "again")
    assert [name for name, _ in net.named_children()] == ["conv", "norm", "2", "again"]
    assert isinstance(net[-1], sp.SparseReLU)
    assert len(net) == 4
    out = net(x)
    torch.testing.assert_close(out.features, net[1](net[0](x).features).relu())
    assert sp.modules.is_spconv_module(net)
    assert sp.modules.is_sparse_conv(net[0])
    assert not sp.modules.is_spconv_module(net[1])
    joined = sp.JoinTable()([x, out])
    assert joined.features.shape == (30, 8)
    torch.testing.assert_close(sp.AddTable()([x, out]).features, x.features + out.features)
    assert len(sp.ConcatTable().add(sp.Identity()).add(net)(x)) == 2
    torch.testing.assert_close(sp.SparseSequential(net, sp.ToDense())(x), out.dense())
    none = sp.SparseConvTensor(torch.rand(0, 4).double(), torch.zeros(0, 4, dtype=torch.int32), (5, 6, 7), 1)
    assert net(none).features.shape == (0, 4)
    with pytest.raises(ValueError, match="AddTable: expected tensors with the same voxels"):
        sp.AddTable()([x, none])


def test_duplicates() -> None:
    x = sp.SparseConvTensor(
        torch.tensor([[1.0], [2], [3]]), torch.tensor([[0, 1], [0, 0], [0, 1]], dtype=torch.int32), [4], 1
    )
    out = sp.spatial.RemoveDuplicate()(x)
    assert (out.indices.tolist(), out.features.tolist()) == ([[0, 0], [0, 1]], [[2.0], [1.0]])


def test_arguments() -> None:
    with pytest.raises(NotImplementedError, match="SubMConv4d: expected 1 to 3 dimensions, got 4"):
        sp.SubMConv4d(4, 4, 3)
    with pytest.raises(ValueError, match="SparseConv3d: groups: expected 1, got 2"):
        sp.SparseConv3d(4, 4, 3, groups=2)
    with pytest.raises(ValueError, match="SubMConv3d: kernel_size: expected odd numbers"):
        sp.SubMConv3d(4, 4, 2)(scene((5, 6, 7), 9, 4))
    with pytest.raises(ValueError, match="SparseConv3d: expected 4 channels, got 5"):
        sp.SparseConv3d(4, 4, 3)(scene((5, 6, 7), 9, 5))
    with pytest.raises(ValueError, match="SparseConv2d: expected voxels with 2 dimensions, got 3"):
        sp.SparseConv2d(4, 4, 3)(scene((5, 6, 7), 9, 4))
    with pytest.raises(ValueError, match="SparseMaxPool3d: expected a SparseConvTensor, got Tensor"):
        sp.SparseMaxPool3d(2)(torch.rand(3, 4))
    layer = sp.SparseConv3d(4, 6, 3, 2, 1, algo=spconv.ConvAlgo.Native, record_voxel_count=True, name="down")
    assert list(layer.state_dict()) == ["weight", "bias", "max_num_voxels_during_training"]
    out = layer.double()(scene((5, 6, 7), 30, 4))
    assert int(layer.get_max_num_voxels()) == len(out.features)
    assert str(sp.SparseConv3d(4, 6, 3, bias=False)).startswith("SparseConv3d(4, 6, kernel_size=[3, 3, 3]")
    assert float(spconv.__version__[2:]) >= 2.2
    assert sp.ops.get_deconv_output_size([4], [3], [2], [1], [1], [1]) == [8]
    assert sp.ops.get_conv_output_size([9, 9], [3, -1], [2, 1], [1, 0], [1, 1]) == [5, 1]


@pytest.mark.parametrize(("layout", "axes"), [("RSCK", (1, 2, 3, 4, 0)), ("RSKC", (1, 2, 3, 0, 4))])
def test_checkpoints_of_older_versions(layout: str, axes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    layer = sp.SubMConv3d(4, 6, 3)
    old = {**layer.state_dict(), "weight": layer.weight.detach().permute(*axes)}
    monkeypatch.setattr(spconv.constants, "SAVED_WEIGHT_LAYOUT", layout)
    other = sp.SubMConv3d(4, 6, 3)
    other.load_state_dict(old)
    assert torch.equal(other.weight, layer.weight)


def test_means_fill_free_rows() -> None:
    points = np.array([[0.1, 0.1, 0.1, 1], [0.3, 0.1, 0.1, 3], [1.9, 0.1, 0.1, 2]], np.float32)
    generator = utils.Point2VoxelCPU3d([0.5] * 3, [0, 0, 0, 2, 2, 2], 4, 9, 3)
    assert generator.grid_size == [4, 4, 4]
    voxels, at, counts = generator.point_to_voxel_empty_mean(cumm.tensorview.from_numpy(points))
    assert counts.numpy().tolist() == [2, 1]
    assert at.numpy().tolist() == [[0, 0, 0], [0, 0, 3]]
    np.testing.assert_allclose(voxels.numpy()[0, 2], points[:2].mean(0))
    np.testing.assert_allclose(voxels.numpy()[1], points[[2, 2, 2]])


def test_voxels_of_two_dimensions() -> None:
    points = torch.tensor([[0.1, 0.9, 7], [1.9, 0.1, 8], [0.2, 0.8, 9], [2.5, 0, 10]])
    voxels, at, counts, of_points = PointToVoxel([0.5, 0.5], [0, 0, 2, 1], 3, 9, 2).generate_voxel_with_id(points)
    assert at.tolist() == [[1, 0], [0, 3]]
    assert counts.tolist() == [2, 1]
    assert of_points.tolist() == [0, 1, 0, -1]
    torch.testing.assert_close(voxels[0], points[[0, 2]])
    assert gather_features_by_pc_voxel_id(at, of_points, -7)[:, 0].tolist() == [1, 0, 1, -7]
    with pytest.raises(ValueError, match=r"PointToVoxel: expected points \[N, 3\], got \[4, 2\]"):
        PointToVoxel([0.5, 0.5], [0, 0, 2, 1], 3, 9, 2)(points[:, :2])


# ---- models --------------------------------------------------------------------------------------------


class Net(nn.Module):
    """A residual block, a strided convolution, pooling, and the way back up."""

    def __init__(self) -> None:
        super().__init__()
        self.first = sp.SparseSequential(
            sp.SubMConv3d(4, 8, 3, indice_key="a"), nn.BatchNorm1d(8), nn.ReLU(), sp.SubMConv3d(8, 4, 3, indice_key="a")
        )
        self.down = sp.SparseConv3d(4, 8, 3, 2, 1, indice_key="down")
        self.middle = sp.SubMConv3d(8, 8, 3)
        self.up = sp.SparseInverseConv3d(8, 6, 3, "down")
        self.pool = sp.SparseMaxPool3d(2, 2)

    def forward(self, features: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
        x = sp.SparseConvTensor(features, indices, (6, 8, 8), 2)
        x = x.replace_feature(self.first(x).features + x.features)
        return self.up(self.middle(self.down(x))).features, self.pool(x).dense()


@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
def test_both_exporters_write_the_nodes(exporter: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    net, file = Net().eval(), tmp_path / "net.onnx"
    indices = cells((6, 8, 8), 70)
    dynamic = {"features": {0: "n"}, "indices": {0: "n"}}
    done = polyop.export(
        net, (torch.randn(70, 4), indices), file, exporter=exporter, dynamic=dynamic, domain="autoware", verbose=False
    )
    assert done.nodes["autoware::GetIndicePairsImplicitGemm"] == 4
    assert done.nodes["autoware::ImplicitGemm"] == 5
    options = ort.SessionOptions()
    options.register_custom_ops_library(polyop.get_onnxruntime_op_path())
    session = ort.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    features, other = torch.randn(31, 4), cells((6, 8, 8), 31, seed=8)  # another number of voxels
    got = session.run(None, {"features": features.numpy(), "indices": other.numpy()})
    with torch.no_grad():
        for g, expected in zip(got, net(features, other), strict=True):
            np.testing.assert_allclose(g, expected.numpy(), rtol=1e-4, atol=1e-5)


def test_torch_compile_has_no_graph_breaks() -> None:
    net = Net().eval()
    features, indices = torch.randn(70, 4), cells((6, 8, 8), 70)
    compiled = torch.compile(net, backend="aot_eager", fullgraph=True)
    with torch.no_grad():
        for got, expected in zip(compiled(features, indices), net(features, indices), strict=True):
            torch.testing.assert_close(got, expected)


MMDET3D = """
import polyop.compat
names = polyop.compat.install("mmcv._ext", "spconv", "cumm")
assert names == ["mmcv._ext", "spconv", "cumm"], names
import warnings
warnings.simplefilter("ignore")
import torch
from mmdet3d.models.layers.spconv import IS_SPCONV2_AVAILABLE
from mmdet3d.models.middle_encoders import SparseEncoder, SparseUNet
from tests.compat.test_spconv import cells

assert IS_SPCONV2_AVAILABLE
torch.manual_seed(0)
for kind in (SparseEncoder, SparseUNet):
    net = kind(in_channels=4, sparse_shape=[41, 64, 64], output_channels=16)
    layers = [m for m in net.modules() if type(m).__module__ == "polyop.compat.spconv.pytorch.conv"]
    assert len(layers) > 10, kind
    coors = cells((41, 64, 64), 2000)
    features = torch.randn(2000, 4, requires_grad=True)
    out = net(features, coors, 2)
    out = out["spatial_features"] if isinstance(out, dict) else out
    out.square().mean().backward()
    assert features.grad.isfinite().all() and features.grad.abs().sum() > 0
    assert all(p.grad is not None for p in layers[0].parameters())
    print(kind.__name__, tuple(out.shape))
"""


def test_models_of_mmdet3d() -> None:
    said = run("python", "-c", MMDET3D, env=environment(ROOT / ".deps" / "openmmlab"))
    assert said.splitlines() == ["SparseEncoder (2, 32, 8, 8)", "SparseUNet (2, 32, 8, 8)"]


OPENPCDET = """
import sys, types
import polyop.compat
assert {"spconv", "cumm"} <= set(polyop.compat.install())
import numpy as np
import torch
root = sys.argv[1]
# The backbones and the voxel generator alone: the whole package imports packages of data sets.
for name in ("pcdet", "pcdet.utils", "pcdet.models", "pcdet.models.backbones_3d"):
    module = sys.modules[name] = types.ModuleType(name)
    module.__path__ = [root + "/" + name.replace(".", "/")]
from importlib import import_module
from tests.compat.test_spconv import cells
class Options(dict):
    __getattr__ = dict.get
torch.manual_seed(0)
for file, kind in (("spconv_backbone", "VoxelBackBone8x"), ("spconv_backbone", "VoxelResBackBone8x")):
    net = getattr(import_module("pcdet.models.backbones_3d." + file), kind)(Options(), 4, np.array([64, 64, 40]))
    features = torch.randn(2000, 4, requires_grad=True)
    done = net({"voxel_features": features, "voxel_coords": cells((41, 64, 64), 2000), "batch_size": 2})
    out = done["encoded_spconv_tensor"].dense()
    out.square().mean().backward()
    assert features.grad.abs().sum() > 0
    print(kind, tuple(out.shape))
"""


def test_models_of_openpcdet(not_run: Callable[[str], None]) -> None:
    root = os.environ.get("POLYOP_OPENPCDET")
    if root is None:
        return not_run("POLYOP_OPENPCDET names no checkout of OpenPCDet")
    said = run("python", "-c", OPENPCDET, root, env=environment()).splitlines()
    assert said == ["VoxelBackBone8x (2, 128, 2, 8, 8)", "VoxelResBackBone8x (2, 128, 2, 8, 8)"]
