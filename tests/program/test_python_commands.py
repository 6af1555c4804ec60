"""The commands that the program hands over to `python -m polyop`: which Python, help, exit codes and errors."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from polyop._commands import main as commands
from polyop._commands.errors import CommandError, ExitCode, describe
from polyop._commands.numbers import parse_integer, parse_real
from polyop.errors import PolyopError
from polyop.optimizing import FileError
from tests.program.test_cli import NO_NUMBERS
from tests.support.machines import identity
from tests.support.processes import environment


def run(*words: object, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=environment(**variables),
        capture_output=True,
        text=True,
        check=False,
    )


def test_both_help_texts_are_the_same(program: str, tmp_path: Path) -> None:
    listed = run(program, "--help", cwd=tmp_path).stdout
    for name in commands.COMMANDS:
        by_program = run(program, name, "--help", cwd=tmp_path)
        by_python = run(sys.executable, "-m", "polyop", name, "--help", cwd=tmp_path)
        assert by_program.returncode == by_python.returncode == 0, by_program.stderr
        assert by_program.stdout == by_python.stdout
        assert by_python.stdout.startswith(f"usage: polyop {name} ")
        summary = by_python.stdout.split("\n\n")[1]
        assert re.search(rf"^  {name} +{re.escape(' '.join(summary.split()))}$", listed, re.MULTILINE), listed


def test_python_lists_all_commands_of_the_program(program: str, tmp_path: Path) -> None:
    section = run(program, "--help", cwd=tmp_path).stdout.partition("Subcommands:")[2].partition("Examples:")[0]
    listed = set(re.findall(r"^  ([a-z-]+) ", section, re.MULTILINE))
    assert listed == {*commands.COMMANDS, *commands.PROGRAM_COMMANDS}
    text = run(sys.executable, "-m", "polyop", "--help", cwd=tmp_path).stdout
    assert all(re.search(rf"\b{name}\b", text) for name in listed)


def test_python_hands_over_to_the_program(program: str, tmp_path: Path) -> None:
    path = f"{Path(program).parent}:{os.environ['PATH']}"
    done = run(sys.executable, "-m", "polyop", "ops", "roi_align", cwd=tmp_path, PATH=path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == run(program, "ops", "roi_align", cwd=tmp_path).stdout
    done = run(sys.executable, "-m", "polyop", "inspect", "missing.onnx", cwd=tmp_path, PATH=path)
    assert (done.returncode, "'missing.onnx' does not exist" in done.stderr) == (3, True), done.stderr


def test_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(commands, "find_program", lambda: None)
    assert commands.main(["run", "model.onnx"]) == ExitCode.NO_RUNTIME
    assert "`polyop run` is a command of the program polyop" in capsys.readouterr().err
    assert commands.main(["--help"]) == ExitCode.OK
    assert "not installed here" in capsys.readouterr().out


# ---- which Python ----------------------------------------------------------------------------------------------------


def python(path: Path, label: str, has_polyop: bool) -> None:
    """Writes an executable that prints its label instead of running commands."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\n[ "$1" = -c ] && exit {0 if has_polyop else 1}\necho {label} "$@"\n')
    path.chmod(0o755)


def test_the_environment_of_the_program_comes_first(program: str, tmp_path: Path) -> None:
    """Also where the program is a link, as in a checkout, or was found on PATH."""
    here, other = tmp_path / "here" / "bin", tmp_path / "other" / "bin"
    python(here / "python", "here", True)
    python(other / "python3", "other", True)
    (here / "polyop").symlink_to(Path(program).resolve())
    want = "here -m polyop portable a.onnx -o b.onnx\n"
    words = ["portable", "a.onnx", "-o", "b.onnx"]
    assert run(here / "polyop", *words, cwd=tmp_path, PATH=f"{other}:/usr/bin:/bin").stdout == want
    assert run("here/bin/polyop", *words, cwd=tmp_path, PATH=f"{other}:/usr/bin:/bin").stdout == want
    path = f"{here}:{other}:/usr/bin:/bin"
    assert run("sh", "-c", "polyop " + " ".join(words), cwd=tmp_path, PATH=path).stdout == want
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "polyop").symlink_to(here / "polyop")
    assert run(tmp_path / "link" / "polyop", *words, cwd=tmp_path, PATH=f"{other}:/usr/bin:/bin").stdout == want


