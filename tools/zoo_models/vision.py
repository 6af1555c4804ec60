# SPDX-License-Identifier: Apache-2.0
"""Models of images, and of points that come from images' detectors."""

from __future__ import annotations

from typing import Any

import torch

from zoo_models import Built, add, model

BATCH = {"batch": (2, 3, 1)}
SIDES = {"height": (64, 96, 32), "width": (64, 32, 128)}


def image(module: Any, side: int = 64, channels: int = 3) -> Built:
    """The image may have other sides, by names."""
    return module, lambda batch=1, height=side, width=side: torch.rand(batch, channels, height, width)


def _timm(name: str, side: int, **options: Any) -> Built:
    import timm

    return image(timm.create_model(name, pretrained=False, **options), side)


for _name in ("resnet10t", "test_resnet", "test_efficientnet", "test_convnext", "test_mambaout", "mobilenetv3_small_050",
              "ghostnet_050", "lcnet_035", "repvgg_a0", "regnetx_002", "edgenext_xx_small", "mobileone_s0",
              "efficientvit_b0", "convnextv2_atto", "fastvit_t8", "starnet_s1"):  # fmt: skip
    add("timm", _name, lambda name=_name: _timm(name, 64), **BATCH, **SIDES)
for _name, _side in {
    "test_vit": 160,
    "levit_128s": 224,
    "xcit_nano_12_p16_224": 64,
    "maxvit_rmlp_pico_rw_256": 256,
    "coatnet_pico_rw_224": 224,
    "mixer_s32_224": 224,
    "gmlp_ti16_224": 224,
    "tiny_vit_5m_224": 224,
}.items():
    add("timm", _name, lambda name=_name, side=_side: _timm(name, side), **BATCH)


@model("timm", **BATCH, height=(64, 96, 80), width=(64, 48, 128))
def vit_dynamic_size() -> Built:
    return _timm("test_vit", 160, dynamic_img_size=True)


@model("timm", **BATCH, height=(64, 96, 65), width=(64, 52, 128))
def swin_any_size() -> Built:
    return _timm("swinv2_cr_tiny_ns_224", 64, img_size=64, strict_img_size=False, depths=(1, 1, 1, 1), embed_dim=24)


def _torchvision(name: str, side: int = 64, **options: Any) -> Built:
    import torchvision

    return image(torchvision.models.get_model(name, weights=None, **options), side)


for _name in ("resnet18", "mobilenet_v2", "mobilenet_v3_small", "shufflenet_v2_x0_5", "squeezenet1_1", "mnasnet0_5",
              "efficientnet_b0", "regnet_y_400mf"):  # fmt: skip
    add("torchvision", _name, lambda name=_name: _torchvision(name), **BATCH, **SIDES)


@model("torchvision", **BATCH, **SIDES)
def swin_v2() -> Built:
    from torchvision.models import SwinTransformer

    return image(SwinTransformer([2, 2], 16, [1, 1], [2, 2], [4, 4], num_classes=10))


@model("torchvision", **BATCH)
def vit() -> Built:
    from torchvision.models import VisionTransformer

    return image(VisionTransformer(32, 8, 2, 2, 32, 64, num_classes=10), 32)


@model("torchvision", **BATCH, **SIDES)
def lraspp() -> Built:
    return _torchvision("lraspp_mobilenet_v3_large", weights_backbone=None)


@model("torchvision", **BATCH, **SIDES)
def deeplabv3() -> Built:
    return _torchvision("deeplabv3_mobilenet_v3_large", weights_backbone=None)


