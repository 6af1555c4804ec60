# SPDX-License-Identifier: Apache-2.0
"""polyop as `mmcv._ext`: automatic installation, and all functions that MMCV's Python code requests."""

from __future__ import annotations

import ast
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import polyop
from polyop import formulas
from polyop.compat import mmcv_ext
from polyop.compat.mmcv_ext import FUNCTIONS
from polyop.compat.mmcv_ext._status import markdown
from tests.support.openmmlab import FOLDER
from tests.support.processes import ROOT


def python(code: str, *arguments: str, **environment: str) -> str:
    """Runs code in a new process with mmcv-lite and returns its stdout."""
    path = os.pathsep.join([str(Path(polyop.__file__).parent.parent), str(FOLDER)])
    done = subprocess.run(
        [sys.executable, *(arguments or ("-c", code))],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def calls() -> list[tuple[str, ast.Call]]:
    """Returns all calls of functions of the compiled module in mmcv/ops."""
    found = []
    for file in sorted((FOLDER / "mmcv" / "ops").glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            function = node.func if isinstance(node, ast.Call) else None
            if isinstance(function, ast.Attribute) and getattr(function.value, "id", "") == "ext_module":
                found.append((function.attr, node))
    return found


def test_has_exactly_the_functions_that_mmcv_requests() -> None:
    requested = set()
    for file in sorted((FOLDER / "mmcv" / "ops").glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "load_ext":
                requested |= set(ast.literal_eval(node.args[1]))
    assert len(requested) == 112
    assert set(FUNCTIONS) == requested | {"line_nms_forward"}  # which onedl-mmcv calls, too


def test_arguments_are_those_of_mmcvs_calls() -> None:
    """By name and by number; the tests of the calls themselves cover *args and **kwargs."""
    seen = set()
    for name, call in calls():
        if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
            continue
        if name in ("contour_expand", "pixel_group") and call.keywords:
            continue  # in the branch for another framework
        signature = inspect.signature(FUNCTIONS[name].call)
        signature.bind(*call.args, **{k.arg: None for k in call.keywords})
        seen.add(name)
    assert len(seen) > 90


def test_install_before_mmcv_or_after_a_failed_import() -> None:
    said = python(
        """
import mmcv
try:
    import mmcv.ops
except ModuleNotFoundError as e:
    print(e)
import polyop.compat.mmcv
from mmcv.ops import nms, roi_align
from mmcv.utils.ext_loader import check_ops_exist
from importlib.util import find_spec
print(find_spec('mmcv._ext').origin, mmcv._ext.nms.__name__, mmcv.ops.get_compiler_version())
"""
    )
    assert said.splitlines() == ["No module named 'mmcv._ext'", f"polyop nms polyop {polyop.__version__}"]


def test_install_by_the_environment_or_a_command(tmp_path: Path) -> None:
    said = python("import polyop, sys; print(sys.modules['mmcv._ext'].__spec__.origin)", POLYOP_MMCV="1")
    assert said == "polyop\n"
    neighbour = tmp_path / "neighbour.py"
    neighbour.write_text("word = 'found'")
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, neighbour, mmcv.ops\nprint(__name__, sys.argv[1:], neighbour.word, bool(mmcv.ops.nms))"
    )
    said = python("", "-m", "polyop.compat.mmcv", str(script), "--some", "argument")
    assert said == "__main__ ['--some', 'argument'] found True\n"


def test_keeps_a_real_module_unless_replace_is_set(tmp_path: Path) -> None:
    (tmp_path / "mmcv").mkdir()
    (tmp_path / "mmcv" / "__init__.py").write_text("")
    (tmp_path / "mmcv" / "_ext.py").write_text("nms = 'real'")
    said = python(
        f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
import polyop.compat.mmcv as compat
import mmcv._ext
print(mmcv._ext.nms, compat.install())
print(compat.install(replace=True), mmcv._ext.__spec__.origin)
"""
    )
    assert said.splitlines() == ["real False", "True polyop"]


def test_names_a_missing_function() -> None:
    module = mmcv_ext._module()
    with pytest.raises(AttributeError, match=r"no mmcv\._ext\.top_pool_forward"):
        _ = module.top_pool_forward
    lacking = mmcv_ext._registry.provides("not_built")(lambda: None, "some_forward")
    del FUNCTIONS["some_forward"]
    with pytest.raises(NotImplementedError, match=r"mmcv\._ext\.some_forward needs polyop's operator not_built"):
        lacking()


def test_operators_whose_gradients_are_requested_have_them() -> None:
    gradients = {n for n in FUNCTIONS if "backward" in n and not n.startswith("get_indice_pairs")}
    for name, provided in FUNCTIONS.items():
        for operator in provided.operators if name in gradients else ():
            assert hasattr(formulas.find(operator), "DIFFERENTIABLE"), f"{name}: {operator} has no gradient"


def test_status(capsys: pytest.CaptureFixture) -> None:
    mmcv_ext.status()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + sum("backward" not in name for name in FUNCTIONS)
    row = next(re.split(r"  +", line) for line in lines if line.startswith("roi_align_forward "))
    assert row[1] == "polyop: roi_align"
    assert row[3:] == ["roi_align_backward", "mmcv::MMCVRoiAlign"]
    named = {g for r in mmcv_ext.rows() for g in r.gradient.split(", ")}
    assert row[2] == (
        "cpu, cuda" if torch._C._dispatch_has_kernel_for_dispatch_key("polyop::roi_align", "CUDA") else "cpu"
    )
    gradients = {n for n in FUNCTIONS if "backward" in n and not n.startswith("get_indice_pairs")}
    assert gradients <= named


def test_documentation_has_the_table() -> None:
    page = (ROOT / "docs" / "openmmlab.md").read_text()
    before, _, rest = page.partition("<!-- functions: written by make docs -->\n")
    assert before != page
    assert rest.partition("<!-- end of functions -->")[0].strip() == markdown()
