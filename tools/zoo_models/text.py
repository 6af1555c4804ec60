# SPDX-License-Identifier: Apache-2.0
"""Language models."""

from __future__ import annotations

import inspect
from typing import Any

import torch

from zoo_models import Built, add, model

SIZES = {"batch": (2, 3, 1), "time": (12, 17, 8)}
TINY = {
    "vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48,
    "num_key_value_heads": 1, "head_dim": 16, "d_model": 32, "d_ff": 48, "d_kv": 16, "num_layers": 2, "num_heads": 2,
    "n_embd": 32, "n_layer": 2, "n_head": 2, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 64,
    "n_positions": 64, "embedding_size": 16, "dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 48,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1,
}  # fmt: skip


def configured(name: str, **options: Any) -> Any:
    """Returns a configuration of transformers with the tiny values that it knows."""
    import transformers

    config = getattr(transformers, f"{name}Config")
    known = {
        **{name: None for base in config.__mro__ for name in getattr(base, "__annotations__", {})},
        **dict.fromkeys(vars(config())),
    }
    known |= dict.fromkeys(getattr(config, "attribute_map", {}))
    return config(**{**{key: value for key, value in TINY.items() if key in known}, **options})


def tokens(batch: int, time: int) -> torch.Tensor:
    return torch.randint(3, 99, (batch, time))


def mask(batch: int, time: int) -> torch.Tensor:
    """Returns a mask of which each row but the first hides its last element."""
    result = torch.ones(batch, time, dtype=torch.int64)
    result[1:, -1] = 0
    return result


def _transformers(name: str, kind: str, with_mask: bool, both: bool, **options: Any) -> Built:
    import transformers

    config = configured(name, **options)
    if hasattr(config, "use_cache"):
        config.use_cache = False
    net = getattr(transformers, f"{name}{kind}")(config)
    if "Mamba" in name:
        from polyop.compat.transformers import use_polyop

        use_polyop(net)
    if both:  # an encoder and a decoder
        return net, lambda batch, time: (tokens(batch, time), mask(batch, time), tokens(batch, time))
    between = (
        [None] * (list(inspect.signature(net.forward).parameters).index("attention_mask") - 1) if with_mask else []
    )
    return net, lambda batch, time: (tokens(batch, time), *between, *([mask(batch, time)] if with_mask else []))


