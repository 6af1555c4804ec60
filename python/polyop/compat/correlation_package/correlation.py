# SPDX-License-Identifier: Apache-2.0
"""`correlation_package.correlation`: FlowNet's cost volume, with FlowNet2's arguments."""

from __future__ import annotations

from torch import Tensor, nn

from polyop import functional

__all__ = ["Correlation", "CorrelationFunction", "correlate"]


def correlate(
    input1: Tensor, input2: Tensor, pad_size: int, kernel_size: int, max_displacement: int, stride1: int, stride2: int
) -> Tensor:
    """Two tensors [N, C, H, W] -> [N, D * D, oh, ow] with D = 2 * (max_displacement // stride2) + 1: means over the
    channels and the window. Beyond the padding, where the original reads other memory, pixels are 0."""
    if min(kernel_size, stride1, stride2) < 1 or min(pad_size, max_displacement) < 0:
        raise ValueError(
            "correlation: expected kernel_size, stride1 and stride2 of at least 1 and pad_size and max_displacement of "
            f"at least 0, got {(kernel_size, stride1, stride2)} and {(pad_size, max_displacement)}"
        )
    border = (kernel_size - 1) // 2
    size = [-(-(n + 2 * (pad_size - border - max_displacement)) // stride1) for n in input1.shape[2:]]
    if min(size) < 1:
        raise ValueError(f"correlation: expected larger images for these arguments, got {list(input1.shape)}")
    padding = pad_size + border - max_displacement  # of the first window
    skipped = max(-padding, 0)
    step = stride1 if skipped % stride1 == 0 else 1
    volume = functional.correlation(
        input1.contiguous(), input2.contiguous(), 2 * border + 1, max_displacement // stride2, step, max(padding, 0), 1,
        stride2,
    )  # fmt: skip
    first, every = skipped // step, stride1 // step
    rows, columns = (slice(first, first + (n - 1) * every + 1, every) for n in size)
    return volume[..., rows, columns].flatten(1, 2) / (kernel_size * kernel_size * input1.shape[1])


class CorrelationFunction:
    """`CorrelationFunction.apply`, differentiable."""

    @staticmethod
    def apply(
        input1: Tensor,
        input2: Tensor,
        pad_size: int = 3,
        kernel_size: int = 3,
        max_displacement: int = 20,
        stride1: int = 1,
        stride2: int = 2,
        corr_multiply: int = 1,
    ) -> Tensor:
        """`corr_multiply` has no effect, as in the original."""
        del corr_multiply
        return correlate(input1, input2, pad_size, kernel_size, max_displacement, stride1, stride2)


class Correlation(nn.Module):
    """`CorrelationFunction` as a layer."""

    def __init__(
        self,
        pad_size: int = 0,
        kernel_size: int = 0,
        max_displacement: int = 0,
        stride1: int = 1,
        stride2: int = 2,
        corr_multiply: int = 1,
    ) -> None:
        super().__init__()
        self.pad_size, self.kernel_size, self.max_displacement = pad_size, kernel_size, max_displacement
        self.stride1, self.stride2, self.corr_multiply = stride1, stride2, corr_multiply

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return correlate(
            input1, input2, self.pad_size, self.kernel_size, self.max_displacement, self.stride1, self.stride2
        )
