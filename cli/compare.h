// How far two tensors that should be equal are apart.
#pragma once

#include <string>

#include "cli/base/array.h"

namespace polyop::cli {

struct Tolerance {
  double relative = 1e-4;
  double absolute = 1e-5;
};

struct Difference {
  double max = 0, mean = 0;  // of |got - want|, where both are numbers
  double worst_got = 0, worst_want = 0;
  int64_t worst_at = -1;  // the element farthest outside of the tolerance, as a flat index
  int64_t departing = 0;  // elements outside of the tolerance
  int64_t count = 0;
  std::string mismatch;  // types or shapes that cannot be compared
  bool ok() const { return departing == 0 && mismatch.empty(); }
};

/// An element is within the tolerance if |got - want| <= absolute + relative * |want|; NaN equals NaN, an infinity
/// itself. Integers must be equal.
Difference Compare(const Array& got, const Array& want, const Tolerance& tolerance);

}  // namespace polyop::cli
