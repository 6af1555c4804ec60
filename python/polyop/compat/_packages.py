# SPDX-License-Identifier: Apache-2.0
"""The packages that polyop replaces, and how Python finds the replacement."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from polyop.compat import _names

_FAILURES = (ImportError, OSError, RuntimeError, AttributeError)  # of extensions that were built for another PyTorch


@dataclass(frozen=True)
class Replacement:
    """A module of polyop that answers to the name of another package's module."""

    name: str
    """The module that other code imports: "torch_scatter", or "groundingdino._C" for a package's compiled part."""
    module: str
    """The module of polyop.compat, with the same functions."""
    parts: Sequence[str] = ()
    """The modules inside, which code imports as well."""
    install: Callable[[], object] | None = None
    """Called instead of registering the module."""
    also: Callable[[], object] | None = None
    """Called in addition to registering the module."""
    check: Callable[[], str | None] | None = None
    """Called instead of importing the module; `failure` returns its result."""
    version: str | None = None
    """The version that importlib.metadata and pkg_resources report then, for packages whose code asks for it."""
    is_anywhere: bool = False
    """True for a compiled part that several packages have under this name: it also replaces theirs, `from . import`."""

    @property
    def package(self) -> str | None:
        """The package that must be installed because this is a part of it, or None."""
        return self.name.rpartition(".")[0] or None

    def failure(self) -> str | None:
        """Returns why the module cannot be imported, or None if it can. Its package, if it is a part, is installed."""
        if self.name in sys.modules:
            return None
        if self.check is not None:
            return self.check()
        before = set(sys.modules)
        try:
            importlib.import_module(self.name)
        except _FAILURES as error:
            for name in set(sys.modules) - before:
                if name == self.name or name.startswith(f"{self.name}."):
                    del sys.modules[name]
            return str(error).splitlines()[0] if str(error) else type(error).__name__
        return None

    def is_applicable(self) -> bool:
        """Returns False if this is a part of a package that is not installed."""
        try:
            return self.package is None or importlib.util.find_spec(self.package) is not None
        except (ImportError, ValueError):
            return False

    def register(self) -> None:
        """Makes `import NAME` find polyop's module."""
        if self.install is not None:
            self.install()
            return
        sys.modules[self.name] = importlib.import_module(self.module)
        for part in self.parts:
            sys.modules[f"{self.name}.{part}"] = importlib.import_module(f"{self.module}.{part}")
        if self.also is not None:
            self.also()
        if self.version is not None:
            _names.announce_version(self.name, self.version)
        if self.is_anywhere:
            _names.answer_in_any_package(self.name, self.module)
        parent = sys.modules.get(self.package or "")
        if parent is not None:
            setattr(parent, self.name.rpartition(".")[2], sys.modules[self.name])


def _torchvision_failure() -> str | None:
    from polyop.compat import torchvision

    return torchvision.failure()


def _install_torchvision() -> None:
    from polyop.compat import torchvision

    torchvision.install()


def _install_mmcv() -> None:
    from polyop.compat import mmcv_ext

    mmcv_ext.install(replace=True)


def _allocate_on_cpu() -> None:
    from polyop.compat import _on_cpu

    _on_cpu.watch()


def _install_mamba() -> None:
    from polyop.compat import mamba_ssm

    mamba_ssm.install(install)


