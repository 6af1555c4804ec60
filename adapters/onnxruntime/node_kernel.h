// One node of a session: its attributes, checked once, and its call.
#pragma once

#include <string>
#include <vector>

#include "adapters/onnxruntime/custom_op.h"
#include "adapters/onnxruntime/runtime_kernel.h"

namespace polyop::onnxruntime {

/// From now on, nodes of new sessions run the operators' reference kernels (or again the fast ones). At first this is
/// what the environment variable POLYOP_KERNELS says: "reference", or anything else.
void UseReferenceKernels(bool use);

class NodeKernel {
 public:
  /// Reads and checks the attributes; an error names the node.
  static Status Create(const CustomOp& custom_op, const OrtKernelInfo* info, std::unique_ptr<NodeKernel>* kernel);

  /// An error names the node.
  Status Compute(OrtKernelContext* context) const;
  const CustomOp& custom_op() const { return custom_op_; }

 private:
  explicit NodeKernel(const CustomOp& custom_op) : custom_op_(custom_op) {}
  Status Run(OrtKernelContext* context) const;
  bool LeaveToRuntime(std::span<const AnyTensor> inputs) const;
  Status RunRuntimeKernel(OrtKernelContext* context, std::span<const AnyTensor> inputs, OutputSource& wanted) const;

  const CustomOp& custom_op_;
  const Op* op_ = nullptr;  // what the node's attributes mean
  bool reference_ = false;
  Params params_;
  std::string prefix_;        // "mmcv::MMCVRoiAlign (node 'roi'): "
  std::vector<bool> wanted_;  // per output of the signature
  // In the place of a standard operator: the runtime's own kernel, if it may be called.
  std::unique_ptr<RuntimeKernel> runtime_kernel_;
};

}  // namespace polyop::onnxruntime