for _name, _kind, _options in (
    ("Bert", "Model", {}), ("Roberta", "ForSequenceClassification", {}), ("DistilBert", "ForMaskedLM", {}),
    ("Albert", "Model", {}), ("Electra", "Model", {}), ("DebertaV2", "Model", {"relative_attention": True,
     "pos_att_type": ["c2p", "p2c"], "position_biased_input": False}), ("MPNet", "Model", {}), ("Camembert", "Model", {}),
    ("ModernBert", "Model", {}), ("FNet", "Model", {}), ("Funnel", "BaseModel", {"block_sizes": [1, 1], "attention_type": "factorized"}),
    ("MobileBert", "Model", {}), ("SqueezeBert", "Model", {"q_groups": 1, "k_groups": 1, "embedding_size": 32}), ("Nystromformer", "Model", {}),
    ("BigBird", "Model", {"attention_type": "original_full"}), ("Longformer", "Model", {"attention_window": 4}),
    ("GPT2", "LMHeadModel", {}), ("GPTNeo", "ForCausalLM", {"attention_types": [[["global", "local"], 1]]}),
    ("GPTNeoX", "ForCausalLM", {}), ("OPT", "ForCausalLM", {"ffn_dim": 48, "word_embed_proj_dim": 32}),
    ("Bloom", "ForCausalLM", {}), ("Falcon", "ForCausalLM", {}), ("Llama", "ForCausalLM", {}),
    ("Mistral", "ForCausalLM", {"sliding_window": 6}), ("Qwen2", "ForCausalLM", {}), ("Qwen3", "ForCausalLM", {}),
    ("Gemma2", "ForCausalLM", {"sliding_window": 6}), ("Phi3", "ForCausalLM", {}), ("Cohere", "ForCausalLM", {}),
    ("Olmo2", "ForCausalLM", {}), ("StableLm", "ForCausalLM", {}), ("Granite", "ForCausalLM", {}),
    ("SmolLM3", "ForCausalLM", {}), ("Mixtral", "ForCausalLM", {"num_local_experts": 4}),
    ("Qwen3Moe", "ForCausalLM", {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24}),
    ("DeepseekV3", "ForCausalLM", {"n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 2, "topk_group": 1,
     "moe_intermediate_size": 24, "first_k_dense_replace": 1, "q_lora_rank": 16, "kv_lora_rank": 16, "head_dim": 8,
     "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8, "num_key_value_heads": 2}),
    ("GptOss", "ForCausalLM", {"num_local_experts": 4, "sliding_window": 6}),
    ("Mamba", "ForCausalLM", {"state_size": 4, "time_step_rank": 4}),
    ("Mamba2", "ForCausalLM", {"state_size": 4, "num_heads": 4, "head_dim": 16, "n_groups": 1, "chunk_size": 4}),
    ("Rwkv", "ForCausalLM", {"attention_hidden_size": 32}), ("RecurrentGemma", "ForCausalLM", {"lru_width": 32,
     "attention_window_size": 6, "block_types": ["recurrent", "attention"]}),
    ("Zamba2", "ForCausalLM", {"layers_block_type": ["mamba", "hybrid"], "hybrid_layer_ids": [1], "mamba_d_state": 4,
     "mamba_ngroups": 1, "chunk_size": 4, "n_mamba_heads": 4, "num_key_value_heads": 2, "mamba_headdim": 16}),
    ("Esm", "Model", {"position_embedding_type": "rotary", "mask_token_id": 4}),
):  # fmt: skip
    _masked = _name not in ("Mamba", "Rwkv", "FNet")
    add(
        "transformers",
        f"{_name}{_kind}",
        lambda n=_name, k=_kind, m=_masked, o=_options: _transformers(n, k, m, False, **o),
        **SIZES,
    )

for _name, _kind, _options in (
    ("T5", "ForConditionalGeneration", {}), ("Bart", "ForConditionalGeneration", {}), ("Marian", "MTModel", {}),
    ("Pegasus", "Model", {}), ("M2M100", "Model", {}), ("LongT5", "Model", {"local_radius": 3}), ("MT5", "Model", {}),
    ("LED", "Model", {"attention_window": 4}),
):  # fmt: skip
    add(
        "transformers",
        f"{_name}{_kind}",
        lambda n=_name, k=_kind, o=_options: _transformers(n, k, True, True, **o),
        **SIZES,
    )


def _of_tokens(net: Any) -> Built:
    return net, lambda batch, time=16: tokens(batch, time)


def _x_transformers(**options: Any) -> Built:
    from x_transformers import Decoder, Encoder, TransformerWrapper

    kind = Encoder if options.pop("encoder", False) else Decoder
    return _of_tokens(
        TransformerWrapper(
            num_tokens=99, max_seq_len=64, attn_layers=kind(dim=32, depth=2, heads=2, attn_dim_head=16, **options)
        )
    )


for _name, _options in {
    "decoder": {}, "encoder": {"encoder": True}, "rotary": {"rotary_pos_emb": True}, "alibi": {"alibi_pos_bias": True},
    "relative_bias": {"rel_pos_bias": True}, "gated": {"ff_glu": True, "use_rmsnorm": True},
    "talking_heads": {"attn_pre_talking_heads": True, "attn_post_talking_heads": True}, "sparse_topk": {"attn_sparse_topk": 4}, "sandwich": {"sandwich_coef": 1},
    "qk_norm": {"attn_qk_norm": True}, "shift_tokens": {"shift_tokens": 1}, "multi_query": {"attn_one_kv_head": True},
}.items():  # fmt: skip
    add("x-transformers", _name, lambda o=_options: _x_transformers(**o), **SIZES)


@model("x-transformers", batch=(2, 3, 1), time=(12, 17, 8))
def continuous() -> Built:
    from x_transformers import ContinuousTransformerWrapper, Encoder

    net = ContinuousTransformerWrapper(
        dim_in=8, dim_out=4, max_seq_len=64, attn_layers=Encoder(dim=32, depth=2, heads=2)
    )
    return net, lambda batch, time: torch.randn(batch, time, 8)


@model("xlstm", batch=(2, 3, 1))
def mlstm_and_slstm() -> Built:
    import xlstm

    config = xlstm.xLSTMLMModelConfig(
        vocab_size=99,
        context_length=16,
        num_blocks=2,
        embedding_dim=32,
        slstm_at=[1],
        mlstm_block=xlstm.mLSTMBlockConfig(mlstm=xlstm.mLSTMLayerConfig(num_heads=2)),
        slstm_block=xlstm.sLSTMBlockConfig(slstm=xlstm.sLSTMLayerConfig(backend="vanilla", num_heads=2)),
    )
    return _of_tokens(xlstm.xLSTMLMModel(config))


@model("mambapy", **SIZES)
def mamba() -> Built:
    from mambapy.mamba import Mamba, MambaConfig

    return Mamba(MambaConfig(d_model=16, n_layers=2, d_state=4)), lambda batch, time: torch.randn(batch, time, 16)


@model("chronos-forecasting", batch=(2, 3, 1))
def bolt() -> Built:
    from chronos.chronos_bolt import ChronosBoltModelForForecasting

    config = configured("T5")
    config.chronos_config = {"context_length": 32, "prediction_length": 8, "input_patch_size": 8, "input_patch_stride": 8,
                             "quantiles": [0.1, 0.5, 0.9], "use_reg_token": True}  # fmt: skip
    config.use_cache, config.reg_token_id, config.decoder_start_token_id = False, 1, 0
    return ChronosBoltModelForForecasting(config), lambda batch: torch.randn(batch, 32)


def _performer() -> Built:
    from performer_pytorch import PerformerLM

    return _of_tokens(PerformerLM(num_tokens=99, max_seq_len=16, dim=32, depth=2, heads=2, dim_head=16))


add("performer-pytorch", "performer_lm", _performer, batch=(2, 3, 1))


@model("linformer", batch=(2, 3, 1))
def linformer_lm() -> Built:
    from linformer import LinformerLM

    return _of_tokens(LinformerLM(num_tokens=99, dim=32, seq_len=16, depth=2, heads=2, k=8))


@model("perceiver-pytorch", batch=(2, 3, 1), time=(12, 17, 8))
def perceiver_io() -> Built:
    from perceiver_pytorch import PerceiverIO

    net = PerceiverIO(dim=16, queries_dim=8, logits_dim=5, depth=2, num_latents=8, latent_dim=16, cross_heads=1,
                      latent_heads=2, cross_dim_head=8, latent_dim_head=8)  # fmt: skip

    class Queried(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net
            self.queries = torch.nn.Parameter(torch.randn(4, 8))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.net(x, queries=self.queries)

    return Queried(), lambda batch, time: torch.randn(batch, time, 16)


@model("nystrom-attention", batch=(2, 3, 1))
def nystromformer() -> Built:
    from nystrom_attention import Nystromformer

    net = Nystromformer(dim=32, dim_head=16, heads=2, depth=2, num_landmarks=4, pinv_iterations=3)
    return net, lambda batch: torch.randn(batch, 16, 32)


@model("linear-attention-transformer", batch=(2, 3, 1))
def linear_attention() -> Built:
    from linear_attention_transformer import LinearAttentionTransformerLM

    return _of_tokens(
        LinearAttentionTransformerLM(num_tokens=99, dim=32, heads=2, depth=2, max_seq_len=16, causal=False)
    )


@model("local-attention", batch=(2, 3, 1), time=(16, 32, 24))
def local_transformer() -> Built:
    from local_attention import LocalTransformer

    return _of_tokens(
        LocalTransformer(num_tokens=99, dim=32, depth=2, max_seq_len=64, local_attn_window_size=8, heads=2, dim_head=16)
    )


@model("axial-attention", batch=(2, 3, 1))
def axial() -> Built:
    from axial_attention import AxialAttention

    return AxialAttention(dim=8, dim_index=1, heads=2, num_dimensions=2), lambda batch: torch.randn(batch, 8, 12, 10)


@model("enformer-pytorch", batch=(1, 2, 3))
def enformer() -> Built:
    from enformer_pytorch import Enformer

    net = Enformer.from_hparams(
        dim=48, depth=1, heads=2, output_heads={"human": 7}, target_length=8, num_downsamples=3, dim_divisible_by=8
    )
    return net, lambda batch: torch.randint(0, 5, (batch, 128))


@model("vector-quantize-pytorch", batch=(2, 3, 1), time=(12, 17, 8))
def residual_vq() -> Built:
    from vector_quantize_pytorch import ResidualVQ

    return ResidualVQ(dim=16, num_quantizers=2, codebook_size=12), lambda batch, time: torch.randn(batch, time, 16)


@model("vector-quantize-pytorch", batch=(2, 3, 1), time=(12, 17, 8))
def fsq() -> Built:
    from vector_quantize_pytorch import FSQ

    return FSQ(levels=[8, 5, 5], dim=16), lambda batch, time: torch.randn(batch, time, 16)


@model("iTransformer", batch=(2, 3, 1))
def itransformer() -> Built:
    from iTransformer import iTransformer

    net = iTransformer(
        num_variates=5, lookback_len=16, dim=32, depth=2, heads=2, dim_head=16, pred_length=8, flash_attn=False
    )
    return net, lambda batch: torch.randn(batch, 16, 5)


@model("tab-transformer-pytorch", batch=(4, 7, 1))
def ft_transformer() -> Built:
    from tab_transformer_pytorch import FTTransformer

    net = FTTransformer(categories=(10, 5, 6), num_continuous=4, dim=16, dim_out=1, depth=2, heads=2)
    return net, lambda batch: (torch.randint(0, 5, (batch, 3)), torch.randn(batch, 4))
