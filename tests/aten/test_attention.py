# SPDX-License-Identifier: Apache-2.0
"""Attention whose mask hides tokens, in ONNX files: queries that may attend to nothing, and padded sequences."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.support.exported_calls import check

X = torch.randn((2, 4, 6, 8), generator=torch.Generator().manual_seed(0))
ALL = torch.ones((2, 4, 6, 6), dtype=torch.bool)
HIDDEN = ALL.clone()
HIDDEN[0, 0, 0] = HIDDEN[1, :, 3] = HIDDEN[1, 2, 1, 2:] = False


def _attend(x: Tensor, mask: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(x, x, x, mask)


def _additive(mask: Tensor) -> Tensor:
    return torch.zeros(mask.shape).masked_fill(~mask, -torch.inf)


@pytest.mark.parametrize("opset", [18, 23])
def test_a_query_that_may_attend_to_nothing_gets_zeros(opset: int) -> None:
    assert (_attend(X, HIDDEN)[0, 0, 0] == 0).all()
    check(_attend, X, ALL, others=[(X, HIDDEN)], opset_version=opset)
    check(_attend, X, _additive(ALL[:, :1]), others=[(X, _additive(HIDDEN[:, :1]))], opset_version=opset)


def test_masks_of_other_shapes() -> None:
    check(_attend, X[0], HIDDEN[0], atol=1e-5)  # three dimensions
    check(_attend, X, HIDDEN[0, 0])
    check(_attend, X, HIDDEN[:, :, :1], others=[(X, ~ALL[:, :, :1])])  # of keys, for all queries
    other = X[:, :, :4], HIDDEN[:, :, :4, :4]
    check(_attend, X, ALL, others=[(X, HIDDEN), other], dynamic=[(2,), (2, 3)])
    check(lambda x, m: F.scaled_dot_product_attention(x, x[:, :2], x[:, :2], m, enable_gqa=True), X, HIDDEN)


class _Encoder(nn.Module):
    def __init__(self, norm: bool, **how: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(8) if norm else None, **how).eval()
        for parameter in self.encoder.norm.parameters() if norm else ():
            nn.init.normal_(parameter)  # padded tokens get the bias

    def forward(self, x: Tensor, padded: Tensor) -> Tensor:
        return self.encoder(x, src_key_padding_mask=padded)


_AT_THE_END = torch.tensor([[0, 0, 0, 0], [0, 0, 1, 1], [0, 1, 1, 1]]).bool()
_ANYWHERE = torch.tensor([[0, 0, 0, 0], [1, 0, 1, 1], [0, 1, 1, 1]]).bool()
_WHOLE_SEQUENCE = torch.tensor([[0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 1]]).bool()


@pytest.mark.parametrize("norm", [False, True])
def test_padded_tokens_of_an_encoder(norm: bool) -> None:
    """In inference PyTorch removes padded tokens that are at the end, and keeps them if one of them is not."""
    encoder, x = _Encoder(norm).eval(), X[0, :3, :4]
    masks = [_ANYWHERE, _WHOLE_SEQUENCE, torch.zeros_like(_ANYWHERE)]
    check(encoder, x, _AT_THE_END, others=[(x, mask) for mask in masks], dynamic=[(0, 1), (0, 1)], atol=1e-5)


def test_padded_tokens_of_an_encoder_that_keeps_them() -> None:
    x = X[0, :3, :4]
    check(_Encoder(False, enable_nested_tensor=False).eval(), x, _AT_THE_END, others=[(x, _ANYWHERE)], atol=1e-5)
    check(_Encoder(True, mask_check=False).eval(), x, _AT_THE_END, others=[(x, _WHOLE_SEQUENCE)], atol=1e-5)
    encoder, causal = _Encoder(False), torch.ones((4, 4)).triu(1).bool()
    check(lambda x, m: encoder.encoder(x, causal, m), x, _AT_THE_END, atol=1e-5)
