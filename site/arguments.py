# SPDX-License-Identifier: Apache-2.0
"""A griffe extension: an item of an `Args:` section may document several parameters, such as `rtol, atol: …`."""

from __future__ import annotations

import re
from typing import Any

import griffe

ITEM = re.compile(r"( +)(\w+(?:, \w+)+): (.*)")


class Arguments(griffe.Extension):
    def on_function_instance(self, *, func: griffe.Function, **_: Any) -> None:
        """Splits such items: the last parameter has the text, the others refer to it."""
        if func.docstring is None or "Args:" not in func.docstring.value:
            return
        names = {parameter.name.lstrip("*") for parameter in func.parameters}
        lines = []
        for line in func.docstring.value.splitlines():
            item = ITEM.fullmatch(line)
            if item and names.issuperset(together := item[2].split(", ")):
                *others, last = together
                lines += [f"{item[1]}{other}: see `{last}`." for other in others]
                line = f"{item[1]}{last}: {item[3]}"
            lines.append(line)
        func.docstring.value = "\n".join(lines)
