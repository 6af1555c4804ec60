"""polyop.session: an ONNX Runtime session that has polyop's operators, of a model made faster where it can be."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnxruntime as ort

import polyop
from polyop.packages import register_all

_BLOCK = 1 << 22


def session(
    path: str | Path,
    *,
    optimize: bool = False,
    accelerate: bool = False,
    options: ort.SessionOptions | None = None,
    providers: Sequence[Any] | None = None,
) -> ort.InferenceSession:
    """A session of the model, polyop's library registered, and those of packages of operators (`polyop.packages`).

    optimize: runs the model as `polyop.optimize` makes it. The result is kept beside the file, as
    NAME.polyop-HASH.onnx, or in the user's cache if that folder cannot be written, and made anew when the model, polyop or
    ONNX Runtime changes. A model that cannot be optimised is run as it is, with a warning that says why.
    accelerate: also puts polyop's kernels in the place of ONNX Runtime's own operators (`get_accelerator_path`); the file
    stays as it is.
    options: of the session; polyop's library is added to them. They serve one session.
    providers: as in `InferenceSession`; the CPU if not given.
    """
    path = Path(path)
    if optimize:
        path = _optimised(path)
    options = options or ort.SessionOptions()
    register_all(options)
    if accelerate:
        import onnx

        from polyop.portable import opset_of

        model = onnx.load(path, load_external_data=False)
        options.add_session_config_entry("polyop.opset", str(opset_of(model)))
        options.register_custom_ops_library(polyop.get_accelerator_path())
    return ort.InferenceSession(str(path), options, providers=list(providers or ["CPUExecutionProvider"]))


def _optimised(path: Path) -> Path:
    """The file that `polyop.optimize` made of this one, now or before."""
    from polyop.optimizing import OptimizeError, optimize

    try:
        name = f"{path.stem}.polyop-{_hash(path)}.onnx"
        for folder in (path.resolve().parent, _cache()):
            if (folder / name).is_file():
                return folder / name
        folder = path.resolve().parent
        if not os.access(folder, os.W_OK):
            folder = _cache()
            folder.mkdir(parents=True, exist_ok=True)
        optimize(path, folder / name)
        return folder / name
    except (OptimizeError, OSError) as error:
        warnings.warn(f"{path} is run as it is: {error}", stacklevel=3)
        return path


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "polyop"


def _hash(path: Path) -> str:
    """Of the file, of its tensors that lie outside, and of what optimises it."""
    from polyop.optimizing.files import locations

    digest = hashlib.blake2b(f"{polyop.__version__} {ort.__version__}".encode(), digest_size=8)
    for part in (path, *(path.parent / location for location in locations(path))):
        with part.open("rb") as stream:
            while block := stream.read(_BLOCK):
                digest.update(block)
    return digest.hexdigest()
