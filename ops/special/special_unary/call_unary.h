// SPDX-License-Identifier: Apache-2.0
// Selects the function of ops/special/unary.h that the attributes name.
#pragma once

#include "core/host_device.h"
#include "ops/special/special_unary/special_unary.h"

namespace polyop {

template <int kNumber>
struct UnaryFunction {
  static constexpr int kCode = kNumber;
};

/// Calls body(UnaryFunction<code>()).
template <class Body>
auto WithUnaryFunction(int code, const Body& body) {
  switch (code) {
    case 0: return body(UnaryFunction<0>());
    case 1: return body(UnaryFunction<1>());
    case 2: return body(UnaryFunction<2>());
    case 3: return body(UnaryFunction<3>());
    case 4: return body(UnaryFunction<4>());
    case 5: return body(UnaryFunction<5>());
    case 8: return body(UnaryFunction<8>());
    case 9: return body(UnaryFunction<9>());
    case 10: return body(UnaryFunction<10>());
    case 16: return body(UnaryFunction<16>());
    case 17: return body(UnaryFunction<17>());
    case 18: return body(UnaryFunction<18>());
    case 19: return body(UnaryFunction<19>());
    case 24: return body(UnaryFunction<24>());
    case 25: return body(UnaryFunction<25>());
    case 26: return body(UnaryFunction<26>());
    case 27: return body(UnaryFunction<27>());
    case 32: return body(UnaryFunction<32>());
    case 33: return body(UnaryFunction<33>());
    case 34: return body(UnaryFunction<34>());
    case 40: return body(UnaryFunction<40>());
    case 41: return body(UnaryFunction<41>());
    case 48: return body(UnaryFunction<48>());
    case 56: return body(UnaryFunction<56>());
    case 57: return body(UnaryFunction<57>());
    case 58: return body(UnaryFunction<58>());
    case 59: return body(UnaryFunction<59>());
    case 60: return body(UnaryFunction<60>());
    case 61: return body(UnaryFunction<61>());
    case 62: return body(UnaryFunction<62>());
    default: return body(UnaryFunction<63>());
  }
}

/// Defines the template NAME<code>(x), which calls the function in the namespace `special` that is visible there.
#define POLYOP_DEFINE_CALL_UNARY(ATTRIBUTES, NAME) \
  template <int kCode, class R>                    \
  ATTRIBUTES R NAME(R x) {                         \
    if constexpr (kCode == 0) {                    \
      return special::Erf(x);                      \
    } else if constexpr (kCode == 1) {             \
      return special::Erfc(x);                     \
    } else if constexpr (kCode == 2) {             \
      return special::Erfcx(x);                    \
    } else if constexpr (kCode == 3) {             \
      return special::LogNdtr(x);                  \
    } else if constexpr (kCode == 4) {             \
      return special::Erfinv(x);                   \
    } else if constexpr (kCode == 5) {             \
      return special::Ndtri(x);                    \
    } else if constexpr (kCode == 8) {             \
      return special::LogGamma(x);                 \
    } else if constexpr (kCode == 9) {             \
      return special::Digamma(x);                  \
    } else if constexpr (kCode == 10) {            \
      return special::Trigamma(x);                 \
    } else if constexpr (kCode == 16) {            \
      return special::I0(x);                       \
    } else if constexpr (kCode == 17) {            \
      return special::I1(x);                       \
    } else if constexpr (kCode == 18) {            \
      return special::I0e(x);                      \
    } else if constexpr (kCode == 19) {            \
      return special::I1e(x);                      \
    } else if constexpr (kCode == 24) {            \
      return special::K0(x);                       \
    } else if constexpr (kCode == 25) {            \
      return special::K1(x);                       \
    } else if constexpr (kCode == 26) {            \
      return special::K0e(x);                      \
    } else if constexpr (kCode == 27) {            \
      return special::K1e(x);                      \
    } else if constexpr (kCode == 32) {            \
      return special::BesselJ<0>(x);               \
    } else if constexpr (kCode == 33) {            \
      return special::BesselJ<1>(x);               \
    } else if constexpr (kCode == 34) {            \
      return special::SphericalJ0(x);              \
    } else if constexpr (kCode == 40) {            \
      return special::BesselY<0>(x);               \
    } else if constexpr (kCode == 41) {            \
      return special::BesselY<1>(x);               \
    } else if constexpr (kCode == 48) {            \
      return special::AiryAi(x);                   \
    } else if constexpr (kCode == 56) {            \
      return special::Tan(x);                      \
    } else if constexpr (kCode == 57) {            \
      return special::Sinh(x);                     \
    } else if constexpr (kCode == 58) {            \
      return special::Cosh(x);                     \
    } else if constexpr (kCode == 59) {            \
      return special::Atanh(x);                    \
    } else if constexpr (kCode == 60) {            \
      return special::Softplus(x);                 \
    } else if constexpr (kCode == 61) {            \
      return special::Mish(x);                     \
    } else if constexpr (kCode == 62) {            \
      return special::Entropy(x);                  \
    } else {                                       \
      return special::Logit(x);                    \
    }                                              \
  }

}  // namespace polyop
