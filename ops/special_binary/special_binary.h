#pragma once

#include "core/operator.h"

namespace polyop {

/// A special function of pairs of elements.
struct SpecialBinary {
  enum class Function { kIgamma, kIgammac, kZeta, kHermiteH, kHermiteHe, kLaguerre, kLegendre };
  Function function = Function::kIgamma;

  static constexpr const char* kName = "special_binary";
  static constexpr Signature kSignature = "a: T[...S], b: T[...S] -> y: T[...S]";
  static constexpr NodeName kNodes[] = {"polyop::SpecialBinary"};
  static constexpr std::tuple kAttributes = {
      Attr("function", &SpecialBinary::function,
           R"(igamma, igammac: the regularized lower and upper incomplete gamma functions of b, with parameter a; zeta:
           Hurwitz's zeta function, the sum of (b + k)^-a; hermite_h, hermite_he, laguerre, legendre: the orthogonal
           polynomial of a whose degree is b, rounded towards 0)")
          .OneOf("igamma", "igammac", "zeta", "hermite_h", "hermite_he", "laguerre", "legendre"),
  };
  static constexpr Doc kDoc = {
      .summary = "Computes a special function of two arguments for each pair of elements.",
      .semantics = R"(All is computed in double precision, and rounded once. Arguments outside of the function's domain
          give NaN. Polynomials of negative degree are 0. Degrees above 1024, and for Hermite's polynomials those above
          512, give NaN.)",
      .source = "`torch.special`",
      .differences = "torch computes in the type of the input, and has no limit of the degree of other polynomials.",
      .not_portable = "Series whose number of terms depends on the elements have no exact form in ONNX.",
  };
};

}  // namespace polyop
