// Selects the function of families/special/unary.h that the attributes name.
#pragma once

#include "core/host_device.h"
#include "ops/special_unary/special_unary.h"

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
    case 12: return body(UnaryFunction<12>());
    case 13: return body(UnaryFunction<13>());
    case 14: return body(UnaryFunction<14>());
    case 15: return body(UnaryFunction<15>());
    case 16: return body(UnaryFunction<16>());
    case 17: return body(UnaryFunction<17>());
    case 18: return body(UnaryFunction<18>());
    case 19: return body(UnaryFunction<19>());
    case 20: return body(UnaryFunction<20>());
    case 21: return body(UnaryFunction<21>());
    case 24: return body(UnaryFunction<24>());
    case 25: return body(UnaryFunction<25>());
    default: return body(UnaryFunction<28>());
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
    } else if constexpr (kCode == 12) {            \
      return special::I0(x);                       \
    } else if constexpr (kCode == 13) {            \
      return special::I1(x);                       \
    } else if constexpr (kCode == 14) {            \
      return special::I0e(x);                      \
    } else if constexpr (kCode == 15) {            \
      return special::I1e(x);                      \
    } else if constexpr (kCode == 16) {            \
      return special::K0(x);                       \
    } else if constexpr (kCode == 17) {            \
      return special::K1(x);                       \
    } else if constexpr (kCode == 18) {            \
      return special::K0e(x);                      \
    } else if constexpr (kCode == 19) {            \
      return special::K1e(x);                      \
    } else if constexpr (kCode == 20) {            \
      return special::BesselJ<0>(x);               \
    } else if constexpr (kCode == 21) {            \
      return special::BesselJ<1>(x);               \
    } else if constexpr (kCode == 24) {            \
      return special::BesselY<0>(x);               \
    } else if constexpr (kCode == 25) {            \
      return special::BesselY<1>(x);               \
    } else {                                       \
      return special::AiryAi(x);                   \
    }                                              \
  }

}  // namespace polyop
