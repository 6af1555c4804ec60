#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a package index of wheels and source distributions, by PEP 503 (HTML) and PEP 691 (JSON), and SHA256SUMS.

FOLDER/SHA256SUMS has the checksums of all of the version's files in FOLDER, and FOLDER/index is the package index.
Wheels for one machine (`make wheel`: linux_x86_64) are left out, as PyPI refuses them.
A web server makes it usable: `python -m http.server -d FOLDER/index`, then
`pip install --extra-index-url ADDRESS/simple/ polyop`.
"""

from __future__ import annotations

import argparse
import hashlib
import html
import json
import re
import shutil
from collections import defaultdict
from pathlib import Path

_FORMS = (
    re.compile(r"(?P<project>polyop\w*)-(?P<version>[^-]+)-.+-(?!linux_)[^-]+\.whl"),
    re.compile(r"(?P<project>polyop\w*)-(?P<version>[^-]+)\.tar\.gz"),
    re.compile(r"(?P<project>polyop)_(?P<version>[^_]+)_.+\.deb"),
    re.compile(r"(?P<project>polyop)-(?P<version>[^-]+)\.tgz"),
)


def _parts(file: Path) -> dict[str, str]:
    """Returns the project and the version that a file's name says, or nothing."""
    return next((match.groupdict() for form in _FORMS if (match := form.fullmatch(file.name))), {})


def files_of(folder: Path, version: str) -> list[Path]:
    """Returns the files of a version, in order of their names."""
    return [file for file in sorted(folder.iterdir()) if file.is_file() and _parts(file).get("version") == version]


def write_index(folder: Path, version: str) -> list[Path]:
    """Writes FOLDER/index and FOLDER/SHA256SUMS. Returns the files. Raises SystemExit if there is none for pip."""
    files = files_of(folder, version)
    sums = {file: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
    projects: dict[str, list[Path]] = defaultdict(list)
    for file in files:
        if file.suffix not in (".deb", ".tgz"):  # npm's
            projects[_parts(file)["project"].replace("_", "-")].append(file)
    if not projects:
        raise SystemExit(f"{folder}: expected wheels or a source distribution of version {version}, got none")
    (folder / "SHA256SUMS").write_text("".join(f"{sums[file]}  {file.name}\n" for file in files))
    simple = folder / "index" / "simple"
    shutil.rmtree(folder / "index", ignore_errors=True)
    _write_page(simple, "Projects", {project: f"{project}/" for project in projects})
    for project, of_project in projects.items():
        _write_page(simple / project, project, {file.name: f"{file.name}#sha256={sums[file]}" for file in of_project})
        entries = [{"filename": f.name, "url": f.name, "hashes": {"sha256": sums[f]}} for f in of_project]
        data = {"meta": {"api-version": "1.0"}, "name": project, "files": entries}
        (simple / project / "index.json").write_text(json.dumps(data, indent=1))
        for file in of_project:
            shutil.copy2(file, simple / project)
    return files


def _write_page(folder: Path, title: str, links: dict[str, str]) -> None:
    folder.mkdir(parents=True)
    lines = [f'<a href="{html.escape(to)}">{html.escape(text)}</a><br>' for text, to in links.items()]
    head = f'<meta name="pypi:repository-version" content="1.0"><title>{html.escape(title)}</title>'
    (folder / "index.html").write_text(
        f"<!DOCTYPE html><html><head>{head}</head><body>\n" + "\n".join(lines) + "\n</body></html>\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("version")
    options = parser.parse_args()
    for file in write_index(options.folder, options.version):
        print(f"    {file.name}")
    print(f"    {options.folder}/index and {options.folder}/SHA256SUMS")


if __name__ == "__main__":
    main()
