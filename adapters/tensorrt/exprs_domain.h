// SPDX-License-Identifier: Apache-2.0
// The shape evaluator's domain for building an engine: extents are TensorRT expressions.
#pragma once

#include <NvInferRuntime.h>

#include <cmath>
#include <map>
#include <span>
#include <string>

#include "core/int_domain.h"

namespace polyop::tensorrt {

class ExprsDomain {
 public:
  using Dim = const nvinfer1::IDimensionExpr*;

  /// `shape_inputs` are the inputs whose values determine shapes, in the signature's order. `value_index` maps an input
  /// of the signature to its index in `shape_inputs`, or to -1.
  ExprsDomain(nvinfer1::IExprBuilder& builder, std::span<const nvinfer1::DimsExprs> shape_inputs,
              std::span<const int> value_index)
      : builder_(builder), shape_inputs_(shape_inputs), value_index_(value_index) {}

  /// Returns why an extent could not be expressed, or an empty text. Such extents are null.
  const std::string& problem() const { return problem_; }
  /// Sets the size tensor for extents that the kernel finds, before an output is evaluated.
  void StartOutput(int size_tensor_index) { size_tensor_index_ = size_tensor_index; }

  Dim Const(int64_t value) { return builder_.constant(value); }
  Dim Unknown() { return Fail("its extents depend on a value that is not known before the engine runs"); }

  Dim Apply(ExprKind kind, Dim a, Dim b) {
    using nvinfer1::DimensionOperation;
    if (a == nullptr || b == nullptr) return nullptr;
    if (a->isConstant() && b->isConstant()) {
      IntDomain numbers({});
      const int64_t value = numbers.Apply(kind, a->getConstantValue(), b->getConstantValue());
      return numbers.problem() == nullptr ? Const(value) : Fail(numbers.problem());
    }
    switch (kind) {
      case ExprKind::kAdd: return builder_.operation(DimensionOperation::kSUM, *a, *b);
      case ExprKind::kSub: return builder_.operation(DimensionOperation::kSUB, *a, *b);
      case ExprKind::kMul: return builder_.operation(DimensionOperation::kPROD, *a, *b);
      case ExprKind::kMin: return builder_.operation(DimensionOperation::kMIN, *a, *b);
      case ExprKind::kMax: return builder_.operation(DimensionOperation::kMAX, *a, *b);
      case ExprKind::kFloorDiv: return builder_.operation(DimensionOperation::kFLOOR_DIV, *a, *b);
      case ExprKind::kCeilDiv: return builder_.operation(DimensionOperation::kCEIL_DIV, *a, *b);
      default: return Fail("unknown operation");
    }
  }

  /// Returns the floor of a float32 product, as `IntDomain` computes it, in integers: a float is a fraction whose
  /// denominator is a power of two. Requires: dynamic extents of fractional scales are at most 2^24.
  Dim FloorScale(Dim d, double scale) {
    if (d == nullptr) return nullptr;
    if (!(scale > 0 && scale < 0x1p31)) return Fail("a scale is not positive or too large");
    if (d->isConstant()) {
      IntDomain numbers({});
      const int64_t value = numbers.FloorScale(d->getConstantValue(), scale);
      return numbers.problem() == nullptr ? Const(value) : Fail(numbers.problem());
    }
    if (scale != std::floor(scale)) scale = double{static_cast<float>(scale)};
    if (scale < 0x1p-32) return Const(0);  // an extent has 31 bits
    int64_t denominator = 1;
    while (scale != std::floor(scale) && denominator < int64_t{1} << 60) {
      scale *= 2;
      denominator *= 2;
    }
    if (scale != std::floor(scale) || scale > 0x1p31) return Fail("a scale has too many digits");
    const Dim scaled = Apply(ExprKind::kMul, d, Const(static_cast<int64_t>(scale)));
    if (denominator == 1) return scaled;
    return Apply(ExprKind::kFloorDiv, RoundedTo24Bits(scaled), Const(denominator));
  }

  /// Returns the maximum if both are dynamic. Does not support an extent of 0 with a dynamic 1.
  Dim Broadcast(Dim a, Dim b) {
    if (a == nullptr || b == nullptr) return nullptr;
    if (a->isConstant()) return a->getConstantValue() == 1 ? b : a;
    if (b->isConstant()) return b->getConstantValue() == 1 ? a : b;
    return Apply(ExprKind::kMax, a, b);
  }

  Dim Pending(std::string_view, Dim bound) {
    if (bound == nullptr) return nullptr;
    return builder_.declareSizeTensor(size_tensor_index_, *bound, *bound);
  }

  bool SurelyDiffer(Dim a, Dim b) const {
    return a != nullptr && b != nullptr && a->isConstant() && b->isConstant() &&
           a->getConstantValue() != b->getConstantValue();
  }
  std::string Text(Dim d) const {
    return d != nullptr && d->isConstant() ? std::to_string(d->getConstantValue()) : "?";
  }

  Dim Input(int input, int64_t index) {
    const int at = value_index_[static_cast<size_t>(input)];
    if (at < 0 || static_cast<size_t>(at) >= shape_inputs_.size()) return Unknown();
    const nvinfer1::DimsExprs& values = shape_inputs_[static_cast<size_t>(at)];
    if (index >= std::max(values.nbDims, 1)) return Unknown();
    return values.d[index];
  }
  /// TensorRT's shape tensors are integers.
  bool InputReal(int, int64_t, double*) const { return false; }

 private:
  /// Returns a number below 2^48 with the bits after the first 24 rounded, half up. TensorRT has no comparison in all
  /// versions; min(1, n / power) is one.
  Dim RoundedTo24Bits(Dim n) {
    if (n == nullptr) return nullptr;
    Dim unit = Const(1);  // of the last of 24 bits
    for (int bit = 0; bit < 24; ++bit) {
      const Dim reaches =
          Apply(ExprKind::kMin, Const(1), Apply(ExprKind::kFloorDiv, n, Const(int64_t{1} << (24 + bit))));
      unit = Apply(ExprKind::kAdd, unit, Apply(ExprKind::kMul, reaches, Const(int64_t{1} << bit)));
    }
    const Dim doubled = Apply(ExprKind::kAdd, Apply(ExprKind::kMul, n, Const(2)), unit);
    return Apply(ExprKind::kMul, Apply(ExprKind::kFloorDiv, doubled, Apply(ExprKind::kMul, unit, Const(2))), unit);
  }

  Dim Fail(const char* why) {
    if (problem_.empty()) problem_ = why;
    return nullptr;
  }

  nvinfer1::IExprBuilder& builder_;
  std::span<const nvinfer1::DimsExprs> shape_inputs_;
  std::span<const int> value_index_;
  int size_tensor_index_ = 0;
  std::string problem_;
};

}  // namespace polyop::tensorrt
