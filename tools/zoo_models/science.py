# SPDX-License-Identifier: Apache-2.0
"""Models of volumes, graphs, points, tables, series, equations, and of diffusion."""

from __future__ import annotations

import importlib
from typing import Any

import torch

from zoo_models import Built, add, model

BATCH = {"batch": (2, 3, 1)}
VOLUME = {"batch": (1, 2, 3), "depth": (32, 48, 16), "height": (32, 16, 64)}


def _monai(name: str, side: int = 32, channels: int = 1, options: Any = None) -> Built:
    import monai.networks.nets as nets

    net = getattr(nets, name)(**options)
    return net, lambda batch, depth=side, height=side: torch.rand(batch, channels, depth, height, side)


for _name, _options in {
    "UNet": {"spatial_dims": 3, "in_channels": 1, "out_channels": 2, "channels": (4, 8, 16), "strides": (2, 2)},
    "BasicUNet": {"spatial_dims": 3, "in_channels": 1, "out_channels": 2, "features": (4, 4, 8, 8, 16, 4)},
    "SegResNet": {"spatial_dims": 3, "in_channels": 1, "out_channels": 2, "init_filters": 8, "blocks_down": (1, 1, 1),
                  "blocks_up": (1, 1)},
    "DynUNet": {"spatial_dims": 3, "in_channels": 1, "out_channels": 2, "kernel_size": [3, 3, 3], "strides": [1, 2, 2],
                "upsample_kernel_size": [2, 2], "filters": [4, 8, 16]},
    "AttentionUnet": {"spatial_dims": 3, "in_channels": 1, "out_channels": 2, "channels": (4, 8, 16), "strides": (2, 2)},
    "DenseNet": {"spatial_dims": 3, "in_channels": 1, "out_channels": 2, "init_features": 8, "growth_rate": 4,
                 "block_config": (2, 2)},
    "HighResNet": {"spatial_dims": 3, "in_channels": 1, "out_channels": 2,
                   "layer_params": ({"name": "conv_0", "n_features": 4, "kernel_size": 3},
                                    {"name": "res_1", "n_features": 4, "kernels": (3, 3), "repeat": 1},
                                    {"name": "conv_1", "n_features": 4, "kernel_size": 1},
                                    {"name": "conv_2", "kernel_size": 1})},
}.items():  # fmt: skip
    add("monai", _name.lower(), lambda n=_name, o=_options: _monai(n, options=o), **VOLUME)

for _name, _options in {
    "UNETR": {"in_channels": 1, "out_channels": 2, "img_size": (32, 32, 32), "feature_size": 4, "hidden_size": 24,
              "mlp_dim": 32, "num_heads": 2},
    "SwinUNETR": {"in_channels": 1, "out_channels": 2, "feature_size": 12, "depths": (1, 1, 1, 1), "num_heads": (1, 1, 2, 2),
                  "window_size": 4},
    "ViT": {"in_channels": 1, "img_size": (32, 32, 32), "patch_size": (16, 16, 16), "hidden_size": 24, "mlp_dim": 32,
            "num_layers": 2, "num_heads": 2},
    "MedNeXt": {"spatial_dims": 3, "init_filters": 4, "in_channels": 1, "out_channels": 2, "blocks_down": (1, 1),
                "blocks_up": (1, 1), "blocks_bottleneck": 1},
}.items():  # fmt: skip
    _side = 64 if _name == "SwinUNETR" else 32
    add("monai", _name.lower(), lambda n=_name, o=_options, s=_side: _monai(n, s, options=o), **BATCH)


class _Graph(torch.nn.Module):
    """Two layers of a kind, and a sum over the nodes of each graph if `pool`."""

    def __init__(self, layers: Any, pool: Any = None) -> None:
        super().__init__()
        self.layers, self.pool = torch.nn.ModuleList(layers), pool

    def forward(self, x: torch.Tensor, edges: torch.Tensor, batch: torch.Tensor | None = None) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x, edges).relu()
        return x if self.pool is None else self.pool(x, batch, 2)


