// SPDX-License-Identifier: Apache-2.0
// The difference between two tensors.
#pragma once

#include <optional>
#include <string>

#include "cli/base/array.h"

namespace polyop::cli {

struct Tolerance {
  double relative = 1e-4;
  double absolute = 1e-5;
};

struct Difference {
  double max = 0, mean = 0;           // of |got - want|, where both are finite
  double scale = 0;                   // the largest finite |want|
  bool infinite = false;              // one of the elements is NaN or infinite in one of the tensors alone
  int64_t worst_at = -1;              // flat index of the element farthest outside of the tolerance
  std::string worst_got, worst_want;  // texts that differ
  int64_t differing = 0;              // number of elements outside of the tolerance
  int64_t count = 0;
  std::string mismatch;  // a difference of types or shapes
  bool ok() const { return differing == 0 && mismatch.empty(); }
  /// Returns `max` relative to the scale, or nullopt for what has no measure.
  std::optional<double> relative() const;
};

/// An element is within the tolerance if |got - want| <= absolute + relative * |want|. NaN equals NaN, and an infinity
/// equals itself. Integers are compared exactly and must be equal.
Difference Compare(const Array& got, const Array& want, const Tolerance& tolerance);

}  // namespace polyop::cli
