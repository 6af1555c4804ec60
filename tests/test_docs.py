"""README's table and the operators' pages say what the definitions say."""

from __future__ import annotations

import re
import subprocess
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


def test_links_of_the_readme_lead_somewhere() -> None:
    for name in ("README.md", "CONTRIBUTING.md"):
        for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / name).read_text()):
            assert (ROOT / target).exists(), f"{name}: {target}"
