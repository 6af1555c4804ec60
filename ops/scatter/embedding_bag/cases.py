# SPDX-License-Identifier: Apache-2.0
import numpy as np
import torch
from benchmark import Cases, Contest
from contenders import in_openvino, normal, session, with_torch

cases = Cases(__file__)


@cases.cpu("{} of 4,000 bags of 20 rows of 100,000, {} channels", over=[("sum", 64), ("mean", 128), ("max", 32)])
def _(threads: int, mode: str, channels: int) -> Contest:
    table = normal(32, 100_000, channels)
    indices = np.random.default_rng(33).integers(0, 100_000, 80_000)
    offsets = np.arange(0, 80_000, 20)
    inputs = {"weight": table, "indices": indices, "offsets": offsets}
    ours = session("polyop::EmbeddingBag", inputs, threads, attributes={"mode": mode})
    weight, index, starts = (torch.from_numpy(array) for array in inputs.values())
    rivals = {
        "torch embedding_bag": with_torch(lambda: torch.nn.functional.embedding_bag(index, weight, starts, mode=mode))
    }
    if mode != "max":
        rivals["OpenVINO EmbeddingBagOffsets"] = in_openvino(
            "EmbeddingBagOffsets",
            15,
            [table, indices.astype(np.int32), offsets.astype(np.int32)],
            threads,
            reduction=mode,
        )
    return Contest(ours, rivals, 84_000 * channels * 4)


cases.small([(6, 3), torch.tensor([1, 5, 2, 2, 0]), torch.tensor([0, 3, 3]), (5,)])
