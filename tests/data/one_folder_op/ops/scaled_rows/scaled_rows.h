#pragma once

#include "core/operator.h"

namespace polyop {

/// Multiplies every row of x by its weight and adds a shift. Tests use it as a third-party operator.
struct ScaledRows {
  float shift = 0.0f;

  static constexpr const char* kName = "scaled_rows";
  static constexpr Signature kSignature = "x: T[N, C], weight: T[N] -> y: T[N, C], row: i64[N]";
  static constexpr NodeName kNodes[] = {"elsewhere::ScaledRows"};
  static constexpr std::tuple kAttributes = {Attr("shift", &ScaledRows::shift, "added to every product")};
  static constexpr Doc kDoc = {.summary = "x[n, c] * weight[n] + shift, and the index of each row."};
};

}  // namespace polyop
