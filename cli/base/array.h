// SPDX-License-Identifier: Apache-2.0
// A tensor that the program owns, between files and the runtime.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/tensor.h"

namespace polyop::cli {

struct Array {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;  // row-major

  /// Returns the number of elements in `bytes`. The product of the extents may overflow where one of them is 0.
  int64_t size() const { return static_cast<int64_t>(bytes.size() / SizeOf(dtype)); }
  double at(int64_t i) const;
  /// Like at() for integers and bool, of which a double cannot represent all.
  int64_t integer_at(int64_t i) const;
  void set(int64_t i, double value);
};

/// Returns an array of zeros. Throws Failure if the size overflows or exceeds kMaxBytes.
Array MakeArray(DType dtype, std::vector<int64_t> shape);
/// The size of the largest array that a file may have.
inline constexpr int64_t kMaxBytes = int64_t{1} << 36;

/// Converts each element through double. Returns the array unchanged if it has the dtype already.
Array Cast(const Array& array, DType dtype);

/// "[1, 3, 64, 64]"
std::string ShapeText(const std::vector<int64_t>& shape);

}  // namespace polyop::cli
