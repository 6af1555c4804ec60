#include "cli/array.h"

#include <cmath>
#include <cstring>

#include "cli/failure.h"

namespace polyop::cli {
namespace {

template <class F>
auto Visit(DType dtype, const F& f) {
  switch (dtype) {
    case DType::kF32: return f(float{});
    case DType::kF16: return f(Half{});
    case DType::kBF16: return f(BFloat16{});
    case DType::kF64: return f(double{});
    case DType::kI8: return f(int8_t{});
    case DType::kU8: return f(uint8_t{});
    case DType::kI16: return f(int16_t{});
    case DType::kI32: return f(int32_t{});
    case DType::kI64: return f(int64_t{});
    case DType::kBool: break;
  }
  return f(bool{});
}

template <class T>
T Saturate(double value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value != 0;
  } else if constexpr (std::is_integral_v<T>) {
    if (std::isnan(value)) return 0;
    const double low = static_cast<double>(std::numeric_limits<T>::min());
    const double high = static_cast<double>(std::numeric_limits<T>::max());
    if (value <= low) return std::numeric_limits<T>::min();
    if (value >= high) return std::numeric_limits<T>::max();
    return static_cast<T>(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(value);
  } else {
    return FromFloat<T>(static_cast<float>(value));
  }
}

}  // namespace

double Array::at(int64_t i) const {
  return Visit(dtype, [&](auto tag) -> double {
    using T = decltype(tag);
    T value;
    std::memcpy(&value, bytes.data() + static_cast<size_t>(i) * sizeof(T), sizeof(T));
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
      return ToFloat(value);
    } else {
      return static_cast<double>(value);
    }
  });
}

void Array::set(int64_t i, double value) {
  Visit(dtype, [&](auto tag) {
    using T = decltype(tag);
    const T stored = Saturate<T>(value);
    std::memcpy(bytes.data() + static_cast<size_t>(i) * sizeof(T), &stored, sizeof(T));
  });
}

Array MakeArray(DType dtype, std::vector<int64_t> shape) {
  int64_t bytes = static_cast<int64_t>(SizeOf(dtype));
  bool zero = false;
  for (int64_t d : shape) {
    if (d < 0) throw Failure(kBadFile, "an array of shape " + ShapeText(shape) + " has a negative extent");
    zero |= d == 0;
    if (d > 0 && __builtin_mul_overflow(bytes, d, &bytes)) bytes = kMaxBytes + 1;
    if (bytes > kMaxBytes && !zero) {
      throw Failure(kBadFile, "an array of shape " + ShapeText(shape) + " is too large");
    }
  }
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
