# SPDX-License-Identifier: Apache-2.0
"""The page of `polyop verify --report`: one HTML file without links to others."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

_STYLE = """
:root { color-scheme: light dark; --good: #1a7f37; --bad: #cf222e; --line: #8884; --dim: #888; --curve: #0969da; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; border-bottom: 1px solid var(--line); }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem .9rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { color: var(--dim); font-weight: 600; } .good { color: var(--good); } .bad { color: var(--bad); }
.dim { color: var(--dim); } code, pre { font: 13px/1.5 ui-monospace, monospace; } td.hash { word-break: break-all; }
pre { overflow-x: auto; padding: .7rem; border: 1px solid var(--line); border-radius: 6px; white-space: pre-wrap; }
.pair { display: flex; gap: 1rem; flex-wrap: wrap; } figure { margin: 0; flex: 1 1 20rem; } img { width: 100%; } svg { max-width: 100%; }
"""
_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 900, 260, 60, 30
_LEAST, _MOST = -9, 2  # decades of the curve


def page(report: Mapping[str, Any]) -> str:
    """report: "model", "command", "date", "comparisons" as `polyop verify --json` has them, "versions", "hardware" and
    "files"."""
    comparisons = report["comparisons"]
    equal = all(comparison["equal"] for comparison in comparisons)
    # `</script>` in a name must not end the block.
    data = json.dumps({**report, "comparisons": [_without_images(c) for c in comparisons]}, indent=1).replace(
        "<", "\\u003c"
    )
    verdict = '<span class="good">equal</span>' if equal else '<span class="bad">differs</span>'
    parts = [
        f"<h1>{escape(report['model'])}: {verdict}</h1>",
        f'<p class="dim">{escape(report["date"])}, polyop {escape(report["versions"]["polyop"])}</p>',
        "<h2>Outputs</h2>", _outputs(comparisons), *_detections(comparisons), *_photos(comparisons), *_curves(comparisons),
        *_found(comparisons),
        "<h2>Where and with what</h2>", _table(["", ""], [[escape(k), escape(v)] for k, v in {**report["hardware"], **report["versions"]}.items()]),
        "<h2>Files</h2>",
        _table(["file", "bytes", "SHA-256"], [[f"<code>{escape(f['file'])}</code>", f"{f['bytes']:,}", f"<code>{f['sha256']}</code>"] for f in report["files"]]),
        "<h2>Commands</h2>", f"<pre>{escape(report['command'])}</pre>",
    ]  # fmt: skip
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(report['model'])}</title><style>{_STYLE}</style></head>\n<body>\n" + "\n".join(parts) + "\n"
        f'<script type="application/json" id="report">{data}</script>\n</body></html>\n'
    )


def _without_images(comparison: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in comparison.items() if key != "shown"}


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{cell}</th>" for cell in header) if any(header) else ""
    body = "\n".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table>{f"<tr>{head}</tr>" if head else ""}\n{body}</table></div>'


def _outputs(comparisons: Sequence[Mapping[str, Any]]) -> str:
    """Returns the table of runtimes and outputs. Of --layers, it has the worst tensor alone."""
    names = list(dict.fromkeys(t["tensor"] for c in comparisons for t in c["tensors"]))
    shown = names if len(names) <= 12 else []
    rows = []
    for comparison in comparisons:
        name = f"<code>{escape(comparison['reference'])}</code>"
        runtimes = [text for text in (comparison.get("runtime"), comparison.get("reference_runtime")) if text]
        name += "".join(f'<br><span class="dim">{text}</span>' for text in [escape(" against ".join(runtimes))] if text)
        name += "".join(f'<br><span class="dim">{escape(note)}</span>' for note in comparison.get("notes", []))
        if "error" in comparison:
            rows.append([name, f'<span class="bad">{escape(comparison["error"])}</span>', *[""] * (len(shown) or 1)])
            continue
        verdict = '<span class="good">equal</span>' if comparison["equal"] else '<span class="bad">differs</span>'
        of_name = {t["tensor"]: t for t in comparison["tensors"]}
        cells = [_cell(of_name.get(n)) for n in shown]
        if not shown and of_name:
            worst = max(of_name.values(), key=_excess)
            cells = [f"{escape(worst['tensor'])}: {_cell(worst)}, of {len(of_name)} tensors"]
        rows.append([name, verdict, *cells])
    header = ["against", "", *(map(escape, shown) if shown else ["largest error"])]
    return '<p class="dim">The largest error of each output, relative to its scale.</p>' + _table(header, rows)


def _excess(tensor: Mapping[str, Any]) -> float:
    relative = tensor.get("relative_error")
    return math.inf if relative is None else float(relative)


def _cell(tensor: Mapping[str, Any] | None) -> str:
    if tensor is None:
        return "-"
    kind = "good" if tensor["equal"] else "bad"
    if "mismatch" in tensor:
        return f'<span class="bad">{escape(tensor["mismatch"])}</span>'
    relative = tensor.get("relative_error")
    text = "NaN or infinity" if relative is None else "0" if relative == 0 else f"{relative:.1e}"
    return f'<span class="{kind}">{text}</span>'


def _detections(comparisons: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    found = [c for c in comparisons if "average_precision" in c]
    if not found:
        return
    yield "<h2>Detections</h2>"
    header = ["against", "photos", "of the reference", "of the model", "lost", "gained", "moved by more than a pixel",
              "mAP", "mAP, IoU 0.5 to 0.95"]  # fmt: skip
    rows = [
        [
            f"<code>{escape(c['reference'])}</code>", str(c["photos"]), str(c["expected"]), str(c["found"]),
            str(c["expected"] - c["matched"]), str(c["found"] - c["matched"]),
            f"{c['moved']} (at most {c['largest_move']:.2f})",
            f"{c['average_precision']:.4f}", f"{c['coco_precision']:.4f}",
        ]
        for c in found
    ]  # fmt: skip
    yield _table(header, rows)


def _photos(comparisons: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    with_photos = [c for c in comparisons if c.get("shown")]
    for comparison in [c for c in with_photos if not c["equal"]] or with_photos[:1]:
        shown = comparison["shown"]
        yield f"<h2>The photo that differs most: {escape(shown['photo'])}</h2>"
        texts = {"reference": comparison["reference"], "model": "the model"}
        figures = [
            f'<figure><img alt="{escape(text)}" src="data:image/jpeg;base64,{shown[key]}">'
            f"<figcaption><code>{escape(text)}</code></figcaption></figure>"
            for key, text in texts.items()
        ]
        yield f'<div class="pair">{"".join(figures)}</div>'


def _curves(comparisons: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yields the error along the graph: of all nodes with --layers, or of those that --bisect looked at."""
    for comparison in comparisons:
        tensors = comparison["tensors"]
        points = [(i, t.get("relative_error"), t["tensor"]) for i, t in enumerate(tensors) if "mismatch" not in t]
        what = f"{len(points)} tensors"
        if "bisect" in comparison:
            seen = sorted(comparison["bisect"]["seen"], key=lambda t: t["position"])
            points = [(t["position"], t["relative_error"], t["tensor"]) for t in seen]
            what = f"the {len(points)} tensors that the search looked at"
        if len(points) > 2:
            yield f"<h2>Error along the graph, against {escape(comparison['reference'])}</h2>"
            yield f'<p class="dim">Relative to the scale of each of {what}, in the order of nodes.</p>'
            yield _curve(points)


def _curve(points: Sequence[tuple[int, float | None, str]]) -> str:
    last = max(1, *(x for x, *_ in points))

    def place(x: int, y: float | None) -> tuple[float, float]:
        decade = _MOST if y is None else max(_LEAST, min(_MOST, math.log10(y) if y > 0 else _LEAST))
        across = _LEFT + (_WIDTH - _LEFT - 10) * x / last
        return across, 10 + (_HEIGHT - _BOTTOM - 10) * (_MOST - decade) / (_MOST - _LEAST)

    lines = []
    for decade in range(_LEAST, _MOST + 1):
        _, y = place(0, 10.0**decade)
        text = "0" if decade == _LEAST else "no number" if decade == _MOST else f"1e{decade}"
        lines.append(f'<line x1="{_LEFT}" x2="{_WIDTH - 10}" y1="{y:.1f}" y2="{y:.1f}" stroke="var(--line)"/>')
        lines.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="var(--dim)">{text}</text>')
    placed = [place(x, y) for x, y, _ in points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
    lines.append(f'<polyline points="{path}" fill="none" stroke="var(--curve)" stroke-width="1.5"/>')
    for (x, y), (_, error, name) in zip(placed, points, strict=True):
        text = "NaN, infinity, integers or shapes" if error is None else f"{error:.2e}"
        color = "var(--bad)" if error is None or error > 1e-2 else "var(--curve)"
        lines.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{color}"><title>{escape(name)}: {text}</title></circle>'
        )
    return (
        f'<div class="scroll"><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" font-size="11" role="img" '
        f'aria-label="error along the graph">{"".join(lines)}</svg></div>'
    )


def _found(comparisons: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for comparison in comparisons:
        if "bisect" in comparison:
            yield f"<h2>Where the difference begins, against {escape(comparison['reference'])}</h2>"
            yield f"<pre>{escape(chr(10).join(comparison['bisect']['lines']))}</pre>"