def _edges(nodes: int, edges: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(nodes, 8), torch.randint(0, nodes, (2, edges))


def _of_layers(name: str, options: Any) -> Built:
    layer = getattr(importlib.import_module("torch_geometric.nn"), name)
    if name in ("GINConv", "EdgeConv"):
        of = 2 if name == "EdgeConv" else 1
        layers = [layer(torch.nn.Sequential(torch.nn.Linear(8 * of, 8), torch.nn.ReLU())) for _ in range(2)]
    else:
        layers = [layer(8, 8, **options) for _ in range(2)]
    return _Graph(layers), _edges


for _name, _options in {
    "GCNConv": {}, "SAGEConv": {}, "GATConv": {"heads": 2, "concat": False}, "GATv2Conv": {"heads": 2, "concat": False},
    "GINConv": {}, "GraphConv": {}, "TransformerConv": {"heads": 2, "concat": False}, "ChebConv": {"K": 2}, "TAGConv": {},
    "ARMAConv": {}, "SGConv": {}, "LEConv": {}, "EdgeConv": {}, "ClusterGCNConv": {}, "ResGatedGraphConv": {},
    "GeneralConv": {}, "MFConv": {},
}.items():  # fmt: skip
    add("torch_geometric", _name, lambda n=_name, o=_options: _of_layers(n, o), nodes=(10, 17, 6), edges=(30, 41, 12))


@model("torch_geometric", nodes=(10, 17, 6), edges=(30, 41, 12))
def pooled() -> Built:
    from torch_geometric.nn import GCNConv, global_mean_pool

    return _Graph([GCNConv(8, 8)], global_mean_pool), lambda nodes, edges: (
        *_edges(nodes, edges),
        (torch.arange(nodes) >= nodes // 2).long(),
    )


class _Selected(torch.nn.Module):
    """A pooling that selects nodes, and the edges between them."""

    def __init__(self, pool: Any) -> None:
        super().__init__()
        self.pool = pool

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> Any:
        x, edges, _, batch, *_ = self.pool(x, edges, batch=edges.new_zeros(x.shape[0]))
        return x, edges, batch


def _selecting(name: str) -> Built:
    return _Selected(getattr(importlib.import_module("torch_geometric.nn"), name)(8, ratio=0.5)), _edges


for _name in ("TopKPooling", "SAGPooling", "ASAPooling"):
    add("torch_geometric", _name, lambda n=_name: _selecting(n), nodes=(10, 17, 6), edges=(30, 41, 12))


@model("torch_geometric", nodes=(10, 17, 6))
def point_net() -> Built:
    from torch_geometric.nn import PointNetConv

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = PointNetConv(torch.nn.Linear(11, 16), torch.nn.Linear(16, 4))

        def forward(self, x: torch.Tensor, points: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
            return self.net(x, points, edges)

    return Net(), lambda nodes: (torch.randn(nodes, 8), torch.randn(nodes, 3), torch.randint(0, nodes, (2, 30)))


@model("e3nn", nodes=(6, 11, 3))
def tensor_product() -> Built:
    from e3nn import o3

    net = o3.FullyConnectedTensorProduct("4x0e + 2x1o", "1x0e + 1x1o", "4x0e + 2x1o")
    return net, lambda nodes: (torch.randn(nodes, 10), torch.randn(nodes, 4))


@model("e3nn", nodes=(6, 11, 3))
def spherical_harmonics() -> Built:
    from e3nn import o3

    return o3.SphericalHarmonics([0, 1, 2, 3], True, normalization="component"), lambda nodes: torch.randn(nodes, 3)


@model("e3nn", nodes=(6, 11, 3))
def gate() -> Built:
    from e3nn import nn

    net = nn.Gate("4x0e", [torch.tanh], "2x0e", [torch.sigmoid], "2x1o")
    return net, lambda nodes: torch.randn(nodes, 12)


@model("egnn-pytorch", batch=(2, 3, 1), nodes=(6, 11, 4))
def egnn() -> Built:
    from egnn_pytorch import EGNN

    return EGNN(dim=8, m_dim=8), lambda batch, nodes: (torch.randn(batch, nodes, 8), torch.randn(batch, nodes, 3))


@model("point-transformer-pytorch", batch=(2, 3, 1), points=(12, 17, 8))
def point_transformer() -> Built:
    from point_transformer_pytorch import PointTransformerLayer

    net = PointTransformerLayer(dim=8, pos_mlp_hidden_dim=16, attn_mlp_hidden_mult=2)
    return net, lambda batch, points: (torch.randn(batch, points, 8), torch.randn(batch, points, 3))


def _neuralop(name: str, **options: Any) -> Built:
    net = getattr(importlib.import_module("neuralop.models"), name)(**options)
    return net, lambda batch, height=16, width=16: torch.randn(batch, 1, height, width)


_FNO = {"n_modes": (6, 6), "in_channels": 1, "out_channels": 1, "hidden_channels": 8, "n_layers": 2}
add("neuraloperator", "fno", lambda: _neuralop("FNO", **_FNO), batch=(2, 3, 1), height=(16, 24, 17), width=(16, 12, 20))
add("neuraloperator", "tfno", lambda: _neuralop("TFNO", **_FNO, rank=0.5), **BATCH)
add("neuraloperator", "uno", lambda: _neuralop(
    "UNO", in_channels=1, out_channels=1, hidden_channels=8, n_layers=2, uno_out_channels=[8, 8],
    uno_n_modes=[[4, 4], [4, 4]], uno_scalings=[[0.5, 0.5], [2, 2]], channel_mlp_skip="linear"), **BATCH)  # fmt: skip


@model("diffusers", batch=(2, 3, 1), height=(16, 24, 8), width=(16, 8, 32))
def unet_2d() -> Built:
    from diffusers import UNet2DModel

    net = UNet2DModel(sample_size=16, block_out_channels=(8, 16), layers_per_block=1, norm_num_groups=4,
                      down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"),
                      attention_head_dim=8)  # fmt: skip
    return net, lambda batch, height, width: (torch.randn(batch, 3, height, width), torch.randint(0, 99, (batch,)))


@model("diffusers", batch=(2, 3, 1), height=(16, 24, 8), width=(16, 8, 32))
def unet_2d_condition() -> Built:
    from diffusers import UNet2DConditionModel

    net = UNet2DConditionModel(sample_size=16, block_out_channels=(8, 16), layers_per_block=1, norm_num_groups=4,
                               cross_attention_dim=16, attention_head_dim=8,
                               down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
                               up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"))  # fmt: skip
    return net, lambda batch, height, width: (
        torch.randn(batch, 4, height, width),
        torch.randint(0, 99, (batch,)),
        torch.randn(batch, 7, 16),
    )


class _Part(torch.nn.Module):
    def __init__(self, function: Any, net: Any) -> None:
        super().__init__()
        self.net, self.function = net, function

    def forward(self, *given: torch.Tensor) -> Any:
        return self.function(self.net, *given)


@model("diffusers", batch=(2, 3, 1), height=(16, 24, 32), width=(16, 32, 8))
def vae_encoder() -> Built:
    from diffusers import AutoencoderKL

    net = AutoencoderKL(
        block_out_channels=(8, 16),
        norm_num_groups=4,
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
    )
    return _Part(lambda net, x: net._encode(x), net), lambda batch, height, width: torch.randn(batch, 3, height, width)


@model("diffusers", batch=(2, 3, 1), height=(16, 24, 32), width=(16, 32, 8))
def vae_decoder() -> Built:
    from diffusers import AutoencoderKL

    net = AutoencoderKL(
        block_out_channels=(8, 16),
        norm_num_groups=4,
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
    )
    return _Part(lambda net, x: net._decode(x, return_dict=False)[0], net), lambda batch, height, width: torch.randn(
        batch, 4, height, width
    )


@model("diffusers", batch=(2, 3, 1))
def dit() -> Built:
    from diffusers import DiTTransformer2DModel

    net = DiTTransformer2DModel(num_attention_heads=2, attention_head_dim=16, in_channels=4, num_layers=2, sample_size=8,
                                num_embeds_ada_norm=10, norm_num_groups=4)  # fmt: skip
    return net, lambda batch: (
        torch.randn(batch, 4, 8, 8),
        torch.randint(0, 99, (batch,)),
        torch.randint(0, 9, (batch,)),
    )


@model("diffusers", batch=(2, 3, 1), height=(8, 12, 16), width=(8, 16, 4), tokens=(7, 11, 5))
def sd3() -> Built:
    from diffusers import SD3Transformer2DModel

    net = SD3Transformer2DModel(sample_size=16, patch_size=2, in_channels=4, num_layers=2, attention_head_dim=16,
                                num_attention_heads=2, joint_attention_dim=16, caption_projection_dim=32,
                                pooled_projection_dim=16, out_channels=4, pos_embed_max_size=16)  # fmt: skip
    return net, lambda batch, height, width, tokens: (
        torch.randn(batch, 4, height, width),
        torch.randn(batch, tokens, 16),
        torch.randn(batch, 16),
        torch.randint(0, 99, (batch,)),
    )


@model("diffusers", batch=(2, 3, 1), time=(16, 24, 12), tokens=(7, 11, 5))
def flux() -> Built:
    from diffusers import FluxTransformer2DModel

    net = FluxTransformer2DModel(in_channels=8, num_layers=1, num_single_layers=1, attention_head_dim=16,
                                 num_attention_heads=2, joint_attention_dim=16, pooled_projection_dim=16,
                                 axes_dims_rope=(4, 4, 8))  # fmt: skip
    return net, lambda batch, time, tokens: (
        torch.randn(batch, time, 8),
        torch.randn(batch, tokens, 16),
        torch.randn(batch, 16),
        torch.rand(batch),
        torch.randint(0, 9, (time, 3)).float(),
        torch.zeros(tokens, 3),
    )


@model("diffusers", batch=(1, 2, 3), tokens=(7, 11, 5))
def wan() -> Built:
    from diffusers import WanTransformer3DModel

    net = WanTransformer3DModel(num_attention_heads=2, attention_head_dim=12, in_channels=4, out_channels=4, text_dim=16,
                                freq_dim=16, ffn_dim=32, num_layers=2, rope_max_seq_len=32)  # fmt: skip
    return net, lambda batch, tokens: (
        torch.randn(batch, 4, 2, 8, 8),
        torch.randint(0, 99, (batch,)),
        torch.randn(batch, tokens, 16),
    )


@model("diffusers", batch=(2, 3, 1), tokens=(7, 11, 5))
def pixart() -> Built:
    from diffusers import PixArtTransformer2DModel

    net = PixArtTransformer2DModel(num_attention_heads=2, attention_head_dim=16, in_channels=4, out_channels=4, num_layers=2,
                                   sample_size=8, cross_attention_dim=32, caption_channels=16, norm_num_groups=4,
                                   use_additional_conditions=False)  # fmt: skip
    return net, lambda batch, tokens: (
        torch.randn(batch, 4, 8, 8),
        torch.randn(batch, tokens, 16),
        torch.randint(0, 99, (batch,)),
    )


def _forecast(name: str, **options: Any) -> Built:
    kind = getattr(importlib.import_module("neuralforecast.models"), name)
    net = kind(h=6, input_size=24, max_steps=1, **options)

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def forward(self, series: torch.Tensor) -> Any:
            given = {"insample_y": series, "insample_mask": torch.ones_like(series), "futr_exog": None, "hist_exog": None,
                     "stat_exog": None}  # fmt: skip
            return self.net(given)

    return Net(), lambda batch: torch.randn(batch, 24, options.get("n_series", 1))


for _name, _options in {
    "NHITS": {"mlp_units": 3 * [[16, 16]]}, "NBEATS": {"mlp_units": 3 * [[16, 16]]}, "DLinear": {}, "NLinear": {},
    "PatchTST": {"hidden_size": 16, "n_heads": 2, "encoder_layers": 1, "linear_hidden_size": 16, "patch_len": 8},
    "Autoformer": {"hidden_size": 16, "n_head": 2, "conv_hidden_size": 8}, "Informer": {"hidden_size": 16, "n_head": 2},
    "VanillaTransformer": {"hidden_size": 16, "n_head": 2}, "TimesNet": {"hidden_size": 8, "conv_hidden_size": 8},
    "TCN": {"encoder_hidden_size": 8, "decoder_hidden_size": 8}, "LSTM": {"encoder_hidden_size": 8, "decoder_hidden_size": 8},
    "TFT": {"hidden_size": 16, "n_head": 2}, "BiTCN": {"hidden_size": 8}, "TiDE": {"hidden_size": 16, "decoder_output_dim": 4},
    "FEDformer": {"hidden_size": 16, "n_head": 8, "conv_hidden_size": 8, "modes": 4},
    "iTransformer": {"n_series": 3, "hidden_size": 16, "n_heads": 2, "d_ff": 16},
    "TSMixer": {"n_series": 3, "ff_dim": 8}, "SOFTS": {"n_series": 3, "hidden_size": 16, "d_core": 8, "d_ff": 16},
    "TimeMixer": {"n_series": 3, "d_model": 8, "d_ff": 8}, "StemGNN": {"n_series": 3},
}.items():  # fmt: skip
    add("neuralforecast", _name, lambda n=_name, o=_options: _forecast(n, **o), **BATCH)


@model("pytorch-forecasting", **BATCH)
def nbeats_block() -> Built:
    from pytorch_forecasting.layers._nbeats._blocks import NBEATSGenericBlock

    return NBEATSGenericBlock(16, 4, backcast_length=12, forecast_length=4), lambda batch: torch.randn(batch, 12)


@model("pytorch-forecasting", batch=(2, 3, 1), time=(8, 11, 5))
def gated_residual_network() -> Built:
    from pytorch_forecasting.models.temporal_fusion_transformer.sub_modules import GatedResidualNetwork

    return GatedResidualNetwork(8, 8, 8), lambda batch, time: torch.randn(batch, time, 8)


@model("ncps", batch=(2, 3, 1))
def cfc() -> Built:
    from ncps.torch import CfC

    return CfC(8, 12), lambda batch: torch.randn(batch, 6, 8)


@model("pykan", batch=(4, 7, 1))
def kan() -> Built:
    from kan import KAN

    net = KAN(width=[3, 4, 1], grid=3, k=2, seed=0, auto_save=False, symbolic_enabled=False, save_act=False)
    return net, lambda batch: torch.rand(batch, 3)


@model("rtdl_revisiting_models", batch=(4, 7, 1))
def ft_transformer() -> Built:
    from rtdl_revisiting_models import FTTransformer

    options = {**FTTransformer.get_default_kwargs(1), "d_block": 16, "attention_n_heads": 2}
    return FTTransformer(n_cont_features=4, cat_cardinalities=[3, 5], d_out=1, **options), lambda batch: (
        torch.randn(batch, 4),
        torch.randint(0, 3, (batch, 2)),
    )


@model("pytorch-tabnet", batch=(4, 7, 1))
def tabnet() -> Built:
    from pytorch_tabnet.tab_network import TabNet

    net = TabNet(6, 2, n_d=4, n_a=4, n_steps=2, group_attention_matrix=torch.eye(6))
    return net, lambda batch: torch.randn(batch, 6)


@model("siren-pytorch", points=(8, 13, 1))
def siren() -> Built:
    from siren_pytorch import SirenNet

    return SirenNet(2, 16, 3, 3), lambda points: torch.rand(points, 2)


@model("deepctr-torch", batch=(4, 7, 1))
def deepfm() -> Built:
    from deepctr_torch.inputs import DenseFeat, SparseFeat
    from deepctr_torch.models import DeepFM

    columns = [SparseFeat("a", 5, 4), SparseFeat("b", 7, 4), DenseFeat("c", 2)]
    net = DeepFM(columns, columns, dnn_hidden_units=(8, 8))
    return net, lambda batch: torch.cat([torch.randint(0, 5, (batch, 2)).float(), torch.randn(batch, 2)], 1)