_PCDET = {
    "bev_pool.bev_pool_ext": "bev_pool",
    "ingroup_inds.ingroup_inds_cuda": "ingroup_inds",
    "iou3d_nms.iou3d_nms_cuda": "iou3d_nms",
    "pointnet2.pointnet2_batch.pointnet2_batch_cuda": "pointnet2_batch",
    "pointnet2.pointnet2_stack.pointnet2_stack_cuda": "pointnet2_stack",
    "roiaware_pool3d.roiaware_pool3d_cuda": "roiaware_pool3d",
    "roipoint_pool3d.roipoint_pool3d_cuda": "roipoint_pool3d",
}
_SPCONV = ("conv", "core", "functional", "identity", "modules", "ops", "pool", "spatial", "tables", "utils")
_ATTENTION = "polyop.compat.ms_deform_attn"
REPLACEMENTS = {
    replacement.name: replacement
    for replacement in (
        Replacement(
            "torch_scatter", "polyop.compat.torch_scatter",
            ("composite", "scatter", "segment_coo", "segment_csr", "testing", "utils"),
        ),
        Replacement(
            "torch_cluster", "polyop.compat.torch_cluster",
            ("fps", "graclus", "grid", "knn", "nearest", "radius", "rw", "sampler", "testing"),
        ),
        Replacement("pyg_lib", "polyop.compat.pyg_lib", ("library", "ops", "sampler")),
        Replacement("torch_sparse", "polyop.compat.torch_sparse"),
        Replacement(
            "torchvision._C", "polyop.compat.torchvision", install=_install_torchvision, check=_torchvision_failure
        ),
        Replacement("MultiScaleDeformableAttention", _ATTENTION),
        Replacement("groundingdino._C", _ATTENTION),
        Replacement("DCNv3", "polyop.compat.dcnv3", version="1.1"),
        Replacement("DCNv4", "polyop.compat.dcnv4", ("ext", "functions", "modules"), version="1.0.0.post2"),
        Replacement("pointnet2_ops._ext", "polyop.compat.pointnet2_ext"),
        Replacement("pointnet2_cuda", "polyop.compat.pointnet2_cuda", also=_allocate_on_cpu),
        Replacement("pointops", "polyop.compat.pointops"),
        Replacement("pointops_cuda", "polyop.compat.pointops_cuda", also=_allocate_on_cpu),
        Replacement("knn_cuda", "polyop.compat.knn_cuda"),
        Replacement("chamfer", "polyop.compat.chamfer"),
        Replacement("chamferdist", "polyop.compat.chamferdist"),
        Replacement("bev_pool_v2_ext", "polyop.compat.bev_pool_v2_ext", is_anywhere=True),
        Replacement("adet._C", "polyop.compat.adet_ext"),
        Replacement("detectron2._C", "polyop.compat.detectron2_ext"),
        Replacement("spatial_correlation_sampler", "polyop.compat.spatial_correlation_sampler"),
        Replacement("selective_scan_cuda", "polyop.compat.selective_scan_cuda"),
        *(
            Replacement(f"selective_scan_cuda_{mode}", "polyop.compat.selective_scan_cuda_core")
            for mode in ("core", "oflex", "nrow")
        ),
        Replacement("causal_conv1d_cuda", "polyop.compat.causal_conv1d_cuda"),
        Replacement("causal_conv1d", "polyop.compat.causal_conv1d", ("causal_conv1d_interface", "causal_conv1d_varlen", "cpp_functions")),
        Replacement("mamba_ssm", "polyop.compat.mamba_ssm", install=_install_mamba),
        Replacement("natten", "polyop.compat.natten", ("context", "functional", "modules")),
        Replacement("mmcv._ext", "polyop.compat.mmcv_ext", install=_install_mmcv),
        Replacement("alt_cuda_corr", "polyop.compat.alt_cuda_corr"),
        Replacement("corr_sampler", "polyop.compat.corr_sampler"),
        Replacement("correlation_cuda", "polyop.compat.correlation_cuda"),
        Replacement("correlation_package", "polyop.compat.correlation_package", ("correlation",)),
        Replacement(
            "spconv", "polyop.compat.spconv",
            ("constants", "core", "utils", "pytorch", *(f"pytorch.{part}" for part in _SPCONV)),
        ),
        Replacement("cumm", "polyop.compat.cumm", ("tensorview",)),
        *(
            Replacement(f"pcdet.ops.{name}", f"polyop.compat.pcdet.{module}", also=_allocate_on_cpu)
            for name, module in _PCDET.items()
        ),
    )
}  # fmt: skip


_DISTRIBUTIONS = {
    "adelaidet": "adet",
    "groundingdino_py": "groundingdino",
    "mmcv_full": "mmcv",
    "mmcv_lite": "mmcv",
    "onedl_mmcv": "mmcv",
    "openpcdet": "pcdet",
    "vmamba": "selective_scan_cuda_core",
}
"""Packages by the names of their distributions, where these differ."""
_CUDA_SUFFIX = re.compile(r"_cu\d+$")


def modules_called(name: str) -> list[str]:
    """Returns the names of the modules, keys of REPLACEMENTS, that a user means by a name.

    That is a module, a package, or a distribution: "mmcv._ext", "mmcv" or "mmcv-full", "spconv" or "spconv-cu118".
    """
    if name in REPLACEMENTS:
        return [name]
    plain = _CUDA_SUFFIX.sub("", name.partition("==")[0].strip().replace("-", "_").lower())
    plain = _DISTRIBUTIONS.get(plain, plain)
    return [known for known in REPLACEMENTS if f"{known.lower()}.".startswith(f"{plain}.")]


def install(*names: str, replace: bool = False) -> list[str]:
    """Installs polyop in place of these modules, or of all that it knows, and returns those that are installed now.

    A module that is there and loads is kept, unless `replace` is True. A part of a package that is not installed, such
    as `groundingdino._C`, is left out. Raises ValueError for a name that polyop does not know.
    """
    unknown = [name for name in names if name not in REPLACEMENTS]
    if unknown:
        raise ValueError(f"install: expected names out of {', '.join(REPLACEMENTS)}, got {', '.join(unknown)}")
    installed = []
    for name in names or REPLACEMENTS:
        replacement = REPLACEMENTS[name]
        if replacement.is_applicable() and (replace or replacement.failure() is not None):
            replacement.register()
            installed.append(name)
    return installed
