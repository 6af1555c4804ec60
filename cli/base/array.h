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

  /// What `bytes` holds: an extent of 0 beside huge ones overflows nothing.
  int64_t size() const { return static_cast<int64_t>(bytes.size() / SizeOf(dtype)); }
  double at(int64_t i) const;
  void set(int64_t i, double value);
};

/// Zeros. Throws Failure if the size overflows or exceeds kMaxBytes.
Array MakeArray(DType dtype, std::vector<int64_t> shape);
/// The largest array that a file may ask for.
inline constexpr int64_t kMaxBytes = int64_t{1} << 36;

/// Element by element through double; the same dtype returns the array itself.
Array Cast(const Array& array, DType dtype);

/// "[1, 3, 64, 64]"
std::string ShapeText(const std::vector<int64_t>& shape);

}  // namespace polyop::cli
