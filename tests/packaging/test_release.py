# SPDX-License-Identifier: Apache-2.0
"""tools/release.sh: the release checklist without its long steps; the files of continuous integration; the Debian
package.
"""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from packaging.version import Version

import polyop
from tests.support import single_node
from tests.support.processes import ROOT

WHEELS = ("x86_64", "aarch64", "windows", "macos")
LONG = ("tests", "source", *WHEELS, "cuda", "audit", "deb", "npm", "site", "index")
STEPS = ("tree", "version", *LONG, "tag", "upload")
SKIP_LONG = [word for step in LONG for word in ("--skip", step)]


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.org"]
    return subprocess.run(["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Creates a repository with the files that the script reads, and with an unreleased version."""
    for name in ("tools/release.sh", "tools/common.sh", "CHANGELOG.md", "python/polyop/__init__.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    log = tmp_path / "CHANGELOG.md"
    log.write_text(
        re.sub(r"^## \[.*", f"## [{polyop.__version__}] - unreleased", log.read_text(), count=1, flags=re.MULTILINE)
    )
    (tmp_path / ".gitignore").write_text("/dist/\n")
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "a state")


def change(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def release(folder: Path, *words: str) -> tuple[int, str]:
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org",
                   "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org"}  # fmt: skip
    done = subprocess.run(
        [folder / "tools" / "release.sh", *words], env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_a_dry_run_passes_all_steps_and_changes_nothing(checkout: Path) -> None:
    (checkout / "dist").mkdir()
    wheel = checkout / "dist" / f"polyop-{polyop.__version__}-py3-none-manylinux_2_28_x86_64.whl"
    wheel.write_bytes(b"a wheel")
    (checkout / "dist" / "polyop-0.0.1-py3-none-any.whl").write_bytes(b"an older one")
    code, said = release(checkout, "--dry-run", *SKIP_LONG)
    assert code == 0, said
    steps = re.findall(rf"\[(\d+)/{len(STEPS)}\] (\w+)", said)
    assert steps == [(str(number), name) for number, name in enumerate(STEPS, 1)]
    assert set(re.findall(r"\] (\w+): skipped", said)) == set(LONG)
    assert f"7  dist/{wheel.name}" in said
    assert "0.0.1" not in said
    assert "nothing was published" in said
    assert git(checkout, "tag") == ""


def test_a_release_requires_a_date_and_tags(checkout: Path) -> None:
    code, said = release(checkout, *SKIP_LONG)
    assert code != 0
    assert "expected the release's date" in said
    change(checkout / "CHANGELOG.md", "] - unreleased", "] - 2027-01-31")
    code, said = release(checkout, *SKIP_LONG)
    assert code != 0
    assert "uncommitted files" in said
    assert "CHANGELOG.md" in said
    commit(checkout)
    code, said = release(checkout, *SKIP_LONG)
    assert code == 0, said
    assert git(checkout, "tag").split() == [f"v{polyop.__version__}"]
    code, said = release(checkout, *SKIP_LONG)  # as continuous integration does from the tag
    assert code == 0, said
    assert "exists" in said
    change(checkout / "CHANGELOG.md", "2027-01-31", "2027-02-01")
    commit(checkout)
    code, said = release(checkout, *SKIP_LONG)
    assert code != 0
    assert f"the tag v{polyop.__version__} belongs to another commit" in said


def test_rejects_a_version_that_the_changelog_lacks(checkout: Path) -> None:
    change(checkout / "python" / "polyop" / "__init__.py", f'"{polyop.__version__}"', '"7.8.9"')
    commit(checkout)
    code, said = release(checkout, "--dry-run", *SKIP_LONG)
    assert code != 0
    assert "has version 7.8.9, the newest entry of CHANGELOG.md is '## [" in said
    assert "expected '## [7.8.9] - DATE'" in said


def test_a_failure_says_how_to_continue_and_parts_can_run_alone(checkout: Path) -> None:
    (checkout / "tools" / "test.sh").write_text("false\n")
    commit(checkout)
    code, said = release(checkout, "--dry-run", "--skip", "site")
    assert code != 0
    assert said.endswith("release.sh --dry-run --skip site --from tests\n")
    code, said = release(checkout, "--dry-run", "--from", "tag")
    assert code == 0, said
    assert set(re.findall(r"\] (\w+): skipped", said)) == set(LONG)
    code, said = release(checkout, "--dry-run", "--only", "version", "--only", "tag")
    assert code == 0, said
    assert set(STEPS) - set(re.findall(r"\] (\w+): skipped", said)) == {"version", "tag"}


def test_a_release_requires_pages_that_know_of_it(checkout: Path) -> None:
    (checkout / "README.md").write_text("# A\n\npolyop is not published yet.\n")
    change(checkout / "CHANGELOG.md", "] - unreleased", "] - 2027-01-31")
    commit(checkout)
    code, said = release(checkout, *SKIP_LONG)
    assert code != 0
    assert "README.md:3:polyop is not published yet." in said
    code, said = release(checkout, "--dry-run", *SKIP_LONG)
    assert code == 0, said


def test_rejects_unknown_words(checkout: Path) -> None:
    for words in (["--skip", "everything"], ["--only"], ["--from", "wheels"], ["--drei"], ["--dry-run", "--publish"]):
        code, said = release(checkout, *words)
        assert code != 0
        assert "error:" in said


def test_workflows_call_existing_commands() -> None:
    """tools/lint.sh checks the workflows against their schema.

    This test checks that they only run commands that work anywhere.
    """
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    workflows = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    assert {path.stem for path in workflows} == {"desktop", "nightly", "release", "site", "test", "weekly", "wheels"}
    for path in workflows:
        commands = re.findall(r"^ *- run: (.*)$", path.read_text(), re.MULTILINE)
        assert commands or "run:" not in path.read_text()
        for command in commands:
            tool, *words = command.split()
            if tool == "make":
                assert targets.issuperset(words), f"{path.name}: {command}"
            else:
                assert tool == "gh" or (ROOT / tool).is_file(), f"{path.name}: {command}"


def test_actions_are_pinned_by_commit_and_the_release_is_signed() -> None:
    """A tag of an action may move. What a release signs are the checksums of all files that it uploads."""
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        for action in re.findall(r"uses: (.*)$", path.read_text(), re.MULTILINE):
            assert re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # \S+", action), f"{path.name}: {action}"
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    matrix = re.search(r"step: \[(.*)\]", text)[1].split(", ")
    run = {*matrix, *re.findall(r"--only (\w+)", text)}
    assert run == set(STEPS) - {"cuda", "site", "tag"}  # the workflow `site` publishes the documentation
    uploaded = re.findall(r"^ +(dist/\S+)$", text, re.MULTILINE)
    names = [
        f"polyop-1.0-{tag}.whl" for tag in ("cp311-manylinux_2_28_x86_64", "py3-none-win_amd64", "py3-none-macosx_12_0")
    ]
    for name in (*names, "polyop-1.0.tar.gz", "polyop-1.0.tgz", "polyop_1.0_amd64.deb", "SHA256SUMS"):
        assert any(fnmatch.fnmatch(f"dist/{name}", pattern) for pattern in uploaded), name
    (publishes,) = re.findall(r"gh-action-pypi-publish@\S+ # v(.*)", text)
    assert Version(publishes) >= Version("1.12")  # older ones refuse the wheels' metadata 2.4, or sign nothing
    assert re.search(r"attest-build-provenance@.*\n +id: signature\n +with:\n +subject-checksums: \S+/SHA256SUMS", text)


@pytest.mark.slow
def test_the_debian_package_works(tmp_path: Path) -> None:
    """Builds a package of two operators with tools/deb.sh, which checks the contents, unpacks it, and runs a model with
    its program and library.
    """
    environment = {**os.environ, "POLYOP_OPS": "my_add;nms"}
    subprocess.run([ROOT / "tools" / "deb.sh", tmp_path / "dist"], env=environment, check=True)
    (package,) = (tmp_path / "dist").glob(f"polyop_{polyop.__version__}_*.deb")
    subprocess.run(["dpkg-deb", "-x", package, tmp_path / "root"], check=True)
    usr = tmp_path / "root" / "usr"
    a = np.float32([1, 2, 3])
    onnx.save(single_node.model("custom::my_add", {"a": a, "b": a}), tmp_path / "add.onnx")
    (runtime,) = (Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so.*")
    done = subprocess.run(
        [usr / "bin" / "polyop", "run", "add.onnx", "--onnxruntime", runtime, "-i", "a=zeros", "-i", "b=zeros"],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "f32[3]" in done.stdout
    assert not (usr / "lib" / "formulas").exists()