@pytest.mark.parametrize("name", commands.COMMANDS)
def test_commands_run_without_an_activated_environment(name: str, program: str, tmp_path: Path) -> None:
    """PATH's python3 has no polyop, as for `.venv/bin/polyop` in a fresh clone."""
    python(tmp_path / "python3", "other", False)
    done = subprocess.run(
        [program, name, "--help"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"usage: polyop {name} ")


def test_a_python_without_polyop_is_skipped(program: str, tmp_path: Path) -> None:
    """The message lists all that were tried."""
    here, other = tmp_path / "here" / "bin", tmp_path / "other" / "bin"
    here.mkdir(parents=True)
    shutil.copy(Path(program).resolve(), here / "polyop")  # a copy is not in the checkout, whose .venv has polyop
    python(here / "python", "here", False)
    python(other / "python3", "other", True)
    assert run(here / "polyop", "portable", cwd=tmp_path, PATH=str(other)).stdout == "other -m polyop portable\n"
    python(other / "python3", "other", False)
    done = run(here / "polyop", "portable", cwd=tmp_path, PATH=str(other))
    assert done.returncode == ExitCode.NO_RUNTIME
    assert f"{here}/python: has no package polyop" in done.stderr
    assert f"{other}/python3: has no package polyop" in done.stderr
    (here / "python").unlink()
    done = run(here / "polyop", "portable", cwd=tmp_path, PATH="/nowhere")
    assert f"{here}/python: does not exist" in done.stderr
    assert "python3 on PATH: does not exist" in done.stderr


# ---- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["rnu"], 2, "did you mean 'run'?"),
        (["--versoin"], 2, "did you mean '--version'?"),
        (["optimize", "m.onnx"], 2, "--output is required"),
        (["optimize"], 2, "model and --output are required"),
        (["optimize", "m.onnx", "-o", "x.onnx", "--threads", "0"], 2, "--threads: '0' is not an integer in [1 - 1024]"),
        (["optimize", "m.onnx", "-o", "x.onnx", "--layout", "CHW"], 2, "--layout: expected NCHW or NHWC, got 'CHW'"),
        (["optimize", "m.onnx", "-o", "x.onnx", "-i", "x=text.txt"], 2, "unknown kind"),
        (["optimize", "m.onnx", "-o", "x.onnx", "-i", "y=zeros"], 2, "the model has no input 'y'"),
        (["optimize", "m.onnx", "-o", "x.onnx", "-i", "x=text.npy"], 3, "text.npy"),
        (["optimize", "m.onnx", "-o", "x.onnx", "-i", "x=none.npy"], 3, "'none.npy'"),
        (["optimize", "m.onnx", "-o", "x.onnx", "--set", "x=1,a"], 2, "--set x"),
        (["optimize", "m.onnx", "more.onnx", "-o", "x.onnx"], 2, "unexpected argument 'more.onnx'"),
        (["portable", "none.onnx", "-o", "x.onnx"], 3, "'none.onnx' does not exist"),
        (["portable", "text.onnx", "-o", "x.onnx"], 3, "text.onnx is not an ONNX model, or damaged"),
        (["batch", "m.onnx", "-i", "in", "-o", "out", "--workers", "2"], 2, "--workers requires --ray"),
        (["batch", "m.onnx", "-i", "in", "-o", "out", "--range", "1"], 2, "--range: expected BLACK,WHITE"),
        (["batch", "unknown.onnx", "-i", "in", "-o", "out"], 4, "nobody provides nobody::Frobnicate"),
        (["triton", "none.onnx", "-o", "out"], 3, "'none.onnx' does not exist"),
        (["convert", "m.onnx", "-o", "m.engine", "--shapes", "x=1:2"], 2, "expected 1 or 3 shapes, got 2"),
        (["convert", "m.onnx", "-o", "m.engine", "--set", "x=1,a"], 2, "'a' is not a number"),
        (["convert", "m.onnx", "-o", "m.onnx", "--to", "openvino"], 2, "expected a .xml file, got 'm.onnx'"),
        (["convert", "m.onnx", "-o", "m.xml", "--to", "openvino", "--layers"], 2, "are options of TensorRT"),
        (["convert", "none.onnx", "-o", "m.engine"], 3, "'none.onnx' does not exist"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], code: int,
    said: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    model = onnx.load(identity(tmp_path / "m.onnx", ["n", 2]))
    node = helper.make_node("Frobnicate", ["x"], ["y"], domain="nobody")
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy"]
    model.graph.CopyFrom(helper.make_graph([node], "g", values[:1], values[1:]))
    onnx.save(model, tmp_path / "unknown.onnx")
    for name in ("text.onnx", "text.npy"):
        (tmp_path / name).write_text("this is text")
    before = sorted(path.name for path in tmp_path.iterdir())
    assert commands.main(words) == code
    err = capsys.readouterr().err
    assert err.startswith("polyop: error: "), err
    assert said in err
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_exit_codes() -> None:
    errors = {
        FileError("a"): 3,
        FileNotFoundError(2, "No such file", "a.onnx"): 3,
        PolyopError("a"): 1,
        CommandError(ExitCode.NOT_PROVIDED, "a"): 4,
        ModuleNotFoundError("No module named 'x'", name="x"): 5,
        ImportError("x is too old"): 5,
        KeyboardInterrupt(): 130,
        RuntimeError("a"): 1,
    }
    assert {error: int(describe(error).code) for error in errors} == errors
    assert describe(FileNotFoundError(2, "No such file", "a.onnx")).message == "'a.onnx': No such file"
    assert describe(ModuleNotFoundError(name="x"), "pip install x").hint == "pip install x"


def test_the_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.main(["portable", "none.onnx", "-o", "x.onnx"]) == 3
    assert "Traceback" not in capsys.readouterr().err
    monkeypatch.setenv("POLYOP_DEBUG", "1")
    assert commands.main(["portable", "none.onnx", "-o", "x.onnx"]) == 3
    assert "Traceback" in capsys.readouterr().err


def test_numbers() -> None:
    """As cli/base/files_test.cc has them for the program."""
    assert parse_integer("-12") == -12
    assert parse_integer(" +7 ") == 7
    assert parse_integer("9223372036854775807") == 2**63 - 1
    for text in (
        "",
        " ",
        "+",
        "-",
        "+-1",
        "9223372036854775808",
        "1.0",
        "1e3",
        "0x10",
        "1 2",
        "nan",
        "1,",
        "1_0",
        "\u0663",
    ):
        assert parse_integer(text) is None, text
    assert parse_real("2.5e-1") == 0.25
    assert parse_real("-inf") == float("-inf")
    for text in ("", "1e999", "1e-999", "0x10", "1.2.3", "one", "1 2", "--1", "1_0"):
        assert parse_real(text) is None, text


@pytest.mark.parametrize(
    "words",
    [
        ["--set", "x=z", "--workspace", "{}"],
        ["--set", "x=z", "--shapes", "a={}:2:3"],
        ["--shapes", "a=z", "--set", "b={}"],
    ],
    ids=["--workspace", "--shapes", "--set"],
)
def test_any_text_for_a_number_gives_a_clear_error(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    for text in NO_NUMBERS:
        code = commands.main(["convert", "m.onnx", "-o", "m.engine", *(word.replace("{}", text) for word in words)])
        assert code == ExitCode.USAGE, text
        err = capsys.readouterr().err
        assert err.startswith("polyop: error: "), text
        assert "Traceback" not in err