@model("torchvision", height=(96, 128, 64), width=(96, 64, 128))
def ssdlite() -> Built:
    import torchvision

    net = torchvision.models.detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=4)
    for weight in net.head.parameters():  # otherwise all scores are equal, and the boxes that are kept are any of them
        torch.nn.init.normal_(weight, std=0.05)

    class Images(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def forward(self, image: torch.Tensor) -> Any:
            return self.net([image])[0]

    return Images(), lambda height, width: torch.rand(3, height, width)


@model("torchvision", batch=(1, 2, 3), height=(128, 136, 144), width=(128, 160, 136))
def raft() -> Built:
    import torchvision

    net = torchvision.models.optical_flow.raft_small(weights=None)

    class Last(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def forward(self, first: torch.Tensor, second: torch.Tensor) -> Any:
            return self.net(first, second, num_flow_updates=2)[-1]

    return Last(), lambda batch, height, width: (
        torch.rand(batch, 3, height, width),
        torch.rand(batch, 3, height, width),
    )


@model("torchvision", batch=(1, 2, 3), frames=(8, 10, 12))
def r3d() -> Built:
    import torchvision

    return torchvision.models.video.r3d_18(weights=None), lambda batch, frames: torch.rand(batch, 3, frames, 32, 32)


def _smp(architecture: str, encoder: str = "resnet18", **options: Any) -> Built:
    import segmentation_models_pytorch as smp

    found = smp.create_model(architecture, encoder_name=encoder, encoder_weights=None, classes=3, **options)
    return image(found)


for _name in ("unet", "unetplusplus", "manet", "linknet", "fpn", "pspnet", "deeplabv3", "deeplabv3plus", "upernet",
              "segformer"):  # fmt: skip
    add("segmentation_models_pytorch", _name, lambda name=_name: _smp(name), batch=(2, 3, 4), height=(64, 96, 128),
        width=(64, 128, 192))  # fmt: skip


@model("segmentation_models_pytorch", batch=(1, 2, 3))
def dpt() -> Built:
    import segmentation_models_pytorch as smp

    net = smp.DPT("tu-test_vit", encoder_weights=None, encoder_depth=4, classes=2, decoder_fusion_channels=16)
    return image(net, 160)


def _effdet(name: str, predict: bool) -> Built:
    import effdet

    config = effdet.get_efficientdet_config(name)
    config.image_size, config.num_classes, config.backbone_name = (128, 128), 5, "mobilenetv3_small_050"
    config.fpn_channels, config.fpn_cell_repeats, config.box_class_repeats = 16, 1, 1
    config.max_detection_points, config.max_det_per_image = 200, 10
    net = effdet.EfficientDet(config, pretrained_backbone=False)
    return image(effdet.DetBenchPredict(net) if predict else net, 128)


add("effdet", "efficientdet", lambda: _effdet("tf_efficientdet_d0", False), **BATCH)
add("effdet", "predict", lambda: _effdet("tf_efficientdet_d0", True), **BATCH)


@model("kornia", **BATCH, **SIDES)
def good_features() -> Built:
    import kornia

    return image(kornia.feature.CornerGFTT(), channels=1)


@model("kornia", patches=(8, 5, 13))
def hardnet() -> Built:
    import kornia

    return kornia.feature.HardNet(pretrained=False), lambda patches: torch.rand(patches, 1, 32, 32)


@model("kornia", patches=(8, 5, 13))
def sosnet() -> Built:
    import kornia

    return kornia.feature.SOSNet(pretrained=False), lambda patches: torch.rand(patches, 1, 32, 32)


@model("kornia", **BATCH, **SIDES)
def canny() -> Built:
    import kornia

    return image(kornia.filters.Canny(hysteresis=False))


@model("kornia", **BATCH, height=(64, 96, 80), width=(64, 48, 128))
def dexined() -> Built:
    from kornia.models.dexined import DexiNed

    return image(DexiNed(pretrained=False))


@model("kornia", **BATCH, height=(64, 96, 80), width=(64, 48, 128))
def clahe() -> Built:
    import kornia

    class Clahe(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return kornia.enhance.equalize_clahe(x, 20.0, (4, 4))

    return image(Clahe())


@model("kornia", **BATCH)
def tiny_vit() -> Built:
    from kornia.models.vit import VisionTransformer

    return image(VisionTransformer(image_size=32, patch_size=8, embed_dim=32, depth=2, num_heads=2), 32)


@model("kornia", **BATCH, height=(64, 96, 80), width=(64, 48, 128))
def disk() -> Built:
    import kornia

    class Dense(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = kornia.feature.DISK()

        def forward(self, x: torch.Tensor) -> Any:
            return self.net.heatmap_and_dense_descriptors(x)

    return image(Dense())


@model("kornia", batch=(1, 2, 3))
def loftr_coarse() -> Built:
    import kornia

    class Features(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.backbone = kornia.feature.LoFTR(pretrained=None).backbone

        def forward(self, x: torch.Tensor) -> Any:
            return tuple(self.backbone(x))

    return image(Features(), channels=1)


@model("kornia", points=(20, 31, 9), others=(16, 23, 30))
def lightglue() -> Built:
    import kornia

    net = kornia.feature.LightGlue(None, input_dim=32, descriptor_dim=32, num_heads=2, n_layers=2, depth_confidence=-1,
                                   width_confidence=-1, flash=False, filter_threshold=0.0)  # fmt: skip

    class Pair(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def forward(self, k0: Any, d0: Any, k1: Any, d1: Any) -> Any:
            size = torch.tensor([[64.0, 64.0]])
            found = self.net(
                {
                    "image0": {"keypoints": k0, "descriptors": d0, "image_size": size},
                    "image1": {"keypoints": k1, "descriptors": d1, "image_size": size},
                }
            )
            return found["matches0"], found["matching_scores0"]

    return Pair(), lambda points, others: (
        64 * torch.rand(1, points, 2),
        torch.randn(1, points, 32),
        64 * torch.rand(1, others, 2),
        torch.randn(1, others, 32),
    )


@model("transformers", batch=(2, 3, 1))
def grounding_dino() -> Built:
    import transformers

    swin = transformers.SwinConfig(image_size=128, embed_dim=8, depths=[1] * 4, num_heads=[1, 1, 2, 2], window_size=4,
                                   out_features=["stage2", "stage3", "stage4"])  # fmt: skip
    bert = transformers.BertConfig(
        vocab_size=2000, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
    )
    config = transformers.GroundingDinoConfig(
        backbone_config=swin, text_config=bert, d_model=32, encoder_layers=1, decoder_layers=2, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, num_queries=10, max_text_len=16,
    )  # fmt: skip

    class Detector(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = transformers.GroundingDinoForObjectDetection(config)

        def forward(self, image: torch.Tensor, ids: torch.Tensor) -> Any:
            found = self.net(image, ids)
            return found.logits, found.pred_boxes

    return Detector(), lambda batch: (
        torch.rand(batch, 3, 128, 128),
        torch.tensor([[101, 5, 6, 1012, 7, 1012, 102]]).repeat(batch, 1),
    )


VIT = {"image_size": 32, "patch_size": 8, "num_classes": 5, "dim": 32, "depth": 2, "heads": 2, "mlp_dim": 32}


@model("vit-pytorch", "vit", **BATCH)
def _vit() -> Built:
    from vit_pytorch import ViT

    return image(ViT(**VIT), 32)


def _vit_pytorch(module: str, name: str, side: int = 32, **options: Any) -> Built:
    import importlib

    return image(getattr(importlib.import_module(f"vit_pytorch.{module}"), name)(**options), side)


for _module, _name, _options in (
    ("simple_vit", "SimpleViT", VIT),
    ("deepvit", "DeepViT", VIT),
    ("cait", "CaiT", {**VIT, "cls_depth": 1}),
    ("t2t", "T2TViT", {"image_size": 32, "num_classes": 5, "dim": 32, "depth": 2, "heads": 2, "mlp_dim": 32,
                       "t2t_layers": ((7, 4), (3, 2))}),
    ("cct", "CCT", {"img_size": 32, "embedding_dim": 32, "num_layers": 2, "num_heads": 2, "num_classes": 5}),
    ("cvt", "CvT", {"num_classes": 5, "s1_emb_dim": 16, "s2_emb_dim": 16, "s3_emb_dim": 16, "s3_depth": 2}),
    ("nest", "NesT", {"image_size": 32, "patch_size": 4, "dim": 16, "heads": 2, "num_hierarchies": 2,
                      "block_repeats": (1, 1), "num_classes": 5}),
    ("mobile_vit", "MobileViT", {"image_size": (64, 64), "dims": [16, 24, 32], "num_classes": 5,
                                 "channels": [8, 8, 8, 8, 8, 8, 16, 16, 16, 16, 32]}),
    ("vit_for_small_dataset", "ViT", VIT),
    ("regionvit", "RegionViT", {"dim": (8, 16, 16, 16), "depth": (1, 1, 1, 1), "window_size": 2, "num_classes": 5}),
    ("crossformer", "CrossFormer", {"dim": (32, 32, 32, 32), "depth": (1, 1, 1, 1), "num_classes": 5,
                                    "global_window_size": (4, 2, 2, 1), "local_window_size": 2}),
    ("max_vit", "MaxViT", {"num_classes": 5, "dim_conv_stem": 8, "dim": 8, "dim_head": 8, "depth": (1, 1),
                           "window_size": 4}),
):  # fmt: skip
    _side = {"MobileViT": 64, "RegionViT": 64, "CrossFormer": 64}.get(_name, 32)
    add(
        "vit-pytorch", f"{_module}", lambda m=_module, n=_name, o=_options, s=_side: _vit_pytorch(m, n, s, **o), **BATCH
    )


@model("open_clip_torch", texts=(2, 3, 1), batch=(2, 1, 4))
def clip() -> Built:
    import open_clip

    vision = {"image_size": 32, "layers": 2, "width": 64, "patch_size": 8, "head_width": 32}
    text = {"context_length": 16, "vocab_size": 100, "width": 64, "heads": 2, "layers": 2}
    net = open_clip.CLIP(32, vision, text)
    return net, lambda texts, batch: (torch.rand(batch, 3, 32, 32), torch.randint(1, 99, (texts, 16)))


@model("open_clip_torch", texts=(2, 3, 1), batch=(2, 1, 4))
def coca() -> Built:
    import open_clip

    vision = {"image_size": 32, "layers": 2, "width": 64, "patch_size": 8, "head_width": 32, "attentional_pool": True,
              "attn_pooler_heads": 2, "output_tokens": True}  # fmt: skip
    text = {"context_length": 16, "vocab_size": 100, "width": 64, "heads": 2, "layers": 2, "embed_cls": True,
            "output_tokens": True}  # fmt: skip
    net = open_clip.CoCa(64, {**text, "layers": 2}, text, vision)
    return net, lambda texts, batch: (torch.rand(batch, 3, 32, 32), torch.randint(1, 99, (batch, 16)))


def _sam() -> Any:
    from functools import partial

    from segment_anything.modeling import ImageEncoderViT, MaskDecoder, PromptEncoder, Sam, TwoWayTransformer

    encoder = ImageEncoderViT(64, 8, embed_dim=32, depth=2, num_heads=2, out_chans=16, use_rel_pos=True, window_size=3,
                              global_attn_indexes=(1,), norm_layer=partial(torch.nn.LayerNorm, eps=1e-6))  # fmt: skip
    decoder = MaskDecoder(transformer_dim=16, transformer=TwoWayTransformer(2, 16, 2, 32), iou_head_hidden_dim=16)
    return Sam(encoder, PromptEncoder(16, (8, 8), (64, 64), 4), decoder)


@model("segment-anything", **BATCH)
def sam_encoder() -> Built:
    return image(_sam().image_encoder, 64)


@model("segment-anything", points=(3, 5, 1))
def sam_decoder() -> Built:
    from segment_anything.utils.onnx import SamOnnxModel

    return SamOnnxModel(_sam(), return_single_mask=False), lambda points: (
        torch.randn(1, 16, 8, 8),
        64 * torch.rand(1, points, 2),
        torch.randint(0, 2, (1, points)).float(),
        torch.randn(1, 1, 32, 32),
        torch.ones(1),
        torch.tensor([48.0, 64.0]),
    )


@model("sam2", **BATCH)
def hiera() -> Built:
    from sam2.modeling.backbones.hieradet import Hiera

    class Features(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = Hiera(16, 1, stages=(1, 1, 2, 1), global_att_blocks=(3,), window_spec=(4, 4, 4, 2),
                             window_pos_embed_bkg_spatial_size=(4, 4))  # fmt: skip

        def forward(self, x: torch.Tensor) -> Any:
            return tuple(self.net(x))

    return image(Features(), 128)


@model("sam2", **BATCH)
def memory_attention() -> Built:
    from sam2.modeling.memory_attention import MemoryAttention, MemoryAttentionLayer
    from sam2.modeling.sam.transformer import RoPEAttention

    own = RoPEAttention(embedding_dim=32, num_heads=1, downsample_rate=1, dropout=0.0, feat_sizes=(8, 8))
    cross = RoPEAttention(embedding_dim=32, num_heads=1, downsample_rate=1, dropout=0.0, feat_sizes=(8, 8),
                          rope_k_repeat=True, kv_in_dim=16)  # fmt: skip
    layer = MemoryAttentionLayer("relu", cross, 32, 32, 0.0, False, False, True, own)
    net = MemoryAttention(32, False, layer, 2)
    return net, lambda batch: tuple(torch.randn(64, batch, c) for c in (32, 16, 32, 16))


def _super_image(name: str, **options: Any) -> Built:
    import super_image

    config = getattr(super_image, f"{name}Config")(scale=2, **options)
    return image(getattr(super_image, f"{name}Model")(config), 24)


for _name, _options in {
    "Edsr": {"n_resblocks": 2, "n_feats": 8},
    "Msrn": {"n_feats": 8, "n_blocks": 2},
    "A2n": {},
    "Pan": {"nf": 8, "unf": 8, "nb": 2},
    "Carn": {},
}.items():
    add("super-image", _name.lower(), lambda n=_name, o=_options: _super_image(n, **o), **BATCH, height=(24, 31, 16),
        width=(24, 17, 40))  # fmt: skip


@model("torchsr", **BATCH, height=(24, 31, 16), width=(24, 17, 40))
def rcan() -> Built:
    from torchsr.models.rcan import RCAN

    return image(RCAN(n_resgroups=1, n_resblocks=2, n_feats=16, reduction=4, scale=2, pretrained=False), 24)


@model("torchsr", **BATCH, height=(24, 31, 16), width=(24, 17, 40))
def ninasr() -> Built:
    from torchsr.models import ninasr_b0

    return image(ninasr_b0(scale=2, pretrained=False), 24)


def _spandrel(module: str, name: str, side: int = 24, **options: Any) -> Built:
    import importlib

    found = importlib.import_module(f"spandrel.architectures.{module}")
    return image(getattr(found, name)(**options), side)


for _module, _name, _options in (
    ("ESRGAN.__arch.RRDB", "RRDBNet", {"num_filters": 8, "num_blocks": 1, "scale": 2}),
    ("Compact.__arch.SRVGG", "SRVGGNetCompact", {"num_feat": 8, "num_conv": 2, "upscale": 2}),
    ("SwinIR", "SwinIR", {"img_size": 16, "embed_dim": 12, "depths": [1, 1], "num_heads": [2, 2], "window_size": 4,
                          "upscale": 2, "upsampler": "pixelshuffledirect"}),
    ("HAT", "HAT", {"img_size": 16, "embed_dim": 12, "depths": [1], "num_heads": [2], "window_size": 4, "upscale": 2,
                    "upsampler": "pixelshuffle", "compress_ratio": 3, "squeeze_factor": 3}),
    ("NAFNet", "NAFNet", {"width": 8, "middle_blk_num": 1, "enc_blk_nums": [1, 1], "dec_blk_nums": [1, 1]}),
    ("OmniSR", "OmniSR", {"num_feat": 8, "res_num": 1, "block_num": 1, "window_size": 4, "up_scale": 2}),
    ("SPAN", "SPAN", {"num_in_ch": 3, "num_out_ch": 3, "feature_channels": 8, "upscale": 2}),
    ("DAT", "DAT", {"img_size": 16, "embed_dim": 16, "split_size": [2, 4], "depth": [1], "num_heads": [2],
                    "expansion_factor": 2.0, "upscale": 2}),
    ("PLKSR", "PLKSR", {"dim": 8, "n_blocks": 1, "kernel_size": 5, "upscaling_factor": 2}),
):  # fmt: skip
    add("spandrel", _name.lower(), lambda m=_module, n=_name, o=_options: _spandrel(m, n, **o), **BATCH,
        height=(24, 32, 16), width=(24, 16, 40))  # fmt: skip


def _pytorchcv(name: str, **options: Any) -> Built:
    from pytorchcv.model_provider import get_model

    return image(get_model(name, pretrained=False, **options), 224)


for _name in ("resnet10", "mobilenet_wd4", "igcv3_wd4", "condensenet74_c4_g4", "menet108_8x1_g3", "diracnet18v2",
              "hardnet39ds", "peleenet", "fdmobilenet_wd4", "darknet_tiny"):  # fmt: skip
    add("pytorchcv", _name, lambda name=_name: _pytorchcv(name), **BATCH)


@model("efficientnet-pytorch", **BATCH, **SIDES)
def efficientnet_b0() -> Built:
    from efficientnet_pytorch import EfficientNet

    return image(EfficientNet.from_name("efficientnet-b0", image_size=64))


@model("lpips", **BATCH, **SIDES)
def lpips_squeeze() -> Built:
    import lpips

    net = lpips.LPIPS(net="squeeze", pretrained=False, pnet_rand=True, verbose=False)
    return net, lambda batch, height, width: (torch.rand(batch, 3, height, width), torch.rand(batch, 3, height, width))


@model("ultralytics", **BATCH, **SIDES)
def yolo11() -> Built:
    from ultralytics.nn.tasks import DetectionModel

    return image(DetectionModel("yolo11n.yaml", nc=4, verbose=False))


@model("ultralytics", **BATCH, **SIDES)
def yolov8_seg() -> Built:
    from ultralytics.nn.tasks import SegmentationModel

    return image(SegmentationModel("yolov8n-seg.yaml", nc=4, verbose=False))


def _lucidrains(module: str, name: str, side: int = 32, **options: Any) -> Built:
    import importlib

    return image(getattr(importlib.import_module(module), name)(**options), side)


for _package, _module, _name, _options in (
    ("mlp-mixer-pytorch", "mlp_mixer_pytorch", "MLPMixer",
     {"image_size": 32, "channels": 3, "patch_size": 8, "dim": 32, "depth": 2, "num_classes": 5}),
    ("g-mlp-pytorch", "g_mlp_pytorch", "gMLPVision",
     {"image_size": 32, "patch_size": 8, "num_classes": 5, "dim": 32, "depth": 2}),
    ("res-mlp-pytorch", "res_mlp_pytorch", "ResMLP",
     {"image_size": 32, "patch_size": 8, "num_classes": 5, "dim": 32, "depth": 2}),
    ("halonet-pytorch", "halonet_pytorch", "HaloAttention",
     {"dim": 3, "block_size": 8, "halo_size": 2, "dim_head": 8, "heads": 2}),
    ("lambda-networks", "lambda_networks", "LambdaLayer",
     {"dim": 3, "dim_out": 8, "r": 5, "dim_k": 4, "heads": 2, "dim_u": 1}),
    ("bottleneck-transformer-pytorch", "bottleneck_transformer_pytorch", "BottleStack",
     {"dim": 3, "fmap_size": 32, "dim_out": 32, "proj_factor": 4, "downsample": True, "heads": 2, "dim_head": 8}),
):  # fmt: skip
    add(_package, _name.lower(), lambda m=_module, n=_name, o=_options: _lucidrains(m, n, **o), **BATCH)


@model("timesformer-pytorch", **BATCH)
def timesformer() -> Built:
    from timesformer_pytorch import TimeSformer

    net = TimeSformer(dim=32, image_size=32, patch_size=8, num_frames=4, num_classes=5, depth=2, heads=2, dim_head=16)
    return net, lambda batch: torch.rand(batch, 4, 3, 32, 32)


@model("denoising-diffusion-pytorch", **BATCH, height=(32, 48, 16), width=(32, 16, 40))
def unet() -> Built:
    from denoising_diffusion_pytorch import Unet

    return Unet(dim=8, dim_mults=(1, 2), flash_attn=False), lambda batch, height, width: (
        torch.randn(batch, 3, height, width),
        torch.randint(0, 100, (batch,)),
    )


@model("facenet-pytorch", **BATCH)
def inception_resnet() -> Built:
    from facenet_pytorch import InceptionResnetV1

    return image(InceptionResnetV1(), 96)


@model("lightly", **BATCH, **SIDES)
def simsiam() -> Built:
    import torchvision
    from lightly.models.modules import SimCLRProjectionHead

    backbone = torchvision.models.resnet18(weights=None)
    backbone.fc = torch.nn.Identity()
    return image(torch.nn.Sequential(backbone, SimCLRProjectionHead(512, 32, 16)))


@model("pytorchvideo", batch=(1, 2, 3), frames=(8, 12, 16))
def slow_r50() -> Built:
    from pytorchvideo.models.resnet import create_resnet

    net = create_resnet(
        model_depth=50, model_num_class=5, stem_dim_out=8, head_pool_kernel_size=(1, 1, 1), head_pool=torch.nn.AvgPool3d
    )
    return net, lambda batch, frames: torch.rand(batch, 3, frames, 32, 32)


@model("pytorchvideo", batch=(1, 2, 3))
def mvit() -> Built:
    from pytorchvideo.models.vision_transformers import create_multiscale_vision_transformers

    net = create_multiscale_vision_transformers(
        spatial_size=32, temporal_size=4, depth=2, patch_embed_dim=16, num_heads=1, head_num_classes=5,
        conv_patch_embed_kernel=(3, 7, 7), pool_q_stride_size=[[1, 1, 2, 2]], pool_kv_stride_adaptive=[1, 2, 2],
        pool_kvq_kernel=[3, 3, 3], atten_head_mul=[[1, 2.0]], embed_dim_mul=[[1, 2.0]],
    )  # fmt: skip
    return net, lambda batch: torch.rand(batch, 3, 4, 32, 32)
