// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "core/operator.h"

namespace polyop {

/// A special function of each element.
struct SpecialUnary {
  enum class Function { kErf, kGamma, kBesselI, kBesselK, kBesselJ, kBesselY, kAiry, kElementary };
  Function function = Function::kErf;
  int64_t variant = 0;

  static constexpr const char* kName = "special_unary";
  static constexpr Signature kSignature = "x: T[...S] -> y: T[...S]";
  static constexpr NodeName kNodes[] = {
      "polyop::SpecialUnary",
      NodeName("polyop::Tan").Preset("function", "elementary").Preset("variant", "0").Mirror(7).Mirror(22),
      NodeName("polyop::Sinh").Preset("function", "elementary").Preset("variant", "1").Mirror(9).Mirror(22),
      NodeName("polyop::Cosh").Preset("function", "elementary").Preset("variant", "2").Mirror(9).Mirror(22),
      NodeName("polyop::Atanh").Preset("function", "elementary").Preset("variant", "3").Mirror(9).Mirror(22),
  };
  static constexpr std::tuple kAttributes = {
      Attr("function", &SpecialUnary::function,
           R"(the function, with its variants 0, 1, …: erf: erf, erfc, erfcx, log_ndtr, erfinv, ndtri; gamma: lgamma,
           digamma, trigamma; bessel_i: i0, i1, i0e, i1e; bessel_k: modified_bessel_k0, modified_bessel_k1,
           scaled_modified_bessel_k0, scaled_modified_bessel_k1; bessel_j: bessel_j0, bessel_j1, spherical_bessel_j0;
           bessel_y: bessel_y0, bessel_y1; airy: airy_ai; elementary: tan, sinh, cosh, atanh, softplus, mish,
           entr, logit)")
          .OneOf("erf", "gamma", "bessel_i", "bessel_k", "bessel_j", "bessel_y", "airy", "elementary"),
      Attr("variant", &SpecialUnary::variant, "which variant of the function").Between(0, 7),
  };
  static constexpr Doc kDoc = {
      .summary = "Computes a special function of each element, such as a Bessel function, or an elementary one.",
      .semantics = R"(Computes in double precision, by Chebyshev series, and rounds once. On the CPU, erfinv, i0e,
          i1e and the elementary functions except tan of f32 are computed in single precision, with relative errors
          below 1e-6. Arguments outside of the function's domain give NaN. The oscillating functions of arguments beyond
          about 1e15 have no exact digits.)",
      .source = "`torch.special`; Tan, Sinh, Cosh, Atanh, Softplus and Mish of ONNX",
      .differences = "torch computes in the type of the input.",
  };

  Status CheckInputs(std::span<const AnyTensor>) const {
    constexpr std::array<int64_t, 8> kVariants = {6, 3, 4, 4, 3, 2, 1, 8};
    const int64_t count = kVariants[static_cast<size_t>(function)];
    if (variant < count) return Status::Ok();
    return InvalidArgument("attribute 'variant': expected less than ", count, " for this function, got ", variant);
  }

  /// Returns the number of the function and variant, as UnaryFunction has it.
  int Code() const { return 8 * static_cast<int>(function) + static_cast<int>(variant); }
};

}  // namespace polyop
