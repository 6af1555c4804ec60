// SPDX-License-Identifier: Apache-2.0
// An operator as an OpenVINO node. One class serves all operators.
#pragma once

#include <memory>
#include <openvino/op/op.hpp>
#include <string>
#include <vector>

#include "core/op.h"

namespace polyop::openvino {

/// An operator's OpenVINO type: "roi_align" of the operator set "polyop", which is the library's name.
struct Record {
  explicit Record(const Op& op);
  const Op& op;
  std::string name;  // `type` points to it
  ov::DiscreteTypeInfo type;
};
/// Returns the records of all operators. They live as long as the library.
const std::vector<std::unique_ptr<Record>>& Records();

/// The form of a node, in addition to its arguments.
struct NodeForm {
  std::string name;              // for messages: "mmcv::MMCVRoiAlign (node 'pool')"
  std::vector<int64_t> present;  // for each input of the operator: 1, or 0 if it is missing
};

class Node : public ov::op::Op {
 public:
  /// Creates a node without arguments, which the IR reader sets.
  explicit Node(const Record& record);
  Node(const Record& record, NodeForm form, std::shared_ptr<const void> params, const ov::OutputVector& arguments);

  const ov::DiscreteTypeInfo& get_type_info() const override { return record_.type; }
  std::shared_ptr<ov::Node> clone_with_new_inputs(const ov::OutputVector& arguments) const override;
  bool visit_attributes(ov::AttributeVisitor& visitor) override;
  void validate_and_infer_types() override;
  bool has_evaluate() const override { return true; }
  bool evaluate(ov::TensorVector& outputs, const ov::TensorVector& inputs) const override;

 private:
  // The known properties of the arguments: types, ranks, shapes, and the values of constants.
  struct Known {
    std::vector<KnownInput> inputs;
    std::vector<AnyTensor> tensors;  // shapes are complete if `is_static`
    std::vector<ov::PartialShape> shapes;
    bool is_static = true;  // all shapes are known
    bool has_ranks = true;
  };
  Known ReadArguments() const;
  Status Infer();
  Status SetOutputs(const Known& known, const Kernel& kernel);

  const Record& record_;
  NodeForm form_;
  std::shared_ptr<const void> params_;
};

}  // namespace polyop::openvino
