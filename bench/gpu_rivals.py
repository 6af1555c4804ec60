"""CUDA kernels of other projects for bench/gpu.py: torchvision's operators, and those of a checkout of
github.com/open-mmlab/mmcv that POLYOP_MMCV_SOURCE names.

`python bench/gpu_rivals.py` compiles MMCV's kernels without running them, into build/rivals/mmcv_kernels/. It needs
nvcc and a torch with CUDA's headers; POLYOP_TORCH_ROOT selects a torch other than the one that is imported, and
CUDAARCHS the GPU (90). A library that is there already is used without a checkout and without a compiler, so it may
come from another machine.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import torch
from gradient_rivals import BUILD

NAME = "mmcv_kernels"
# The functions of MMCV's sources, by the name of the file.
FUNCTIONS = {
    "roi_align": ["roi_align_forward", "roi_align_backward"],
    "roi_align_rotated": ["roi_align_rotated_forward", "roi_align_rotated_backward"],
    "roi_pool": ["roi_pool_forward", "roi_pool_backward"],
    "border_align": ["border_align_forward", "border_align_backward"],
    "rotated_feature_align": ["rotated_feature_align_forward", "rotated_feature_align_backward"],
    "active_rotated_filter": ["active_rotated_filter_forward", "active_rotated_filter_backward"],
    "deform_conv": ["deform_conv_forward", "deform_conv_backward_input", "deform_conv_backward_parameters"],
    "modulated_deform_conv": ["modulated_deform_conv_forward", "modulated_deform_conv_backward"],
    "ms_deform_attn": ["ms_deform_attn_forward", "ms_deform_attn_backward"],
    "carafe": ["carafe_forward", "carafe_backward"],
    "nms": ["nms"],
    "nms_rotated": ["nms_rotated"],
    "box_iou_rotated": ["box_iou_rotated"],
    "voxelization": ["hard_voxelize_forward", "dynamic_voxelize_forward"],
    "scatter_points": ["dynamic_point_to_voxel_forward", "dynamic_point_to_voxel_backward"],
    "furthest_point_sample": ["furthest_point_sampling_forward"],
    "ball_query": ["ball_query_forward"],
    "knn": ["knn_forward"],
    "three_nn": ["three_nn_forward"],
    "three_interpolate": ["three_interpolate_forward", "three_interpolate_backward"],
    "group_points": ["group_points_forward", "group_points_backward"],
    "points_in_boxes": ["points_in_boxes_part_forward", "points_in_boxes_all_forward"],
    "roiaware_pool3d": ["roiaware_pool3d_forward", "roiaware_pool3d_backward"],
    "correlation": ["correlation_forward", "correlation_backward"],
    "psamask": ["psamask_forward", "psamask_backward"],
}
# Files that are compiled together, which parses PyTorch's headers only once for all of them.
UNITS = [
    ["roi_align", "roi_align_rotated", "roi_pool", "deform_conv", "modulated_deform_conv", "ms_deform_attn"],
    ["nms", "furthest_point_sample", "ball_query", "knn", "three_nn", "three_interpolate", "group_points"],
    ["carafe", "voxelization", "correlation", "border_align", "rotated_feature_align"],
    ["active_rotated_filter", "psamask", "points_in_boxes", "nms_rotated"],
    # Apart, because scatter_points and voxelization, and both files of points in boxes, declare the same names.
    ["box_iou_rotated", "scatter_points", "roiaware_pool3d"],
]
# torch.ops has no int and no float: every function is registered with the types that it has.
REGISTRATION = """
#include <torch/library.h>
namespace {
template <class T> struct Widened { using type = T; };
template <> struct Widened<int> { using type = int64_t; };
template <> struct Widened<float> { using type = double; };
template <class T> using WidenedOf = typename Widened<std::remove_cv_t<std::remove_reference_t<T>>>::type;
template <auto function> struct Registered;
template <class R, class... A, R (*function)(A...)> struct Registered<function> {
  static WidenedOf<R> Call(WidenedOf<A>... values) { return function(values...); }
};
}  // namespace
"""


def sources_of(csrc: Path) -> dict[str, str]:
    """Returns the texts of the sources by name. All kernels are called through MMCV's own functions."""
    kernels = {
        f"kernels_{i}.cu": "".join(f'#include "{csrc}/pytorch/cuda/{file}_cuda.cu"\n' for file in files)
        for i, files in enumerate(UNITS)
    }
    functions = [name for names in FUNCTIONS.values() for name in names]
    lines = [f'#include "{csrc}/pytorch/{file}.cpp"' for file in FUNCTIONS]
    lines += [REGISTRATION, f"TORCH_LIBRARY({NAME}, m) {{"]
    lines += [f'  m.def("{name}", &Registered<&::{name}>::Call);' for name in functions]
    # Its own file, because it declares types that the functions' files declare too.
    return {
        **kernels,
        "functions.cpp": "\n".join([*lines, "}\n"]),
        "dispatch.cpp": f'#include "{csrc}/pytorch/cuda/cudabind.cpp"\n',
    }


