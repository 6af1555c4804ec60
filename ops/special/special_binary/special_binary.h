// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// A special function of pairs of elements, or an elementary one that ONNX lacks.
struct SpecialBinary {
  enum class Function { kIgamma, kIgammac, kZeta, kHermiteH, kHermiteHe, kLaguerre, kLegendre, kElementary };
  enum Variant : int64_t {
    kHypot,
    kNextafter,
    kCopysign,
    kFmod,
    kLogaddexp,
    kXlogy,
    kAtan2,
    kChebyshevT,
    kChebyshevU,
    kChebyshevV,
    kChebyshevW,
  };
  Function function = Function::kIgamma;
  int64_t variant = 0;

  static constexpr const char* kName = "special_binary";
  static constexpr Signature kSignature = "a: T[...S], b: T[...S] -> y: T[...S]";
  static constexpr NodeName kNodes[] = {"polyop::SpecialBinary"};
  static constexpr std::tuple kAttributes = {
      Attr("function", &SpecialBinary::function,
           R"(igamma, igammac: the regularized lower and upper incomplete gamma functions of b, with parameter a; zeta:
           Hurwitz's zeta function, the sum of (b + k)^-a; hermite_h, hermite_he, laguerre, legendre: the orthogonal
           polynomial of a whose degree is b, rounded towards 0; elementary: an elementary function, with the variants
           0: hypot, the length of (a, b); 1: nextafter, the number of the elements' type next to a in the direction of
           b; 2: copysign, a with the sign of b; 3: fmod, the remainder of a / b, with the sign of a; 4: logaddexp,
           log(exp(a) + exp(b)); 5: xlogy, a log(b), and 0 where a is 0 and b is a number; 6: atan2, the angle of the
           point (b, a); 7 to 10: Chebyshev's polynomial T, U, V or W of a whose degree is b, rounded towards 0)")
          .OneOf("igamma", "igammac", "zeta", "hermite_h", "hermite_he", "laguerre", "legendre", "elementary"),
      Attr("variant", &SpecialBinary::variant, "which elementary function; otherwise 0").Between(0, 10),
  };
  static constexpr Doc kDoc = {
      .summary = "Computes a special or elementary function of two arguments for each pair of elements.",
      .semantics = R"(All is computed in double precision, and rounded once, except for logaddexp and xlogy of f32 on
          the CPU, which are computed in single precision. nextafter, copysign and fmod are exact.
          Arguments outside of the function's domain give NaN. Polynomials of negative degree are 0. Degrees above 1024
          give NaN; the limit of Hermite's polynomials is 512, that of Chebyshev's 2^53. The length of a pair with an
          infinity is infinite. A [portable file](../portable-files.md) has functions for the elementary functions only:
          series whose number of terms depends on the elements have no exact form in ONNX.)",
      .source = R"(`torch.special`; torch.hypot, nextafter, copysign, fmod, logaddexp, xlogy and atan2; Mod of ONNX with
          `fmod = 1`)",
      .differences = "torch computes in the type of the input, and has no limit of the degree of other polynomials.",
  };

  Status CheckInputs(std::span<const AnyTensor>) const {
    if (variant == 0 || function == Function::kElementary) return Status::Ok();
    return InvalidArgument("attribute 'variant': expected 0 for this function, got ", variant);
  }
};

}  // namespace polyop
