"""README's table and the operators' pages say what the definitions say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_generated_documentation_is_current() -> None:
    result = subprocess.run([ROOT / "tools" / "docs.sh", "--check"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr


def test_every_operator_is_documented() -> None:
    """A page needs a summary, semantics and a source."""
    pages = sorted((ROOT / "docs" / "operators").glob("*.md"))
    assert {p.stem for p in pages} == {f.name for f in (ROOT / "ops").iterdir() if any(f.glob("*.h"))}
    for page in pages:
        text = page.read_text()
        for section in ("## Signature", "## Attributes", "## Node names", "## Semantics", "## Source"):
            assert section in text, f"{page.name} lacks {section}"


def test_links_lead_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md"), *ROOT.glob("docs/tutorials/*.md"),
                 *ROOT.glob("examples/*.md")]:  # fmt: skip
        prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#:]+)\)", prose):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_readmes_export_prints_what_it_says(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text()
    program, printed = re.search(
        r"```python\n([^`]*polyop\.export[^`]*)```\n\n```\n(.*?)```", readme, re.DOTALL
    ).groups()
    done = subprocess.run(
        [sys.executable, "-"], input=program, capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout.split() == printed.split()
