// SPDX-License-Identifier: Apache-2.0
// Limits on the number of points and boxes, whose indices in outputs are i32.
#pragma once

#include <cstdint>

#include "core/status.h"
#include "core/tensor.h"

namespace polyop {

/// Checks that an i32 can index dimension `axis` of the input.
inline Status CheckPointCount(const char* name, const AnyTensor& input, int axis) {
  const int64_t count = input.shape[axis];
  if (count <= INT32_MAX) return Status::Ok();
  return InvalidArgument("'", name, "': expected at most 2147483647 in dimension ", axis, ", got ", count);
}

/// Checks that an i32 can index the concatenated rows of all clouds of a call.
inline Status CheckRowsOfClouds(int64_t clouds, int64_t points) {
  if (points <= INT32_MAX) return Status::Ok();
  return InvalidArgument("expected at most 2147483647 points in all clouds, got ", points, " in ", clouds);
}

}  // namespace polyop
