# SPDX-License-Identifier: Apache-2.0
"""polyop.session: an ONNX Runtime session with polyop's operators, optionally of an optimized model."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

try:
    import onnxruntime as ort
except ImportError as error:
    raise ImportError("polyop.session needs ONNX Runtime 1.17 or newer: pip install onnxruntime") from error

import polyop
from polyop._base.progress import bars
from polyop._onnxruntime.provider import register, why_not
from polyop.errors import PolyopError, one_line
from polyop.packages import register_all, register_packages


def session(
    path: str | Path,
    *,
    optimize: bool = False,
    accelerate: bool = False,
    options: ort.SessionOptions | None = None,
    providers: Sequence[Any] | None = None,
) -> ort.InferenceSession:
    """Returns a session of the model with polyop's operators and those of packages (`polyop.packages`).

    In ONNX Runtime 1.24 and newer, polyop is an execution provider of the session (`polyop.register`), which also
    replaces ONNX Runtime's own kernels, and nodes that together are one of polyop's operators, where polyop's are
    faster, unless you name the providers.

    Args:
        path: an ONNX file.
        optimize: runs the model that `polyop.optimize` returns. It is cached next to the file as NAME.polyop-HASH.onnx,
            or in a folder NAME.polyop-HASH of the user's cache if that folder is not writable, until the model, polyop
            or ONNX Runtime changes. The first call takes as long as `polyop optimize`, and shows its progress on a
            terminal. A model that cannot be optimized runs unchanged, with a
            warning that gives the reason.
        accelerate: also overrides ONNX Runtime's own operators with polyop's kernels (`get_accelerator_path`) where
            polyop is no execution provider: in ONNX Runtime before 1.24, and if you name the providers. The file does
            not change.
        options: options of the session. polyop's library is registered with them, so they serve one session.
        providers: as in `InferenceSession`. By default those of the options, then polyop, then the CPU.
    """
    path = Path(path)
    if optimize:
        path = _optimized(path)
    options = options or ort.SessionOptions()
    if providers is None and not why_not():
        # ONNX Runtime cannot write nodes of patterns into a file. Any option tells polyop's library that the provider
        # has brought its operators.
        patterns = "0" if options.optimized_model_filepath else "1"
        options.add_provider_for_devices(register(), {"patterns": patterns})
        register_packages(options)
        return ort.InferenceSession(str(path), options, enable_fallback=0)
    register_all(options)
    if accelerate:
        import onnx

        from polyop._onnx.graph import opset_of

        model = onnx.load(path, load_external_data=False)
        options.add_session_config_entry("polyop.opset", str(opset_of(model)))
        options.register_custom_ops_library(polyop.get_accelerator_path())
    return ort.InferenceSession(str(path), options, providers=list(providers or ["CPUExecutionProvider"]))


def _optimized(path: Path) -> Path:
    """Returns the file that `polyop.optimize` wrote for this one, now or in an earlier call."""
    from polyop.optimizing import optimize

    try:
        name = f"{path.stem}.polyop-{_hash(path)}"
        folder = path.absolute().parent
        # A folder for each hash: other models may have external data of the same name.
        next_to_it, in_cache = folder / f"{name}.onnx", _cache() / name / f"{path.stem}.onnx"
        for file in (next_to_it, in_cache):
            if file.is_file():
                return file
        file = next_to_it if os.access(folder, os.W_OK) and not path.is_symlink() else in_cache  # a link is a cache's
        file.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            progress: dict[str, Any] = {"progress": step} if (step := bars(stack)) else {}
            optimize(path, file, **progress)
        return file
    except (PolyopError, OSError) as error:
        warnings.warn(f"{path} runs without optimization: {error}", stacklevel=3)
        return path
    except Exception as error:  # of patterns and of other packages, whatever the model has
        why = f"{type(error).__name__}: {one_line(error)}"
        warnings.warn(f"{path} runs without optimization: {why}", stacklevel=3)
        return path


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "polyop"


def _hash(path: Path) -> str:
    """Returns a hash of the file, its external tensors, and the versions of polyop and ONNX Runtime."""
    from polyop._onnx.files import update_hash

    digest = hashlib.blake2b(f"{polyop.__version__} {ort.__version__}".encode(), digest_size=8)
    update_hash(digest, path)
    return digest.hexdigest()