def run(*command: str | Path) -> None:
    subprocess.run([str(word) for word in command], check=True)


def compile_mmcv(csrc: Path, folder: Path) -> Path:
    """Compiles what has changed, and returns the library."""
    root = Path(os.environ.get("POLYOP_TORCH_ROOT", Path(torch.__file__).parent))
    cuda = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
    includes = [csrc / "common", csrc / "common" / "cuda", csrc / "pytorch", csrc, root / "include"]
    includes += [root / "include" / "torch" / "csrc" / "api" / "include", cuda / "include"]
    includes += [Path(path) for path in os.environ.get("CPATH", "").split(":") if path]
    flags = [*(f"-I{path}" for path in includes), "-std=c++20", "-O3", "-w", "-DMMCV_WITH_CUDA"]
    architecture = os.environ.get("CUDAARCHS", "90").removesuffix("-real")
    device = [f"-gencode=arch=compute_{architecture},code=sm_{architecture}", "--expt-relaxed-constexpr"]
    # As PyTorch's own builds of extensions: the kernels use atomic additions of its Half.
    device += ["-D__CUDA_NO_HALF_OPERATORS__", "-D__CUDA_NO_HALF_CONVERSIONS__", "-D__CUDA_NO_HALF2_OPERATORS__"]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "lock").unlink(missing_ok=True)
    library = folder / f"{NAME}.so"

    def compile_source(name: str, text: str) -> Path:
        """Compiles a source that has changed."""
        path, to = folder / name, folder / f"{name}.o"
        if to.exists() and path.exists() and path.read_text() == text:
            return to
        path.write_text(text)
        part = folder / f"{name}.part.o"
        if name.endswith(".cu"):
            run(cuda / "bin" / "nvcc", "-c", path, "-o", part, *flags, *device, "-Xcompiler=-fPIC")
        else:
            run("g++", "-c", path, "-o", part, *flags, "-fPIC")
            # They refer to all kernels, and to loops for the CPU, most of which are not compiled.
            run("objcopy", "--weaken", part)
        part.replace(to)
        library.unlink(missing_ok=True)
        return to

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        objects = list(threads.map(compile_source, *zip(*sources_of(csrc).items(), strict=True)))
    if not library.exists():
        libraries = ["-lc10", "-lc10_cuda", "-ltorch_cpu", "-ltorch_cuda", "-ltorch"]
        run(
            "g++",
            "-shared",
            "-o",
            library,
            *objects,
            f"-L{root / 'lib'}",
            *libraries,
            f"-L{cuda / 'lib64'}",
            "-lcudart",
        )
    return library


@cache
def mmcv() -> Any:
    """Returns MMCV's functions as torch.ops, or None without a library and without a checkout."""
    folder, root = BUILD / NAME, os.environ.get("POLYOP_MMCV_SOURCE")
    library = folder / f"{NAME}.so"
    try:
        if root is not None and (not library.exists() or (folder / "functions.cpp").exists()):
            library = compile_mmcv(Path(root).resolve() / "mmcv" / "ops" / "csrc", folder)
        elif not library.exists():
            return None
        torch.ops.load_library(str(library))
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        print(f"MMCV is not a rival here: {error}", file=sys.stderr)
        return None
    return getattr(torch.ops, NAME)


@cache
def torchvision() -> Any:
    """Returns torchvision's operators, or None if it is not installed."""
    try:
        import torchvision as module
    except (ImportError, RuntimeError) as error:
        print(f"torchvision is not a rival here: {error}", file=sys.stderr)
        return None
    return torch.ops.torchvision if hasattr(module, "ops") else None


def main() -> None:
    root = os.environ.get("POLYOP_MMCV_SOURCE")
    if root is None or shutil.which("g++") is None:
        raise SystemExit("expected POLYOP_MMCV_SOURCE, a checkout of MMCV, and a C++ compiler")
    print(compile_mmcv(Path(root).resolve() / "mmcv" / "ops" / "csrc", BUILD / NAME))


if __name__ == "__main__":
    main()
