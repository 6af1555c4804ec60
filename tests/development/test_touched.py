# SPDX-License-Identifier: Apache-2.0
"""The tests that `make quick` selects for a change."""

from __future__ import annotations

import sys

import pytest

from tests.support.processes import ROOT, operator_folders


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Returns the output of tools/touched.py for changes of these files: the rest of each line by its first word."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import touched

    def select(*changed: str) -> dict[str, str]:
        monkeypatch.setattr(touched, "changed_files", lambda since: set(changed))
        touched.main()
        return {word: rest for word, _, rest in (line.partition(" ") for line in capsys.readouterr().out.splitlines())}

    yield select
    sys.modules.pop("touched")


@pytest.mark.parametrize("file", ["nms_cpu.cc", "nms.h", "nms_cuda.cu", "nms_reference.cc", "nms_test.cc"])
def test_a_file_of_an_operator_selects_only_that_operator(said, file: str) -> None:
    lines = said(f"ops/boxes/nms/{file}")
    assert lines["cxx"] == "nms_test"
    names = lines["python"].split(" or ")
    assert names[0] == "test_docs."
    assert {"nms", "batched_nms", "nms_rotated"} < set(names[1].split(" and not "))
    assert names[1].startswith("nms and ")
    assert len(names) == 2
    assert lines["build"].split() == ["polyop", "polyop_accelerator", "polyop_onnxruntime", "polyop_torch"]
    files = lines["files"].split()
    for file in ("operators/test_against_torch", "optimizing/test_optimize_greedy_nms", "torch/test_torch"):
        assert f"tests/{file}.py" in files
    for file in ("accelerating/test_accelerate", "onnxruntime/test_provider_patterns", "packaging/test_wheel_matrix"):
        assert f"tests/{file}.py" not in files


def test_a_rooms_header_selects_the_operators_that_include_it_indirectly(said) -> None:
    tests = said("ops/boxes/boxes-inl.h")["cxx"].split()
    assert {"nms_test", "soft_nms_test"} <= set(tests)
    assert not {"my_add_test", "grid_sampler_test", "op_test"} & set(tests)


def test_cases_select_the_python_tests_of_their_operators(said) -> None:
    lines = said("ops/boxes/nms/cases.py")
    assert lines["cxx"] == ""
    assert lines["python"].startswith("test_docs. or nms and not ")
    selected = [name.split(" and ")[0] for name in said("ops/rois/cases.py")["python"].split(" or ")]
    assert {"roi_align", "roi_pool"} <= set(selected)
    assert "nms" not in selected


def test_a_rooms_source_selects_the_operators_that_call_it(said) -> None:
    tests = said("ops/rois/upright_pool.cc")["cxx"].split()
    assert {"roi_align_test", "multi_level_roi_align_test"} <= set(tests)
    assert not {"roi_align_rotated_test", "nms_test"} & set(tests)


def test_the_definition_selects_every_operator(said) -> None:
    tests = said("core/signature.h")["cxx"].split()
    assert {f"{folder.name}_test" for folder in operator_folders()} <= set(tests)
    assert {"signature_test", "robustness_test"} <= set(tests)


def test_the_program_selects_its_tests(said) -> None:
    lines = said("cli/run.cc")
    assert "files_test" in lines["cxx"].split()
    assert "test_cli." in lines["python"].split(" or ")


def test_no_test_that_needs_a_gpu_is_selected(said) -> None:
    lines = said("python/polyop/_torch/autocast.py")
    assert "tests/torch/test_torch.py" in lines["files"].split()
    assert "tests/gpu/" not in lines["files"]


def test_documentation_selects_no_cxx_test(said) -> None:
    lines = said("docs/performance.md")
    assert lines["cxx"] == ""
    assert "test_docs." in lines["python"].split(" or ")
    assert said("LICENSE") == {"cxx": "", "build": "", "python": "", "files": ""}


@pytest.mark.parametrize(
    ("file", "tests"),
    [
        ("python/polyop/optimizing/patterns/grid_sample.py", ["optimize_grid_sample"]),
        ("python/polyop/optimizing/report.py", ["optimize_command"]),
        ("python/polyop/compat/natten/functional.py", ["natten"]),
        ("python/polyop/compat/mmcv_ext/points.py", ["mmcv_ext_points"]),
        ("python/polyop/compat/dcnv3.py", ["dcn"]),
        ("python/polyop/batch/tables.py", ["batch", "batch_command", "image_reader", "many_machines", "ray"]),
        ("python/polyop/_torch/gradients.py", ["gradients"]),
        ("python/polyop/_commands/attach.py", ["attach", "attach_command"]),
        ("python/polyop/_base/libraries.py", ["isolation", "package"]),
        ("python/polyop/__init__.py", ["isolation", "package"]),
        ("python/polyop/portable.py", ["portable_files", "portable_parts"]),
        ("python/polyop/onnxscript.py", ["onnx_schemas"]),
        ("adapters/c/call.cc", ["c", "numpy"]),
        ("requirements/test.txt", ["tools"]),
        ("LICENSE", []),
    ],
)
def test_a_room_selects_its_own_tests(said, file: str, tests: list[str]) -> None:
    import touched

    assert touched.tests_of(file) == tests


def test_every_room_of_the_package_has_a_room_of_tests() -> None:
    rooms = {path.parent.name.lstrip("_") for path in ROOT.glob("python/polyop/*/__init__.py")}
    assert not {room for room in rooms if not list(ROOT.glob(f"tests/{room}/test_*.py"))}


def test_every_test_of_the_table_exists(said) -> None:
    import touched

    names = {name for tests in touched.PYTHON_TESTS.values() for name in tests}
    assert not {name for name in names if not list(ROOT.glob(f"tests/*/test_{name}.py"))}
    folders = {file for file in touched.PYTHON_TESTS if not (ROOT / file).exists()}
    assert not folders


def test_every_python_module_selects_a_test(said) -> None:
    import touched

    modules = [path.relative_to(ROOT).as_posix() for path in ROOT.glob("python/polyop/**/*.py")]
    assert [module for module in modules if not touched.tests_of(module)] == []
