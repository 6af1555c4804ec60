# SPDX-License-Identifier: Apache-2.0
"""Kernels of other projects: torchvision's operators, and those of checkouts of github.com/open-mmlab/mmcv and
github.com/OpenGVLab/DCNv4 that POLYOP_MMCV_SOURCE and POLYOP_DCNV4_SOURCE name. Where torchvision is not installed,
POLYOP_TORCHVISION_SOURCE may name a checkout of github.com/pytorch/vision whose sources fit this PyTorch. If torch's
default device is a GPU, MMCV's functions are its CUDA kernels, otherwise its loops for the CPU, with the same names.

`python bench/projects.py` compiles the CUDA kernels without running them, into build/rivals/. It needs nvcc and a torch
with CUDA's headers; POLYOP_TORCH_ROOT selects a torch other than the one that is imported, and CUDAARCHS the GPU (90).
A library that is there already is used without a checkout and without a compiler, so it may come from another machine.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch

BUILD = Path(__file__).parents[1] / "build" / "rivals"
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
# Those with loops for the CPU.
LOOPS = {"bezier_align": ["bezier_align_backward"]} | {
    file: FUNCTIONS[file]
    for file in (
        "roi_align", "roi_align_rotated", "rotated_feature_align", "deform_conv", "modulated_deform_conv",
        "active_rotated_filter", "psamask",
    )
}  # fmt: skip
TORCHVISION = ("roi_align", "roi_pool", "deform_conv2d")
# Files that are compiled together, which parses PyTorch's headers only once for all of them.
UNITS = [
    ["roi_align", "roi_align_rotated", "roi_pool", "deform_conv", "modulated_deform_conv", "ms_deform_attn"],
    ["nms", "furthest_point_sample", "ball_query", "knn", "three_nn", "three_interpolate", "group_points"],
    ["carafe", "voxelization", "correlation", "border_align", "rotated_feature_align"],
    ["active_rotated_filter", "psamask", "points_in_boxes", "nms_rotated"],
    # Apart, because scatter_points and voxelization, and both files of points in boxes, declare the same names.
    ["box_iou_rotated", "scatter_points", "roiaware_pool3d"],
]
DCNV4 = ["dcnv4_forward", "dcnv4_backward", "flash_deform_attn_forward", "flash_deform_attn_backward"]
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


def registration(library: str, functions: list[str]) -> list[str]:
    lines = [f'  m.def("{name}", &Registered<&::{name}>::Call);' for name in functions]
    return [REGISTRATION, f"TORCH_LIBRARY_FRAGMENT({library}, m) {{", *lines, "}\n"]


def mmcv_sources(csrc: Path) -> dict[str, str]:
    """Returns the texts of the sources by name. All kernels are called through MMCV's own functions."""
    kernels = {
        f"kernels_{i}.cu": "".join(f'#include "{csrc}/pytorch/cuda/{file}_cuda.cu"\n' for file in files)
        for i, files in enumerate(UNITS)
    }
    lines = [f'#include "{csrc}/pytorch/{file}.cpp"' for file in FUNCTIONS]
    lines += registration("mmcv_kernels", [name for names in FUNCTIONS.values() for name in names])
    # Its own file, because it declares types that the functions' files declare too.
    return {
        **kernels,
        "functions.cpp": "\n".join(lines),
        "dispatch.cpp": f'#include "{csrc}/pytorch/cuda/cudabind.cpp"\n',
    }


def dcnv4_sources(src: Path) -> dict[str, str]:
    kernels = {f"{file}.cu": f'#include "{src}/cuda/{file}_cuda.cu"\n' for file in ("dcnv4", "flash_deform_attn")}
    return {**kernels, "functions.cpp": "\n".join([f'#include "{src}/dcnv4.h"', *registration("dcnv4_kernels", DCNV4)])}


@dataclass(frozen=True)
class Project:
    """Another project. `csrc` is the folder of its sources in a checkout that `variable` names."""

    title: str
    variable: str
    csrc: str
    sources_of: Callable[[Path], dict[str, str]]
    includes: tuple[str, ...]  # in the folder of the sources
    flags: tuple[str, ...]


PROJECTS = {
    "mmcv_kernels": Project(
        "MMCV",
        "POLYOP_MMCV_SOURCE",
        "mmcv/ops/csrc",
        mmcv_sources,
        ("common", "common/cuda", "pytorch", "."),
        ("-DMMCV_WITH_CUDA",),
    ),
    "dcnv4_kernels": Project(
        "DCNv4", "POLYOP_DCNV4_SOURCE", "DCNv4_op/src", dcnv4_sources, (".", "cuda"), ("-DWITH_CUDA",)
    ),
}


def run(*command: str | Path) -> None:
    subprocess.run([str(word) for word in command], check=True)


