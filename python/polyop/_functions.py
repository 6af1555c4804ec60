"""Python functions of operators, whose parameters are the operators' inputs and attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def default_of(attribute: Mapping[str, Any]) -> Any:
    """Returns an attribute's default. JSON has no infinities, so that they are read from the text."""
    return float(attribute["default_text"]) if attribute["default"] is None else attribute["default"]


def define(record: Mapping[str, Any], call: Callable[..., Any], module: str, *keywords: str) -> Callable[..., Any]:
    """Returns the function of the operator that a record of the catalogue describes.

    It calls call(operator, inputs, attributes, …) with all inputs and the values of all attributes, in the definition's
    order, and the values of more `keywords`, which are None by default. Its source is compiled, because binding
    arguments by inspect is slower than a small kernel.
    """
    name = record["name"]
    inputs = [f"{given['name']}=None" if given["optional"] else given["name"] for given in record["inputs"]]
    attributes = [
        attribute["name"] if attribute["required"] else f"{attribute['name']}={default_of(attribute)!r}"
        for attribute in record["attributes"]
    ]
    attributes = [text.replace("=inf", "=_INF").replace("=-inf", "=-_INF") for text in attributes]
    parameters = [*inputs, *(["*"] if attributes or keywords else []), *attributes, *(f"{k}=None" for k in keywords)]
    passed = ["".join(text.partition("=")[0] + ", " for text in group) for group in (inputs, attributes)]
    scope: dict[str, Any] = {"_call": call, "_INF": float("inf"), "__name__": module}
    exec(
        f"def {name}({', '.join(parameters)}):\n"
        f"    return _call({name!r}, ({passed[0]}), ({passed[1]}), {', '.join(keywords)})",
        scope,
    )
    scope[name].__doc__ = _documentation(record)
    return scope[name]


def _documentation(record: Mapping[str, Any]) -> str:
    signatures = "\n".join(f"    {signature}" for signature in record["signatures"])
    attributes = "".join(f"    {a['name']}: {a['meaning']}\n" for a in record["attributes"])
    return (
        f"{record['summary']}\n\n{record['semantics']}\n\n{signatures}\n\n"
        f"Attributes:\n{attributes}\nSource: {record['source']}"
    )
