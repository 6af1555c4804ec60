// SPDX-License-Identifier: Apache-2.0
// The errors of matrices whose computation failed, in PyTorch's words.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "core/status.h"
#include "ops/linalg/matrices.h"

namespace polyop::linalg {

/// Returns an error for the first matrix of a batch that describe(index) returns a reason for; Ok if all are empty.
template <class Describe>
Status CheckMatrices(const char* function, const Shape& shape, const Describe& describe) {
  const int64_t count = CountMatrices(shape);
  for (int64_t n = 0; n < count; ++n) {
    const std::string reason = describe(n);
    if (reason.empty()) continue;
    const std::string element = shape.rank() > 2 ? Concat("(Batch element ", n, "): ") : "";
    return InvalidArgument(function, ": ", element, reason);
  }
  return Status::Ok();
}

/// CheckMatrices of matrices whose `info` is 0 if there is no error.
template <class Describe>
Status CheckInfo(const char* function, const Shape& shape, const int32_t* info, const Describe& describe) {
  const int64_t count = CountMatrices(shape);
  if (std::count(info, info + count, 0) == count) return Status::Ok();
  return CheckMatrices(function, shape,
                       [&](int64_t n) -> std::string { return info[n] == 0 ? "" : describe(info[n]); });
}

inline std::string NoInverse(int64_t diagonal) {
  return Concat("The diagonal element ", diagonal,
                " is zero, the inversion could not be completed because the input matrix is singular.");
}

}  // namespace polyop::linalg
