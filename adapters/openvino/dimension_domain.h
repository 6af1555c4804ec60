// SPDX-License-Identifier: Apache-2.0
// The shape evaluator's domain for OpenVINO's shape inference: an extent is a number, or unknown up to a bound.
#pragma once

#include <openvino/core/dimension.hpp>
#include <span>
#include <string>

#include "core/int_domain.h"

namespace polyop::openvino {

/// Like ov::Dimension, whose arithmetic clamps at 0, but intermediate results may be negative.
struct Extent {
  bool known = false;
  int64_t value = 0;  // if not known: the upper bound; -1: unbounded

  static Extent Of(const ov::Dimension& d) {
    return d.is_static() ? Extent{true, d.get_length()} : Extent{false, d.get_max_length()};
  }
  ov::Dimension ToOpenVino() const { return known ? ov::Dimension(value) : ov::Dimension(0, value); }
};

class DimensionDomain {
 public:
  using Dim = Extent;

  /// The data of inputs that are not constants is null.
  explicit DimensionDomain(std::span<const AnyTensor> inputs) : inputs_(inputs) {}

  /// Returns why an extent could not be computed, or null, as in IntDomain.
  const char* problem() const { return problem_; }

  Dim Const(int64_t v) const { return {true, v}; }
  Dim Unknown() const { return {false, -1}; }
  Dim Pending(std::string_view, const Dim& bound) const { return {false, bound.value}; }
  bool SurelyDiffer(const Dim& a, const Dim& b) const { return a.known && b.known && a.value != b.value; }
  std::string Text(const Dim& d) const { return d.known ? std::to_string(d.value) : "?"; }
  Dim Broadcast(const Dim& a, const Dim& b) const {
    if (a.known && a.value != 1) return a;
    if (b.known && b.value != 1) return b;
    if (a.known) return b;  // a is 1
    return b.known ? a : Unknown();
  }

  Dim Apply(ExprKind kind, const Dim& a, const Dim& b) {
    if (!a.known || !b.known) return Unknown();
    return Compute([&](IntDomain& numbers) { return numbers.Apply(kind, a.value, b.value); });
  }
  Dim FloorScale(const Dim& d, double scale) {
    if (!d.known) return Unknown();
    return Compute([&](IntDomain& numbers) { return numbers.FloorScale(d.value, scale); });
  }

  Dim Input(int input, int64_t index) const {
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
    if (problem_ == nullptr) problem_ = numbers.problem();
    return numbers.problem() == nullptr ? Const(value) : Unknown();
  }

  std::span<const AnyTensor> inputs_;
  const char* problem_ = nullptr;
};

}  // namespace polyop::openvino
