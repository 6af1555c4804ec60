// SPDX-License-Identifier: Apache-2.0
// Kernels for nodes of standard ONNX operators, in a graph that a runtime owns: which nodes polyop computes, and for
// which it is faster. An operator's folder registers them in <op>_standard.cc:
//
//   POLYOP_STANDARD(cumsum, {"CumSum", MakeCumSum, CumSumPays});
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/context.h"
#include "core/op.h"

namespace polyop {

inline constexpr int64_t kUnknownExtent = -1;

/// A tensor of a node, as far as the graph states it.
struct KnownTensor {
  bool present = false;
  std::optional<DType> dtype;
  std::optional<Shape> shape;      // kUnknownExtent where the graph does not state an extent
  const void* constant = nullptr;  // the elements of a small constant, whose type and shape are known

  /// Returns -1 if it is unknown.
  int rank() const { return shape.has_value() ? shape->rank() : -1; }
  /// Returns the elements of a constant of this type; nullopt for other tensors.
  template <class T>
  std::optional<std::vector<T>> Values() const {
    if (constant == nullptr || dtype != kDTypeOf<T>) return std::nullopt;
    const T* const first = static_cast<const T*>(constant);
    return std::vector<T>(first, first + shape->NumElements().value_or(0));
  }
  /// Returns the number of elements, with typical extents where they are unknown: the first is 1, others are 32. An
  /// unknown shape has many elements.
  double TypicalElements() const;
};

/// A node of a standard operator. Its memory belongs to the caller.
struct StandardNode {
  int since = 0;         // the opset that introduced this version of the operator
  uint32_t release = 0;  // N of ONNX Runtime 1.N, which would compute the node otherwise
  AttrSource& attributes;
  std::span<const KnownTensor> inputs, outputs;

  /// Returns an absent tensor if the node has fewer.
  const KnownTensor& input(size_t i) const;
  const KnownTensor& output(size_t i) const;
  bool Has(const char* attribute) const;
  int64_t Int(const char* attribute, int64_t otherwise) const;
  double Float(const char* attribute, double otherwise) const;
  std::string Text(const char* attribute, const char* otherwise) const;
  std::vector<int64_t> Ints(const char* attribute) const;
};

/// Computes a node. Several threads may run it at once.
class StandardKernel {
 public:
  virtual ~StandardKernel() = default;
  /// Runs polyop's kernels, or its reference kernels if `context` is null. The inputs and outputs are the node's.
  virtual Status Run(std::span<const AnyTensor> inputs, OutputSource& outputs, const Context* context) const = 0;
};

struct StandardOperator {
  const char* type = "";
  /// Returns the kernel of a node; null if polyop does not compute the node, or not as ONNX defines it.
  std::unique_ptr<StandardKernel> (*make)(const StandardNode& node) = nullptr;
  /// Returns true if polyop's kernel is faster than ONNX Runtime's, or if that has none. Requires: `make` returned a
  /// kernel.
  bool (*pays)(const StandardNode& node) = nullptr;
};

/// Returns all registered operators.
std::span<const StandardOperator> StandardOperators();
bool AddStandardOperator(const StandardOperator& standard);

#define POLYOP_STANDARD(NAME, ...) \
  [[maybe_unused]] static const bool NAME##_is_registered = ::polyop::AddStandardOperator(__VA_ARGS__)

using NamedValues = std::vector<std::pair<const char*, AttrValue>>;

/// A call of an operator of polyop. Its input i is the node's input `inputs[i]`, and its output o the node's output
/// `outputs[o]`, or nothing for -1.
class OperatorCall : public StandardKernel {
 public:
  /// Returns null if the operator has no kernel for the node's types, or rejects an attribute.
  static std::unique_ptr<OperatorCall> Make(const StandardNode& node, const char* op, const NamedValues& attributes,
                                            std::vector<int> inputs, std::vector<int> outputs);
  /// Returns the call of the operator whose node name mirrors the standard operator (NodeName::Mirror), with the node's
  /// own inputs, outputs and attributes; null if the operator leaves the node to the runtime, or for the reasons above.
  static std::unique_ptr<OperatorCall> Mirror(const StandardNode& node, const char* node_name);
  /// Returns the call of polyop's own node of this name, "mmcv::MMCVCornerPool", with these inputs, outputs and
  /// attributes; null for the reasons above.
  static std::unique_ptr<OperatorCall> OfNode(const StandardNode& node, std::string_view name);

  Status Run(std::span<const AnyTensor> inputs, OutputSource& outputs, const Context* context) const override;

 private:
  OperatorCall(const Op& op, Params params, std::vector<int> inputs, std::vector<int> outputs)
      : op_(op),
        params_(std::move(params)),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)),
        same_inputs_(AreFirst(inputs_)) {}
  static bool AreFirst(const std::vector<int>& inputs);

  const Op& op_;
  const Params params_;
  const std::vector<int> inputs_, outputs_;
  const bool same_inputs_;  // input i is the node's input i, of all
};

/// Memory for the one output of a call that is not an output of the node.
class ScratchOutput : public OutputSource {
 public:
  bool Requested(int) override { return true; }
  Status Allocate(int, DType dtype, const Shape& shape, void** data) override;
  const Shape& shape() const { return shape_; }
  const void* data() const { return data_.get(); }

 private:
  Shape shape_;
  std::unique_ptr<std::byte[]> data_;
};

}  // namespace polyop
