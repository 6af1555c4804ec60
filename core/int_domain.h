// SPDX-License-Identifier: Apache-2.0
// The shape evaluator's domain of a real call: extents are int64, and all are known. An extent that the kernel finds is
// its upper bound.
#pragma once

#include <cmath>
#include <span>
#include <string>

#include "core/shape_eval.h"

namespace polyop {

class IntDomain {
 public:
  using Dim = int64_t;

  explicit IntDomain(std::span<const AnyTensor> inputs) : inputs_(inputs) {}

  /// Returns what an extent was expected to be that could not be computed, or null. Such extents have no defined value.
  const char* problem() const { return problem_; }

  Dim Const(int64_t v) { return v; }
  Dim Unknown() { return Fail("expected a known value"); }
  Dim Pending(std::string_view, Dim bound) { return bound; }
  bool SurelyDiffer(Dim a, Dim b) const { return a != b; }
  std::string Text(Dim d) const { return std::to_string(d); }
  Dim Broadcast(Dim a, Dim b) const { return a == 1 ? b : a; }

  Dim Apply(ExprKind kind, Dim a, Dim b) {
    Dim result = 0;
    switch (kind) {
      case ExprKind::kAdd: return __builtin_add_overflow(a, b, &result) ? Overflow() : result;
      case ExprKind::kSub: return __builtin_sub_overflow(a, b, &result) ? Overflow() : result;
      case ExprKind::kMul: return __builtin_mul_overflow(a, b, &result) ? Overflow() : result;
      case ExprKind::kMin: return a < b ? a : b;
      case ExprKind::kMax: return a > b ? a : b;
      case ExprKind::kFloorDiv:
      case ExprKind::kCeilDiv: {
        if (b <= 0) return Fail("expected a divisor > 0");
        const Dim quotient = a / b, remainder = a % b;
        if (kind == ExprKind::kFloorDiv) return quotient - (remainder < 0);
        return quotient + (remainder > 0);
      }
      default: return Fail("expected a known operation");
    }
  }

  /// Returns the floor of a float32 product, like ONNX Runtime's Resize: 480 * 0.7 is 336, though the exact product
  /// with float32's 0.7 is less. Integer scales are exact.
  Dim FloorScale(Dim d, double scale) {
    double scaled = static_cast<double>(d) * scale;
    if (!(scale >= 0 && scaled >= 0 && scaled < 9.0e18)) {
      return Fail("expected a scale >= 0 and a size that fits in 64 bits");
    }
    if (scale != std::floor(scale)) scaled = double{static_cast<float>(d) * static_cast<float>(scale)};
    return static_cast<Dim>(std::floor(scaled));
  }

  Dim Input(int input, int64_t index) {
    double real = 0;
    int64_t integer = 0;
    return Number(input, index, &real, &integer) ? integer : Unknown();
  }
  bool InputReal(int input, int64_t index, double* real) const {
    int64_t integer = 0;
    return Number(input, index, real, &integer);
  }

 private:
  bool Number(int input, int64_t index, double* real, int64_t* integer) const {
    if (static_cast<size_t>(input) >= inputs_.size() || !inputs_[input].present) return false;
    const AnyTensor& t = inputs_[input];
    if (t.data == nullptr) return false;
    if (index >= t.shape.NumElements().value_or(0)) return false;
    switch (t.dtype) {
      case DType::kF32: return Read(static_cast<const float*>(t.data)[index], real, integer);
      case DType::kF64: return Read(static_cast<const double*>(t.data)[index], real, integer);
      case DType::kF16: return Read(ToFloat(static_cast<const Half*>(t.data)[index]), real, integer);
      case DType::kBF16: return Read(ToFloat(static_cast<const BFloat16*>(t.data)[index]), real, integer);
      case DType::kI32: return Read(static_cast<const int32_t*>(t.data)[index], real, integer);
      case DType::kI64: return Read(static_cast<const int64_t*>(t.data)[index], real, integer);
      default: return false;
    }
  }

  template <class T>
  static bool Read(T value, double* real, int64_t* integer) {
    *real = static_cast<double>(value);
    // Only integer tensors are used as extents directly; real ones go through FloorScale.
    *integer = std::is_integral_v<T> ? static_cast<int64_t>(value) : 0;
    return true;
  }
  Dim Fail(const char* why) {
    if (problem_ == nullptr) problem_ = why;
    return 0;
  }
  Dim Overflow() { return Fail("expected a size that fits in 64 bits"); }

  std::span<const AnyTensor> inputs_;
  const char* problem_ = nullptr;
};

}  // namespace polyop
