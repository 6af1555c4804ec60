// SPDX-License-Identifier: Apache-2.0
// A node of a session: holds its checked attributes and runs it.
#pragma once

#include <string>
#include <vector>

#include "adapters/onnxruntime/custom_op.h"
#include "adapters/onnxruntime/runtime_kernel.h"

namespace polyop::onnxruntime {

class NodeKernel {
 public:
  /// Creates the kernel of a node: reads and checks its attributes. Errors name the node.
  static Status Create(const CustomOp& custom_op, const OrtKernelInfo* info, std::unique_ptr<NodeKernel>* kernel);

  /// Runs the node. Errors name the node.
  Status Compute(OrtKernelContext* context) const;
  const CustomOp& custom_op() const { return custom_op_; }

 private:
  explicit NodeKernel(const CustomOp& custom_op) : custom_op_(custom_op) {}
  Status Run(OrtKernelContext* context) const;
  bool LeaveToRuntime(std::span<const AnyTensor> inputs) const;
  Status RunRuntimeKernel(OrtKernelContext* context, std::span<const AnyTensor> inputs, OutputSource& source) const;

  const CustomOp& custom_op_;
  const Op* op_ = nullptr;  // the operator that the node resolves to
  bool reference_ = false;
  Params params_;
  std::string prefix_;           // "mmcv::MMCVRoiAlign (node 'roi'): "
  std::vector<bool> requested_;  // per output of the signature
  // If the operator overrides a standard one: the runtime's kernel, if it may be called.
  std::unique_ptr<RuntimeKernel> runtime_kernel_;
};

}  // namespace polyop::onnxruntime
