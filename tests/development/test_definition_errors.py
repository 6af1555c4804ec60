# SPDX-License-Identifier: Apache-2.0
"""A wrong definition does not compile, and the compiler's message says why."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.support.processes import ROOT

COMPILER = shutil.which("g++") or shutil.which("c++")

OPERATOR = """
#include "core/operator.h"
namespace polyop {{
struct Bad {{
  float factor = 1;
  int64_t rows = 2;
  static constexpr const char* kName = "bad";
  static constexpr Signature kSignature = "{signature}";
  static constexpr NodeName kNodes[] = {{NodeName("{node}"){when}}};
  static constexpr std::tuple kAttributes = {{
      Attr("factor", &Bad::factor, "a factor"), Attr("rows", &Bad::rows, "rows").AtLeast(2).Required()}};
  static constexpr Doc kDoc = {{}};
}};
Status Run(const Bad&, const Context&, {parameters}) {{ return Status::Ok(); }}
POLYOP_PLAIN_CPU_KERNEL(Bad, Run);
}}
"""

GOOD_SIGNATURE = "a: T[N, K] -> b: T[N]"
GOOD_PARAMETERS = "Tensor<const float, 2>, Tensor<float, 1>"
MISMATCH = "do not match the signature"


def compile_error(signature: str, parameters: str, node: str = "custom::bad", when: str = "") -> str | None:
    """The compiler's message, or None if the definition compiles."""
    assert COMPILER, "no C++ compiler"
    result = subprocess.run(
        [COMPILER, "-std=c++20", "-fsyntax-only", "-x", "c++", "-I", str(ROOT), "-"],
        input=OPERATOR.format(signature=signature, parameters=parameters, node=node, when=when),
        capture_output=True,
        text=True,
        check=False,
    )
    # The compiler quotes the parser's reason as a string literal.
    return None if result.returncode == 0 else result.stderr.replace("\\'", "'")


def test_a_correct_definition_compiles() -> None:
    assert compile_error(GOOD_SIGNATURE, GOOD_PARAMETERS) is None


@pytest.mark.parametrize(
    ("signature", "message"),
    [
        ("a: T[N, K] b: T[N]", "'->' is missing"),
        ("a: T[N, K -> b: T[N]", "']' is missing"),
        ("a T[N, K] -> b: T[N]", "':' is missing"),
        ("a: T[N, K] -> b: T[N], c: T[L<=,]", "expected a name"),
        ("a: T[N, K] -> b: T[*]", "'*' is valid in inputs only"),
        ("a: T[N<=K, K] -> b: T[N]", "'<=' is valid in outputs only"),
        ("a: T[N, K]... , c: T[N] -> b: T[N]", "a variadic input comes last"),
        ("a: Type[N, K] -> b: T[N]", "a type variable is one letter"),
        ("a: T[N, K] -> b: T[sqrt(N, K)]", "unknown function"),
        ("a: T[N, K] -> b: T[size(c)]", "size() of an output needs the name of an input"),
        ("a: T[N, size(a)] -> b: T[N]", "size() of an output needs the name of an input"),
        ("a: T[N, K] -> b: T[N] and more", "text after the end"),
        ("a: T[N, K] -> b: T[nothing_by_this_name]", "neither an extent, an input nor an attribute"),
    ],
)
def test_a_malformed_signature_does_not_compile(signature: str, message: str) -> None:
    error = compile_error(signature, GOOD_PARAMETERS)
    assert error is not None
    assert message in error


@pytest.mark.parametrize(
    "parameters",
    [
        "Tensor<const float, 3>, Tensor<float, 1>",  # rank
        "Tensor<float, 2>, Tensor<float, 1>",  # an input that is not const
        "Tensor<const float, 2>, Tensor<const float, 1>",  # an output that is const
        "Tensor<const float, 2>, Tensor<Half, 1>",  # one type variable, two types
        "Tensor<const float, 2>",  # no output
        "std::optional<Tensor<const float, 2>>, Tensor<float, 1>",  # not optional
        "Tensor<const float, 2>, Pending<float, 1>",  # not pending
    ],
)
def test_a_kernel_that_does_not_match_its_signature_does_not_compile(parameters: str) -> None:
    error = compile_error(GOOD_SIGNATURE, parameters)
    assert error is not None
    assert MISMATCH in error


@pytest.mark.parametrize("node", ["bad", "::", "custom::", ""])
def test_a_node_name_without_domain_or_type_does_not_compile(node: str) -> None:
    error = compile_error(GOOD_SIGNATURE, GOOD_PARAMETERS, node)
    assert error is not None
    assert "domain::OpType" in error


@pytest.mark.parametrize("when", ['.When("rows")', '.When("rows", 1)', '.When("rows", 2)'])
def test_a_condition_that_every_node_of_the_operator_fulfils_compiles(when: str) -> None:
    assert compile_error(GOOD_SIGNATURE, GOOD_PARAMETERS, when=when) is None


@pytest.mark.parametrize("when", ['.When("nothing")', '.When("factor")', '.When("rows", 3)'])
def test_a_condition_that_some_node_of_the_operator_fails_does_not_compile(when: str) -> None:
    error = compile_error(GOOD_SIGNATURE, GOOD_PARAMETERS, when=when)
    assert error is not None
    assert "When() needs a required attribute with that minimum" in error
