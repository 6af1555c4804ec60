# SPDX-License-Identifier: Apache-2.0
"""Hooks of mkdocs. The site consists of the repository's Markdown and of the files that its pages link.

A page's address is its path in the repository, so links between pages work as on a code host. Each linked file of the
repository becomes a page, and so does each public module of the Python package.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
PAGES = ["*.md", "docs/*.md", "docs/*/*.md", "examples/*.md", "bench/results/*.md"]
IMAGES = {".png", ".svg"}
LANGUAGES = {".cc": "cpp", ".cu": "cpp", ".h": "cpp", ".py": "python"}
LINK = re.compile(r"""(\]\(|\b(?:src|href)=")([^)#":\s]+)(?=[)#"])""")
CODE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    pages = [path for pattern in PAGES for path in sorted(ROOT.glob(pattern))]
    linked = set()
    for page in pages:  # grows by the linked Markdown
        targets = _linked(page)
        pages += [path for path in dict.fromkeys(targets) if path.suffix == ".md" and path not in pages]
        linked.update(path for path in targets if path.suffix != ".md")
    for path in [*pages, *sorted(linked)]:
        if path.suffix in (".md", *IMAGES):
            files.append(_of_repository(path, config))
        else:
            files.append(File.generated(config, f"{_name(path)}.md", content=_source_page(path)))
    modules = _modules()
    for module, content in modules.items():
        files.append(File.generated(config, f"python/{module}.md", content=content))

    parts = {title: entry for part in config.nav for title, entry in part.items()}
    named = [path for entry in parts["Guides"] for path in entry.values()] + list(parts.values())
    others = [_name(path) for path in pages if path.parent in (ROOT / "docs", ROOT / "docs" / "tutorials")]
    performance = [path for entry in parts["Performance"] for path in entry.values()]
    parts["Guides"] += [path for path in others if path not in named + performance]
    parts["Operators"] += [_name(path) for path in pages if path.parent == ROOT / "docs" / "operators"]
    parts["Operators"].sort(key=lambda path: not path.endswith("/README.md"))  # the catalogue first
    parts["Python"] += [{module: f"python/{module}.md"} for module in modules]
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Redirects links to source files to their pages, and links to folders to their README."""

    def lead(match: re.Match[str]) -> str:
        target = (ROOT / page.file.src_uri).parent.joinpath(match[2]).resolve()
        if target.is_dir():
            return f"{match[1]}{match[2].rstrip('/')}/README.md"
        shown = f"{_name(target)}.md" if target.is_relative_to(ROOT) else ""
        return f"{match[1]}{match[2]}.md" if target.is_file() and files.get_file_from_path(shown) else match[0]

    parts = re.split(f"({CODE.pattern})", markdown, flags=CODE.flags)
    return "".join(part if part.startswith("```") else LINK.sub(lead, part) for part in parts)


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _of_repository(path: Path, config: MkDocsConfig) -> File:
    return File(_name(path), str(ROOT), config.site_dir, config.use_directory_urls)


def _linked(page: Path) -> list[Path]:
    """Returns the files of the repository that a page links. mkdocs reports those that do not exist."""
    targets = (page.parent.joinpath(match[2]).resolve() for match in LINK.finditer(CODE.sub("", page.read_text())))
    return [target for target in targets if target.is_relative_to(ROOT) and target.is_file()]


def _source_page(path: Path) -> str:
    text = path.read_text()
    fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 3)
    return f"# {_name(path)}\n\n{fence}{LANGUAGES.get(path.suffix, 'text')}\n{text.rstrip()}\n{fence}\n"


def _modules() -> dict[str, str]:
    """Returns the source of mkdocstrings' page of each module with `__all__`, by the module's name."""
    pages = {}
    folder = ROOT / "python"
    for path in sorted([*folder.glob("polyop/*.py"), *folder.glob("polyop/*/*.py")]):
        names = [part for part in path.relative_to(folder).with_suffix("").parts if part != "__init__"]
        if any(name.startswith("_") for name in names) or "__all__" not in _assigned(path):
            continue
        module = ".".join(names)
        pages[module] = f"# {module}\n\n::: {module}\n    options:\n      show_root_heading: false\n"
        if path.with_suffix(".pyi").is_file():  # whose functions have signatures alone
            pages[module] += "      show_if_no_docstring: true\n"
    pages["polyop"] += "\n::: polyop._onnxruntime.session.session\n"  # where polyop.session is defined
    return pages


def _assigned(path: Path) -> set[str]:
    statements = ast.parse(path.read_text()).body
    return {t.id for s in statements if isinstance(s, ast.Assign) for t in s.targets if isinstance(t, ast.Name)}
