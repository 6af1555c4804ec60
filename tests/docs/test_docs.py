# SPDX-License-Identifier: Apache-2.0
"""The operators' pages and their table agree with the definitions; links work on code hosts and on the site."""

from __future__ import annotations

import doctest
import re
import shutil
import subprocess
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import polyop
from tests.support.processes import ROOT, operator_folders
from tests.support.single_node import model


def test_generated_documentation_is_current() -> None:
    result = subprocess.run([ROOT / "tools" / "docs.sh", "--check"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr


def test_every_operator_is_documented() -> None:
    """Every page has a summary, semantics and a source."""
    pages = sorted(p for p in (ROOT / "docs" / "operators").glob("*.md") if p.name != "README.md")
    assert {p.stem for p in pages} == {f.name for f in operator_folders()}
    for page in pages:
        text = page.read_text()
        for section in ("## Signature", "## Attributes", "## Node names", "## Semantics", "## Source"):
            assert section in text, f"{page.name} lacks {section}"


def prose(page: Path) -> str:
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


@cache
def anchors(page: Path) -> set[str]:
    """Returns the anchors of a page's headings, as code hosts and site/mkdocs.yml name them."""
    titles = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_links_work() -> None:
    folders = [
        ROOT,
        ROOT / "docs",
        ROOT / "docs" / "operators",
        ROOT / "docs" / "tutorials",
        ROOT / "examples",
        ROOT / "examples" / "train",
    ]
    for page in (path for folder in folders for path in folder.glob("*.md")):
        for target, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s]+))?\)", prose(page)):
            there = page.parent / target if target else page
            assert there.exists(), f"{page.name}: {target}"
            assert not anchor or anchor in anchors(there), f"{page.name}: {target}#{anchor}"


def test_pages_render_alike_on_code_hosts_and_on_the_site() -> None:
    """The site's Markdown requires an empty line before a list or a table, and four spaces within a list."""
    for page in [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("docs/tutorials/*.md"),
        *ROOT.glob("examples/*.md"),
    ]:
        lines = prose(page).splitlines()
        for before, line in pairwise(lines):
            begins = re.match(r"(- |\||\d+\. )", line) and not re.match(r"(- |\||\d+\. | |$)", before)
            assert not begins, f"{page.name}: no empty line before '{line}'"


@pytest.mark.slow
def test_site_is_built_strictly(tmp_path: Path) -> None:
    """Runs tools/site.sh in a copy: the pages and the catalogue are there; a broken link and a missing anchor are
    errors.
    """
    files = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    for name in files:
        if name and (ROOT / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / name)
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    (tmp_path / "build").mkdir()
    subprocess.run([ROOT / "tools" / "site.sh"], check=True)  # its tools serve the copy, too
    (tmp_path / "build" / "site-tools").symlink_to(ROOT / "build" / "site-tools")
    may_come = tmp_path / "docs" / "may-come.md"
    may_come.write_text("# A guide that nobody named\n")

    def build() -> subprocess.CompletedProcess:
        return subprocess.run([tmp_path / "tools" / "site.sh"], capture_output=True, text=True, check=False)

    done = build()
    assert done.returncode == 0, done.stdout + done.stderr
    site = tmp_path / "build" / "site"
    assert "A guide that nobody named" in (site / "docs" / "wheels.html").read_text(), "it is not in the navigation"
    assert (site / "docs" / "operators" / "index.html").read_text().count('.html">') > len(operator_folders())
    assert "spatial_scale" in (site / "python" / "polyop.functional.html").read_text()
    assert "Building" not in build().stdout, "nothing changed, and it was built again"
    may_come.write_text("# A guide\n\n[a page](nowhere.md) and [an anchor](wheels.md#elsewhere)\n")
    done = build()
    assert done.returncode != 0
    assert "nowhere.md" in done.stdout + done.stderr
    assert "#elsewhere" in done.stdout + done.stderr


def test_code_fits_into_80_columns() -> None:
    """What the site shows beside its two columns of links, and a terminal of usual width. The diffs of the tutorial
    change files that `polyop new` writes in 120 columns; the site wraps them."""
    pages = [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("docs/tutorials/*.md"),
        *ROOT.glob("examples/*.md"),
    ]
    blocks = (
        (page, block)
        for page in pages
        for kind, block in re.findall(r"^ *```(\w*)\n(.*?)^ *```$", page.read_text(), re.DOTALL | re.MULTILINE)
        if kind != "diff"
    )
    wide = [
        f"{page.relative_to(ROOT)}: {line}" for page, block in blocks for line in block.splitlines() if len(line) > 80
    ]
    assert not wide, "\n".join(wide)


def test_pages_state_the_number_of_operators() -> None:
    count = len(operator_folders())
    for page in ("CHANGELOG.md", "docs/operators/README.md"):
        assert f"{count} operators under" in (ROOT / page).read_text().replace(",", ""), page


def test_the_readmes_first_lines_are_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = {"features": np.zeros((1, 256, 50, 76), np.float32), "rois": np.zeros((300, 5), np.float32)}
    onnx.save(
        model("mmcv::MMCVRoiAlign", inputs, attributes={"output_height": 7, "output_width": 7}),
        tmp_path / "detector.onnx",
    )
    monkeypatch.chdir(tmp_path)
    block = re.search(r"^```pycon\n(.*?)^```$", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    names = {"onnxruntime": onnxruntime, "polyop": polyop, "inputs": inputs}
    example = doctest.DocTestParser().get_doctest(block[1], names, "README", "README.md", 0)
    wrapped = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    assert wrapped.run(example) == (0, 2)


def test_the_readmes_export_prints_what_it_says(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text()
    program, printed = re.search(
        r"```python\n([^`]*polyop\.export[^`]*)```\n\n```\n(.*?)```", readme, re.DOTALL
    ).groups()
    done = subprocess.run(
        [sys.executable, "-"], input=program, capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout.split() == printed.split()


def test_the_readmes_commands_run_without_an_activated_environment(tmp_path: Path) -> None:
    """Those of the checkout's program. A folder of links replaces the checkout, because they write a file."""
    block = re.search(
        r"^```sh\n(\.venv/bin/polyop .*?)^```$", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE
    )
    commands = block[1].replace("\\\n", "").splitlines()
    assert len(commands) == 5
    for name in (".venv", "models", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    variables = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    for command in commands:
        done = subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, env=variables, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        assert done.stdout, command
    assert (tmp_path / "large.png").is_file()
