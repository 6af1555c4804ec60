#!/usr/bin/env python3
"""Prints the types of the functions of polyop.numpy or polyop.jax, from the operators' definitions."""

from __future__ import annotations

import argparse

HEADS = {
    "numpy": """# Written by `make docs` from the operators' definitions.
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Any

import numpy as np

Array = Any  # an array, an object with __dlpack__ or the buffer protocol, or lists of numbers
Out = np.ndarray | Sequence[np.ndarray | None] | None

def set_num_threads(count: int, pool: Executor | None = None) -> None: ...
""",
    "jax": """# Written by `make docs` from the operators' definitions.
from collections.abc import Sequence
from typing import Any

import jax

Array = Any  # an array of JAX or NumPy, or lists of numbers

""",
}
TYPES = {"int": "int", "float": "float", "ints": "Sequence[int]", "floats": "Sequence[float]", "string": "str"}


def main(module: str) -> None:
    from polyop._calls import operators  # after the arguments, so that --help needs no library

    array, keywords = ("np.ndarray", ["out: Out = None"]) if module == "numpy" else ("jax.Array", [])
    print(HEADS[module], end="")
    for record in operators().values():
        inputs = [
            f"{i['name']}: " + ("Sequence[Array]" if i["variadic"] else "Array") + " = None" * i["optional"]
            for i in record["inputs"]
        ]
        attributes = [
            f"{a['name']}: {TYPES[a['type']]}{' | str' if a['type'] == 'int' and a['choices'] else ''}"
            + ("" if a["required"] else " = ...")
            for a in record["attributes"]
        ]
        named = ["*", *attributes, *keywords] if attributes or keywords else []
        counted = module == "jax" and any(found for signature in record["found_sizes"] for found in signature)
        outputs = [array] * (len(record["outputs"]) + counted)
        # A count follows the outputs of those signatures whose sizes are found.
        varies = counted and not all(any(signature) for signature in record["found_sizes"])
        returned = "Any" if varies else outputs[0] if len(outputs) == 1 else f"tuple[{', '.join(outputs)}]"
        print(f"def {record['name']}(")
        for parameter in [*inputs, *named]:
            print(f"    {parameter},")
        print(f") -> {returned}: ...")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("module", choices=sorted(HEADS))
    main(parser.parse_args().module)
