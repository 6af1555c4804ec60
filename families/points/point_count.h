// Indices of points and boxes are i32 in outputs.
#pragma once

#include <cstdint>

#include "core/status.h"
#include "core/tensor.h"

namespace polyop {

/// Dimension `axis` of the input has places that an i32 can number.
inline Status CheckPointCount(const char* name, const AnyTensor& input, int axis) {
  const int64_t count = input.shape[axis];
  if (count <= INT32_MAX) return Status::Ok();
  return InvalidArgument("'", name, "' has ", count, " of dimension ", axis,
                         ", wanted at most 2147483647: their indices are i32");
}

/// All clouds of a call have rows that an i32 can number, where they lie one behind the other.
inline Status CheckRowsOfClouds(int64_t clouds, int64_t points) {
  if (points <= INT32_MAX) return Status::Ok();
  return InvalidArgument(clouds, " clouds have ", points, " points in all, wanted at most 2147483647");
}

}  // namespace polyop
