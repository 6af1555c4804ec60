# SPDX-License-Identifier: Apache-2.0
import numpy as np
import torch
from benchmark import Call, Cases, Contest, call
from contenders import bytes_of, normal, session, with_torch
from inputs import MILLION, gaussian, side_of

cases = Cases(__file__)


@cases.cpu("248x216, 6 anchors, 3 classes, {:.1%} kept", over=[0.01, 0.2])
def _(threads: int, scores_above: float) -> Contest:
    """NVIDIA's PointPillars: 248 x 216 cells, 6 anchors, 3 classes."""
    height, width, anchors, classes = 248, 216, 6, 3
    cls = normal(31, 1, height, width, anchors * classes)
    box, direction = normal(32, 1, height, width, anchors * 7) * 0.1, normal(33, 1, height, width, anchors * 2)
    sizes = np.array([[3.9, 1.6, 1.56], [0.8, 0.6, 1.73], [1.76, 0.6, 1.73]], np.float32).repeat(2, 0)
    table = np.concatenate([sizes, np.tile(np.float32([[0], [1.57]]), (3, 1))], 1)
    bottoms = [-1.78, -0.6, -0.6]
    min_score = float(1 / (1 + np.exp(-np.quantile(cls.reshape(-1, classes).max(1), 1 - scores_above))))
    attributes = {
        "point_cloud_range": [0.0, -39.68, -3.0, 69.12, 39.68, 1.0],
        "anchors": table.ravel().tolist(),
        "anchor_bottom_height": bottoms,
        "dir_offset": 0.78539,
        "dir_limit_offset": 0.0,
        "num_dir_bins": 2,
        "score_thresh": min_score,
    }
    feeds = {"cls": cls, "box": box, "dir": direction}
    ours = session("polyop::DecodeBbox3DPlugin", feeds, threads, ["boxes", "num"], attributes=attributes)
    tc, tb, td = torch.from_numpy(cls), torch.from_numpy(box), torch.from_numpy(direction)
    y, x = torch.linspace(-39.68, 39.68, height), torch.linspace(0, 69.12, width)
    dx, dy, dz, rotation = torch.from_numpy(table).T
    z = dz / 2 + torch.tensor(bottoms).repeat_interleave(2)
    cell = torch.stack(torch.broadcast_tensors(x[None, :, None], y[:, None, None], z), -1).view(-1, 3)
    anchor = torch.stack([dx, dy, dz, rotation], -1).expand(height, width, anchors, 4).reshape(-1, 4)

    def formulation() -> torch.Tensor:
        score, label = tc.view(-1, classes).max(1)
        kept = (score.sigmoid() >= min_score).nonzero()[:, 0]
        b, a = tb.view(-1, 7)[kept], anchor[kept]
        scale = torch.stack([a[:, :2].norm(dim=1)] * 2 + [a[:, 2]], 1)
        turn = b[:, 6] + a[:, 3] - 0.78539
        which = (td.view(-1, 2)[kept, 0] <= td.view(-1, 2)[kept, 1]).float()
        yaw = turn - torch.floor(turn / torch.pi) * torch.pi + 0.78539 + torch.pi * which
        rest = [yaw, label[kept].float(), score[kept].sigmoid()]
        boxes = torch.cat([cell[kept] + b[:, :3] * scale, b[:, 3:6].exp() * a[:, :3], torch.stack(rest, 1)], 1)
        return torch.cat([boxes, boxes.new_zeros(len(cell) - len(boxes), 9)])[None]

    # Of `box` and `dir`, only the kept entries are read.
    moved = bytes_of(cls) + scores_above * bytes_of(box, direction) + height * width * anchors * 9 * 4
    return Contest(
        ours,
        {"torch formulation": with_torch(formulation)},
        moved,
        same=lambda a, b: np.mean(np.abs(a[0] - b[0]) > 1e-2) < 1e-3,
    )


@cases.growth("cells", 1000, MILLION)
def _(n: int) -> Call:
    side, anchors = side_of(n), 6
    table = [3.9, 1.6, 1.56, 0.0] * anchors
    return call(
        "decode_bbox3d", gaussian(1, side, side, anchors * 3), gaussian(1, side, side, anchors * 7) * 0.1,
        gaussian(1, side, side, anchors * 2), point_cloud_range=[0.0, -40, -3, 80, 40, 1], anchors=table,
        anchor_bottom_height=[-1.78, -0.6, -0.6], dir_offset=0.785, dir_limit_offset=0.0, num_dir_bins=2,
        score_thresh=0.9,
    )  # fmt: skip
