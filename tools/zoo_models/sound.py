# SPDX-License-Identifier: Apache-2.0
"""Models of speech, music and other sounds."""

from __future__ import annotations

from typing import Any

import torch

from zoo_models import Built, add, model
from zoo_models.text import configured, mask, tokens

BATCH = {"batch": (2, 3, 1)}
FRAMES = {"batch": (2, 3, 1), "time": (40, 53, 32)}
CONVS = {"conv_dim": (16, 16), "conv_kernel": (10, 4), "conv_stride": (5, 4), "num_feat_extract_layers": 2,
         "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 2}  # fmt: skip


def wave(net: Any, channels: int = 0, length: int = 400) -> Built:
    """The wave may have another length, by name."""
    shape = [channels] if channels else []
    return net, lambda batch=1, time=length: torch.randn(batch, *shape, time)


def frames(net: Any, features: int) -> Built:
    return net, lambda batch, time: torch.randn(batch, time, features)


def _transformers(name: str, kind: str, **options: Any) -> Any:
    import transformers

    return getattr(transformers, f"{name}{kind}")(configured(name, **options))


for _name, _kind, _options in (
    ("Wav2Vec2", "ForCTC", {}),
    ("Hubert", "Model", {}),
    ("WavLM", "Model", {}),
    ("UniSpeechSat", "Model", {}),
    ("Data2VecAudio", "Model", {"conv_pos_kernel_size": 3, "num_conv_pos_embeddings": 2}),
    ("SEW", "Model", {"squeeze_factor": 2}),
):
    add("transformers", f"{_name}{_kind}", lambda n=_name, k=_kind, o=_options: wave(_transformers(n, k, **{**CONVS, **o})),
        batch=(2, 3, 1), time=(400, 611, 320))  # fmt: skip


@model("transformers", batch=(2, 3, 1), time=(8, 11, 5))
def whisper() -> Built:
    net = _transformers("Whisper", "ForConditionalGeneration", num_mel_bins=16, max_source_positions=20,
                        max_target_positions=32, use_cache=False, begin_suppress_tokens=None)  # fmt: skip

    class Decoded(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def forward(self, x: torch.Tensor, ids: torch.Tensor) -> Any:
            return self.net(x, decoder_input_ids=ids).logits

    return Decoded(), lambda batch, time: (torch.randn(batch, 16, 40), tokens(batch, time))


@model("transformers", **BATCH)
def audio_spectrogram_transformer() -> Built:
    return frames(_transformers("AST", "Model", max_length=48, num_mel_bins=32, patch_size=8), 32)[
        0
    ], lambda batch: torch.randn(batch, 48, 32)


@model("transformers", batch=(2, 3, 1), time=(640, 960, 320))
def mimi() -> Built:
    net = _transformers("Mimi", "Model", num_filters=8, hidden_size=32, codebook_dim=16, codebook_size=16, num_quantizers=4,
                        num_semantic_quantizers=1, vector_quantization_hidden_dimension=16, upsampling_ratios=[4, 4],
                        upsample_groups=32, num_hidden_layers=1, sliding_window=8, use_cache=False)  # fmt: skip

    class Codes(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def forward(self, x: torch.Tensor) -> Any:
            return self.net.encode(x).audio_codes

    return wave(Codes(), 1, 640)


@model("transformers", batch=(2, 3, 1), time=(12, 17, 9))
def speecht5_hifigan() -> Built:
    import transformers

    config = transformers.SpeechT5HifiGanConfig(model_in_dim=16, upsample_initial_channel=16, upsample_rates=[4, 4],
                                                upsample_kernel_sizes=[8, 8], resblock_kernel_sizes=[3],
                                                resblock_dilation_sizes=[[1, 3]])  # fmt: skip
    net = transformers.SpeechT5HifiGan(config)
    return frames(net, 16)


@model("transformers", batch=(1, 2, 3), time=(9, 14, 6))
def vits() -> Built:
    import transformers

    config = configured("Vits", hidden_size=16, num_hidden_layers=1, ffn_dim=16, flow_size=16, spectrogram_bins=9,
                        upsample_initial_channel=16, upsample_rates=[4], upsample_kernel_sizes=[8],
                        resblock_kernel_sizes=[3], resblock_dilation_sizes=[[1]], prior_encoder_num_flows=1,
                        posterior_encoder_num_wavenet_layers=1, prior_encoder_num_wavenet_layers=1)  # fmt: skip

    class Encoder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = transformers.VitsModel(config).text_encoder

        def forward(self, ids: torch.Tensor) -> Any:
            padding = torch.ones_like(ids).unsqueeze(-1).float()
            return self.net(ids, padding).last_hidden_state

    return Encoder(), tokens


@model("transformers", batch=(2, 3, 1), time=(20, 26, 14))
def seamless_conformer() -> Built:
    net = _transformers("Wav2Vec2Bert", "Model", feature_projection_input_dim=16, use_cache=False,
                        position_embeddings_type="relative_key", add_adapter=False)  # fmt: skip
    return net, lambda batch, time: (torch.randn(batch, time, 16), mask(batch, time))


@model("torchaudio", **FRAMES)
def conformer() -> Built:
    from torchaudio.models import Conformer

    net = Conformer(16, 2, 32, 2, 7)

    def inputs(batch: int, time: int) -> Any:
        return torch.randn(batch, time, 16), torch.full((batch,), time)

    return net, inputs


@model("torchaudio", **FRAMES)
def emformer() -> Built:
    from torchaudio.models import Emformer

    net = Emformer(16, 2, 32, 2, segment_length=8, left_context_length=4, right_context_length=0)
    return net, lambda batch, time: (torch.randn(batch, time, 16), torch.full((batch,), time))


@model("torchaudio", batch=(2, 3, 1), time=(400, 500, 333))
def conv_tasnet() -> Built:
    from torchaudio.models import ConvTasNet

    return wave(ConvTasNet(2, 8, 16, 3, 8, 16, 2, 1), 1)


@model("torchaudio", **FRAMES)
def deepspeech() -> Built:
    from torchaudio.models import DeepSpeech

    return DeepSpeech(16, 32, 9), lambda batch, time: torch.randn(batch, 1, time, 16)


@model("torchaudio", batch=(2, 3, 1), time=(400, 611, 320))
def wav2letter() -> Built:
    from torchaudio.models import Wav2Letter

    return Wav2Letter(9, "mfcc", 8), lambda batch, time: torch.randn(batch, 8, time)


@model("torchaudio", batch=(2, 3, 1), time=(400, 611, 320))
def wav2vec2() -> Built:
    from torchaudio.models import wav2vec2_model

    return wave(
        wav2vec2_model(
            "layer_norm", [(16, 10, 5), (16, 4, 4)], True, 32, 0.0, 16, 2, 2, 2, 0.0, 48, 0.0, 0.0, True, 0.0, 9
        )
    )


@model("torchaudio", batch=(2, 3, 1), time=(1600, 2000, 1400))
def squim() -> Built:
    from torchaudio.models import squim_objective_model

    return wave(squim_objective_model(16, 32, 16, 2, 8, 1, "LSTM", 20), 0, 1600)


@model("torchaudio", batch=(1, 2, 3))
def wavernn() -> Built:
    from torchaudio.models import WaveRNN

    net = WaveRNN([2, 2], 8, 4, n_res_block=1, n_rnn=16, n_fc=16, kernel_size=3, n_freq=8, n_hidden=8, n_output=8)
    return net, lambda batch: (torch.randn(batch, 1, 4 * 8), torch.randn(batch, 1, 8, 10))


def _tacotron2() -> Any:
    from torchaudio.models import Tacotron2

    return Tacotron2(n_symbol=30, n_mels=8, symbol_embedding_dim=16, encoder_embedding_dim=16, decoder_rnn_dim=16,
                     attention_rnn_dim=16, attention_hidden_dim=8, attention_location_n_filter=4,
                     attention_location_kernel_size=5, prenet_dim=8, postnet_embedding_dim=8)  # fmt: skip


@model("torchaudio", batch=(2, 3, 1), time=(8, 11, 5))
def tacotron2_encoder() -> Built:
    class Encoder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = _tacotron2()

        def forward(self, ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
            return self.net.encoder(self.net.embedding(ids).transpose(1, 2), lengths)

    return Encoder(), lambda batch, time: (torch.randint(0, 30, (batch, time)), torch.full((batch,), time))


@model("torchaudio", batch=(2, 3, 1), time=(8, 11, 5))
def tacotron2_decoder() -> Built:
    """One step. What precedes it drops values at random, in evaluation mode, too."""

    class Step(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = _tacotron2().decoder

        def forward(self, frame: torch.Tensor, memory: torch.Tensor, mask: torch.Tensor, *states: torch.Tensor) -> Any:
            return self.net.decode(frame, *states, memory, self.net.attention_layer.memory_layer(memory), mask)

    return Step(), lambda batch, time: (
        torch.randn(batch, 8),
        torch.randn(batch, time, 16),
        torch.arange(time).expand(batch, time) >= time - 1,
        *(torch.randn(batch, 16) for _ in range(4)),
        torch.rand(batch, time),
        torch.rand(batch, time),
        torch.randn(batch, 16),
    )


@model("torchaudio", batch=(2, 3, 1), time=(1600, 2000, 1111))
def mel_spectrogram() -> Built:
    import torchaudio

    return wave(torchaudio.transforms.MelSpectrogram(16000, n_fft=128, hop_length=64, n_mels=16), 0, 1600)


@model("torchaudio", batch=(2, 3, 1), time=(1600, 2000, 1111))
def resample() -> Built:
    import torchaudio

    return wave(torchaudio.transforms.Resample(16000, 11025), 0, 1600)


def _speechbrain_frames(module: str, name: str, features: int, *options: Any, **named: Any) -> Built:
    import importlib

    return frames(getattr(importlib.import_module(f"speechbrain.{module}"), name)(*options, **named), features)


for _module, _name, _options in (
    ("lobes.models.ECAPA_TDNN", "ECAPA_TDNN", {"input_size": 16, "channels": [16, 16, 16, 16, 32], "attention_channels": 8,
                                               "lin_neurons": 12, "res2net_scale": 4, "se_channels": 8}),
    ("lobes.models.Xvector", "Xvector", {"in_channels": 16, "tdnn_channels": [16, 16, 16, 16, 24], "lin_neurons": 12}),
    ("lobes.models.ResNet", "ResNet", {"input_size": 16, "channels": [8, 8, 8, 8], "block_sizes": [1, 1, 1, 1],
                                       "lin_neurons": 12}),
    ("lobes.models.CRDNN", "CRDNN", {"input_shape": [None, None, 16], "cnn_channels": (4, 4), "cnn_blocks": 2,
                                     "rnn_layers": 1, "rnn_neurons": 8, "dnn_neurons": 8, "projection_dim": 8,
                                     "time_pooling": False}),
    ("lobes.models.ContextNet", "ContextNet", {"input_shape": [None, None, 16], "out_channels": 8, "conv_channels": [8] * 21,
                                               "kernel_size": 3, "num_blocks": 21, "num_layers": 1}),
    ("lobes.models.VanillaNN", "VanillaNN", {"input_shape": [None, None, 16]}),
    ("nnet.RNN", "LiGRU", {"hidden_size": 8, "input_shape": [None, None, 16]}),
    ("nnet.RNN", "LSTM", {"hidden_size": 8, "input_shape": [None, None, 16], "bidirectional": True}),
):  # fmt: skip
    add("speechbrain", _name, lambda m=_module, n=_name, o=_options: _speechbrain_frames(m, n, 16, **o), **FRAMES)


@model("speechbrain", **FRAMES)
def hifigan() -> Built:
    from speechbrain.lobes.models.HifiGAN import HifiganGenerator

    net = HifiganGenerator(8, 1, "1", [[1, 3, 5]], [3], [8, 4], 16, [4, 2])
    return net, lambda batch, time: torch.randn(batch, 8, time)


@model("speechbrain", batch=(2, 3, 1), time=(1600, 2000, 1111))
def fbank() -> Built:
    from speechbrain.lobes.features import Fbank

    return wave(Fbank(n_mels=16), 0, 1600)


@model("speechbrain", **FRAMES)
def conformer_encoder() -> Built:
    from speechbrain.lobes.models.transformer.Conformer import ConformerEncoder
    from speechbrain.nnet.attention import RelPosEncXL

    class Encoder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.positions, self.net = RelPosEncXL(16), ConformerEncoder(2, 16, 32, 2, kernel_size=7)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.net(x, pos_embs=self.positions(x))[0]

    return frames(Encoder(), 16)


def _asteroid(name: str, **options: Any) -> Built:
    import asteroid.models

    return wave(getattr(asteroid.models, name)(n_src=2, sample_rate=8000, **options), 1)


_FILTERS = {"n_filters": 16, "kernel_size": 16, "stride": 8}
for _name, _options in {
    "ConvTasNet": {**_FILTERS, "n_blocks": 2, "n_repeats": 1, "bn_chan": 8, "hid_chan": 16, "skip_chan": 8},
    "DPRNNTasNet": {**_FILTERS, "n_repeats": 1, "bn_chan": 8, "hid_size": 8, "chunk_size": 10},
    "DPTNet": {**_FILTERS, "n_repeats": 1, "ff_hid": 16, "chunk_size": 10, "n_heads": 2, "in_chan": 16},
    "LSTMTasNet": {**_FILTERS, "hid_size": 8, "n_layers": 1, "bidirectional": False},
    "SuDORMRFNet": {"bn_chan": 8, "num_blocks": 1, "upsampling_depth": 2, "kernel_size": 16, "n_filters": 16},
}.items():
    add("asteroid", _name, lambda n=_name, o=_options: _asteroid(n, **o), batch=(2, 3, 1), time=(400, 480, 336))


@model("encodec", batch=(2, 3, 1), time=(640, 960, 320))
def seanet_encoder() -> Built:
    from encodec.modules import SEANetEncoder

    return wave(SEANetEncoder(dimension=16, n_filters=4, ratios=[4, 2], lstm=1), 1, 640)


@model("encodec", batch=(2, 3, 1), time=(20, 31, 12))
def seanet_decoder() -> Built:
    from encodec.modules import SEANetDecoder

    return SEANetDecoder(dimension=16, n_filters=4, ratios=[4, 2], lstm=1), lambda batch, time: torch.randn(
        batch, 16, time
    )


@model("descript-audio-codec", batch=(2, 3, 1), time=(640, 960, 320))
def dac_encoder() -> Built:
    from dac.model.dac import Encoder

    return wave(Encoder(8, [2, 4], 16), 1, 640)


@model("descript-audio-codec", batch=(2, 3, 1), time=(20, 31, 12))
def dac_decoder() -> Built:
    from dac.model.dac import Decoder

    return Decoder(16, 16, [4, 2]), lambda batch, time: torch.randn(batch, 16, time)


@model("descript-audio-codec", batch=(2, 3, 1), time=(20, 31, 12))
def dac_quantizer() -> Built:
    from dac.nn.quantize import ResidualVectorQuantize

    net = ResidualVectorQuantize(16, 3, 12, 4)

    class Codes(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def forward(self, x: torch.Tensor) -> Any:
            return self.net(x)[:2]

    return Codes(), lambda batch, time: torch.randn(batch, 16, time)


@model("demucs", batch=(1, 2, 3), time=(4096, 5120, 3000))
def demucs() -> Built:
    from demucs.demucs import Demucs

    return wave(
        Demucs(["a", "b"], channels=4, depth=2, dconv_depth=1, dconv_lstm=2, dconv_attn=2, lstm_layers=1), 2, 4096
    )


@model("demucs", batch=(1, 2, 3))
def htdemucs() -> Built:
    from demucs.htdemucs import HTDemucs

    net = HTDemucs(["a", "b"], channels=8, nfft=512, depth=2, t_layers=1, t_heads=2, dconv_depth=1, segment=0.5,
                   samplerate=8000, use_train_segment=True)  # fmt: skip
    return wave(net, 2, 4000)


@model("vocos", batch=(2, 3, 1), time=(20, 31, 12))
def vocos() -> Built:
    from vocos.heads import ISTFTHead
    from vocos.models import VocosBackbone

    net = torch.nn.Sequential(VocosBackbone(8, 16, 32, 2), ISTFTHead(16, 32, 8))
    return net, lambda batch, time: torch.randn(batch, 8, time)


@model("conformer", **FRAMES)
def conformer_block() -> Built:
    from conformer import Conformer

    return frames(Conformer(16, depth=2, dim_head=8, heads=2), 16)
