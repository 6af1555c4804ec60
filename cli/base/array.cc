// SPDX-License-Identifier: Apache-2.0
#include "cli/base/array.h"

#include <cstring>
#include <type_traits>

#include "cli/base/failure.h"
#include "core/elements.h"

namespace polyop::cli {

double Array::at(int64_t i) const { return ReadElement(dtype, bytes.data(), i); }

int64_t Array::integer_at(int64_t i) const {
  return VisitType(dtype, [&](auto tag) -> int64_t {
    using T = decltype(tag);
    if constexpr (std::is_integral_v<T>) {
      T value;
      std::memcpy(&value, bytes.data() + static_cast<size_t>(i) * sizeof(T), sizeof(T));
      return static_cast<int64_t>(value);
    } else {
      return 0;
    }
  });
}

void Array::set(int64_t i, double value) { WriteElement(dtype, bytes.data(), i, value); }

Array MakeArray(DType dtype, std::vector<int64_t> shape) {
  int64_t bytes = static_cast<int64_t>(SizeOf(dtype));
  bool zero = false;
  for (int64_t d : shape) {
    if (d < 0) throw Failure(kBadFile, "array: expected extents of at least 0, got shape " + ShapeText(shape));
    zero |= d == 0;
    if (d > 0 && (__builtin_mul_overflow(bytes, d, &bytes) || bytes > kMaxBytes)) bytes = kMaxBytes + 1;
  }
  if (!zero && bytes > kMaxBytes) throw Failure(kBadFile, "array: shape " + ShapeText(shape) + " is too large");
  Array array{dtype, std::move(shape), {}};
  array.bytes.resize(zero ? 0 : static_cast<size_t>(bytes));
  return array;
}

Array Cast(const Array& array, DType dtype) {
  if (array.dtype == dtype) return array;
  Array result = MakeArray(dtype, array.shape);
  for (int64_t i = 0; i < array.size(); ++i) result.set(i, array.at(i));
  return result;
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

}  // namespace polyop::cli
