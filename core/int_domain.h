// The shape evaluator's domain of a real call: extents are int64, everything is known. An extent that the kernel finds
// counts as the most that it may be.
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

  /// Why some extent could not be computed, or null. Such extents have no meaning.
  const char* problem() const { return problem_; }

  Dim Const(int64_t v) { return v; }
  Dim Unknown() { return Fail("a value that decides a shape is missing"); }
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
        if (b <= 0) return Fail("a size is divided by a number that is not positive");
        const Dim quotient = a / b, remainder = a % b;
        if (kind == ExprKind::kFloorDiv) return quotient - (remainder < 0);
        return quotient + (remainder > 0);
      }
      default: return Fail("an unknown operation");
    }
  }

  Dim FloorScale(Dim d, double scale) {
    const double scaled = std::floor(static_cast<double>(d) * scale);
    if (!(scaled >= 0 && scaled < 9.0e18)) return Fail("a scale is negative, too large or not a number");
    return static_cast<Dim>(scaled);
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
    // Only integer tensors serve as extents as they are; a real one passes through FloorScale.
    *integer = std::is_integral_v<T> ? static_cast<int64_t>(value) : 0;
    return true;
  }
  Dim Fail(const char* why) {
    if (problem_ == nullptr) problem_ = why;
    return 0;
  }
  Dim Overflow() { return Fail("a size overflows 64 bits"); }

  std::span<const AnyTensor> inputs_;
  const char* problem_ = nullptr;
};

}  // namespace polyop
