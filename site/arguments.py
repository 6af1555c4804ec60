"""griffe: a line of a docstring that begins with an argument's name and a colon becomes an item of a list."""

from __future__ import annotations

import re
from typing import Any

import griffe


class Arguments(griffe.Extension):
    def on_function_instance(self, *, func: griffe.Function, **_: Any) -> None:
        if func.docstring is None:
            return
        names = "|".join(re.escape(parameter.name.lstrip("*")) for parameter in func.parameters)
        lines, inside = [], False
        for line in func.docstring.value.splitlines():
            item = re.match(rf"((?:(?:{names}), )*(?:{names})): ", line) if names else None
            if item and not inside:
                lines.append("")
            elif inside and line.startswith("Raises "):
                inside = False
                lines.append("")
            elif inside and not item:
                line = f"    {line.strip()}" if line.strip() else line
            inside = bool(item) or (inside and bool(line.strip()))
            lines.append(f"- `{item[1]}`: {line[item.end() :]}" if item else line)
        func.docstring.value = "\n".join(lines)
