// The shape evaluator's domain of OpenVINO's shape inference: an extent is a number, or a range.
#pragma once

#include <openvino/core/dimension.hpp>
#include <span>
#include <string>

#include "core/int_domain.h"

namespace polyop::openvino {

class DimensionDomain {
 public:
  using Dim = ov::Dimension;

  /// Values of inputs that are constants have data; of others it is null.
  explicit DimensionDomain(std::span<const AnyTensor> inputs) : inputs_(inputs) {}

  /// As of IntDomain: why some extent could not be computed, or null.
  const char* problem() const { return problem_; }

  // A Dimension takes a negative number for an open end.
  Dim Const(int64_t v) { return v < 0 ? Fail("a size is negative") : Dim(v); }
  Dim Unknown() { return Dim::dynamic(); }
  Dim Pending(std::string_view, const Dim& bound) { return Dim(0, bound.get_max_length()); }
  bool SurelyDiffer(const Dim& a, const Dim& b) const { return a.is_static() && b.is_static() && a != b; }
  std::string Text(const Dim& d) const { return d.is_static() ? std::to_string(d.get_length()) : "?"; }
  Dim Broadcast(const Dim& a, const Dim& b) const {
    if (a.is_static() && a.get_length() != 1) return a;
    if (b.is_static() && b.get_length() != 1) return b;
    if (a.is_static()) return b;  // a is 1
    return b.is_static() ? a : Dim::dynamic();
  }

  // Arithmetic of Dimension itself ends at 0: numbers are computed as in a real call.
  Dim Apply(ExprKind kind, const Dim& a, const Dim& b) {
    if (a.is_dynamic() || b.is_dynamic()) return Unknown();
    return Compute([&](IntDomain& numbers) { return numbers.Apply(kind, a.get_length(), b.get_length()); });
  }
  Dim FloorScale(const Dim& d, double scale) {
    if (d.is_dynamic()) return Unknown();
    return Compute([&](IntDomain& numbers) { return numbers.FloorScale(d.get_length(), scale); });
  }

  Dim Input(int input, int64_t index) {
    IntDomain numbers(inputs_);
    const int64_t value = numbers.Input(input, index);
    return numbers.problem() == nullptr ? Const(value) : Unknown();
  }
  bool InputReal(int input, int64_t index, double* real) const {
    return IntDomain(inputs_).InputReal(input, index, real);
  }

 private:
  template <class Computation>
  Dim Compute(const Computation& computation) {
    IntDomain numbers({});
    const int64_t value = computation(numbers);
    return numbers.problem() == nullptr ? Const(value) : Fail(numbers.problem());
  }
  Dim Fail(const char* why) {
    if (problem_ == nullptr) problem_ = why;
    return Dim::dynamic();
  }

  std::span<const AnyTensor> inputs_;
  const char* problem_ = nullptr;
};

}  // namespace polyop::openvino