def compile_kernels(name: str) -> Path:
    """Compiles what has changed of a project, and returns the library."""
    project, folder = PROJECTS[name], BUILD / name
    csrc = Path(os.environ[project.variable]).resolve() / project.csrc
    root = Path(os.environ.get("POLYOP_TORCH_ROOT", Path(torch.__file__).parent))
    cuda = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
    includes = [*(csrc / path for path in project.includes), root / "include"]
    includes += [root / "include" / "torch" / "csrc" / "api" / "include", cuda / "include"]
    includes.append(Path(sysconfig.get_path("include")))
    includes += [Path(path) for path in os.environ.get("CPATH", "").split(":") if path]
    flags = [*(f"-I{path}" for path in includes), "-std=c++20", "-O3", "-w", *project.flags]
    architecture = os.environ.get("CUDAARCHS", "90").removesuffix("-real")
    device = [f"-gencode=arch=compute_{architecture},code=sm_{architecture}", "--expt-relaxed-constexpr"]
    # As PyTorch's own builds of extensions: the kernels use atomic additions of its Half.
    device += ["-D__CUDA_NO_HALF_OPERATORS__", "-D__CUDA_NO_HALF_CONVERSIONS__", "-D__CUDA_NO_HALF2_OPERATORS__"]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "lock").unlink(missing_ok=True)
    library = folder / f"{name}.so"

    def compile_source(file: str, text: str) -> Path:
        """Compiles a source that has changed."""
        path, to = folder / file, folder / f"{file}.o"
        if to.exists() and path.exists() and path.read_text() == text:
            return to
        path.write_text(text)
        part = folder / f"{file}.part.o"
        if file.endswith(".cu"):
            run(cuda / "bin" / "nvcc", "-c", path, "-o", part, *flags, *device, "-Xcompiler=-fPIC")
        else:
            run("g++", "-c", path, "-o", part, *flags, "-fPIC")
            # They refer to all kernels, and to loops for the CPU, most of which are not compiled.
            run("objcopy", "--weaken", part)
        part.replace(to)
        library.unlink(missing_ok=True)
        return to

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        objects = list(threads.map(compile_source, *zip(*project.sources_of(csrc).items(), strict=True)))
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


def loaded(name: str) -> Any:
    """Returns a project's functions as torch.ops, or None without a library and without a checkout."""
    project, folder = PROJECTS[name], BUILD / name
    library = folder / f"{name}.so"
    try:
        if project.variable in os.environ and (not library.exists() or (folder / "functions.cpp").exists()):
            library = compile_kernels(name)
        elif not library.exists():
            return None
        torch.ops.load_library(str(library))
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        print(f"{project.title} is not a rival here: {error}", file=sys.stderr)
        return None
    return getattr(torch.ops, name)


def compile_sources(name: str, sources: dict[str, str], includes: Sequence[Path]) -> Any:
    """Compiles sources, given as text, and loads the library. Recompiles if the text has changed."""
    from torch.utils import cpp_extension

    folder = BUILD / name
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in sources.items():
        path = folder / f"{file}.cpp"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    (folder / "lock").unlink(missing_ok=True)  # PyTorch would wait for a process that was killed
    cpp_extension.load(
        name,
        [str(folder / f"{file}.cpp") for file in sources],
        build_directory=str(folder),
        extra_include_paths=[str(path) for path in includes],
        extra_cflags=["-O3", "-w"],
        is_python_module=False,
    )
    return getattr(torch.ops, name)


@cache
def mmcv_loops() -> Any:
    """Returns MMCV's loops for the CPU, or None without a checkout."""
    root = os.environ.get("POLYOP_MMCV_SOURCE")
    if root is None:
        return None
    csrc = Path(root).resolve() / "mmcv" / "ops" / "csrc"
    sources = {}
    for file, functions in LOOPS.items():
        included = [f'#include "{csrc}/pytorch/{folder}{file}.cpp"' for folder in ("", "cpu/")]
        sources[file] = "\n".join(included + registration("mmcv_loops", functions))
    return compile_sources("mmcv_loops", sources, [csrc / "common", csrc])


@cache
def mmcv_kernels() -> Any:
    return loaded("mmcv_kernels")


def on_gpu() -> bool:
    return torch.get_default_device().type == "cuda"


def mmcv() -> Any:
    return mmcv_kernels() if on_gpu() else mmcv_loops()


@cache
def mmcv_diff_iou_rotated() -> Any:
    """Returns MMCV's module that composes the IoU of rotated boxes, with polyop's sorting of vertices, or None without
    a checkout.
    """
    root = os.environ.get("POLYOP_MMCV_SOURCE")
    if root is None:
        return None
    sort = torch.ops.polyop.diff_iou_rotated_sort_vertices
    compiled = SimpleNamespace(diff_iou_rotated_sort_vertices_forward=sort)
    module = ModuleType("mmcv_diff_iou_rotated")
    module.__dict__["ext_loader"] = SimpleNamespace(load_ext=lambda *_: compiled)
    text = (Path(root) / "mmcv" / "ops" / "diff_iou_rotated.py").read_text()
    exec(text.replace("from ..utils import ext_loader", ""), module.__dict__)
    return module


@cache
def dcnv4() -> Any:
    return loaded("dcnv4_kernels")


def dcnv4_threads(items: int, threads: int, most: int) -> int:
    """Returns the threads of a block as DCNv4's code chooses them: those of up to 64 items, if they divide all."""
    return max(n for n in range(1, 65) if items % n == 0 and (n == 1 or n * threads <= most)) * threads


@cache
def torchvision() -> Any:
    """Returns torchvision's operators, or None if it is not installed and there is no checkout."""
    try:
        import torchvision as module
    except (ImportError, RuntimeError) as error:
        print(f"torchvision is not installed: {error}", file=sys.stderr)
    else:
        return torch.ops.torchvision if hasattr(module, "ops") else None
    root = os.environ.get("POLYOP_TORCHVISION_SOURCE")
    if root is None:
        return None
    csrc = Path(root).resolve() / "torchvision" / "csrc"
    parts = ("{}.cpp", "cpu/{}_kernel.cpp", "autograd/{}_kernel.cpp")
    sources = {op: "".join(f'#include "{csrc}/ops/{part.format(op)}"\n' for part in parts) for op in TORCHVISION}
    compile_sources("torchvision_kernels", sources, [csrc])
    return torch.ops.torchvision


def main() -> None:
    named = [name for name, project in PROJECTS.items() if project.variable in os.environ]
    if not named or shutil.which("g++") is None:
        variables = " or ".join(project.variable for project in PROJECTS.values())
        raise SystemExit(f"expected {variables}, a checkout, and a C++ compiler")
    for name in named:
        print(compile_kernels(name))


if __name__ == "__main__":
    main()
