// SPDX-License-Identifier: Apache-2.0
// ONNX's DFT of one axis: ONNX Runtime's kernel is slow, and inexact for lengths that are no power of two.
//
// polyop's node transforms the last dimension before the parts; other axes are moved there.
#include <cstring>

#include "core/pattern.h"

namespace polyop {
namespace {

constexpr int64_t kLongestExact = 100;  // of ONNX Runtime's, unless the length is a power of two

// Returns the transformed axis, which is no part of a complex number; -1 if it is not known.
int AxisOf(const GraphNode& node, int opset, int rank) {
  double axis = static_cast<double>(node.Int("axis", 1));
  if (opset >= 20) {
    const auto given = node.input(2) != nullptr ? Scalar(node.input(2)) : std::optional(-2.0);
    if (!given.has_value()) return -1;
    axis = *given;
  }
  if (axis < 0) axis += rank;
  return axis >= 0 && axis < rank - 1 ? static_cast<int>(axis) : -1;
}

std::optional<PatternMatch> Match(const Graph& graph, const GraphNode& node) {
  const GraphValue* const x = node.input(0);
  const int64_t inverse = node.Int("inverse", 0), onesided = node.Int("onesided", 0);
  const int axis = x->rank() > 0 ? AxisOf(node, graph.opset, x->rank()) : -1;
  PatternMatch match;
  match.inputs = {x};
  match.outputs = {node.outputs[0]};
  match.node = "polyop::DFT";
  match.attributes = {
      {"dimensions", AttrValue::Int(1)}, {"inverse", AttrValue::Int(inverse)}, {"onesided", AttrValue::Int(onesided)}};
  match.is_exact = true;
  match.work = x->known.TypicalElements();
  const auto refused = [&](const char* why) {
    match.refused = why;
    return match;
  };
  if (axis < 0) return refused("expected a known rank and a constant axis");
  if (inverse != 0 && onesided != 0) return refused("polyop has no one-sided inverse transform of a whole spectrum");
  const int64_t length = (*x->shape())[axis];
  if (node.input(1) != nullptr && (length <= 0 || Scalar(node.input(1)) != static_cast<double>(length))) {
    return refused("the length of the transform differs from that of the input");
  }
  const bool is_inexact = length > kLongestExact && (length & (length - 1)) != 0;
  match.parameters = {{"axis", AttrValue::Int(axis)},
                      {"last", AttrValue::Int(x->rank() - 2)},
                      {"is_inexact", AttrValue::Int(is_inexact)}};
  return match;
}

// ---- In sessions ----------------------------------------------------------------------------------------------------

class Transform : public StandardKernel {
 public:
  Transform(std::unique_ptr<StandardKernel> transform, int axis, int last)
      : transform_(std::move(transform)), axis_(axis), last_(last) {}

  Status Run(std::span<const AnyTensor> inputs, OutputSource& outputs, const Context* context) const override {
    ScratchOutput moved, result;
    AnyTensor x = inputs[0];
    POLYOP_RETURN_IF_ERROR(Exchange(inputs[0], moved, &x.data));
    x.shape = moved.shape();
    POLYOP_RETURN_IF_ERROR(transform_->Run({&x, 1}, result, context));
    void* data = nullptr;
    return Exchange({const_cast<void*>(result.data()), x.dtype, true, result.shape()}, outputs, &data);
  }

 private:
  // Exchanges the axis with the last dimension before the parts.
  Status Exchange(const AnyTensor& from, OutputSource& outputs, void** data) const {
    const Shape& shape = from.shape;
    Shape exchanged = shape;
    std::swap(exchanged[axis_], exchanged[last_]);
    POLYOP_RETURN_IF_ERROR(outputs.Allocate(0, from.dtype, exchanged, data));
    const auto product = [&](int begin, int end) {
      int64_t count = 1;
      for (int d = begin; d < end; ++d) count *= shape[d];
      return count;
    };
    const int64_t outer = product(0, axis_), n = shape[axis_], middle = product(axis_ + 1, last_), m = shape[last_];
    const size_t bytes = static_cast<size_t>(shape[last_ + 1]) * SizeOf(from.dtype);
    auto* to = static_cast<std::byte*>(*data);
    const auto* const source = static_cast<const std::byte*>(from.data);
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t j = 0; j < m; ++j) {
        for (int64_t i = 0; i < middle; ++i) {
          for (int64_t k = 0; k < n; ++k, to += bytes) {
            std::memcpy(to, source + static_cast<size_t>(((o * n + k) * middle + i) * m + j) * bytes, bytes);
          }
        }
      }
    }
    return Status::Ok();
  }

  const std::unique_ptr<StandardKernel> transform_;
  const int axis_, last_;
};

std::unique_ptr<StandardKernel> MakeKernel(const PatternMatch& match) {
  const auto axis = static_cast<int>(match.Parameter("axis")), last = static_cast<int>(match.Parameter("last"));
  std::unique_ptr<StandardKernel> transform = NodeKernelOf(match);
  if (transform == nullptr || axis == last) return transform;
  return std::make_unique<Transform>(std::move(transform), axis, last);
}

POLYOP_PATTERN(fourier_transform, {"Fourier transform", {"DFT"}, Match, MakeKernel, 0});

}  // namespace
}  // namespace polyop
