# SPDX-License-Identifier: Apache-2.0
import numpy as np
from benchmark import Run
from contenders import in_openvino


def interpolate(x: np.ndarray, name: str, target: list, threads: int, coordinates: str) -> dict[str, Run]:
    """OpenVINO's bicubic resizing of height and width; `name` says whether the target is "scales" or "sizes"."""
    constants = [np.array(target, np.float32 if name == "scales" else np.int64), [2, 3]]
    run = in_openvino("Interpolate", 11, [x], threads, constants, mode="cubic", shape_calculation_mode=name,
                      coordinate_transformation_mode=coordinates, cube_coeff=-0.75, nearest_mode="round_prefer_floor",
                      antialias=False, pads_begin=[], pads_end=[])  # fmt: skip
    return {"OpenVINO Interpolate": run}
