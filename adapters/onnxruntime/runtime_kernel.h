// The kernel that ONNX Runtime itself has for a node in whose place polyop's stands.
#pragma once

#include <memory>
#include <span>

#include "adapters/onnxruntime/custom_op.h"

namespace polyop::onnxruntime {

class RuntimeKernel {
 public:
  /// Of the node's attributes and types; `params` has those that the node leaves out. An error if the runtime has none.
  /// Where it has none for f16 on the CPU, the one for f32 is taken: the runtime itself puts casts around such nodes.
  static Status Create(const CustomOp& custom_op, const OrtKernelInfo* info, const void* params,
                       std::unique_ptr<RuntimeKernel>* kernel);
  ~RuntimeKernel();
  RuntimeKernel(const RuntimeKernel&) = delete;
  RuntimeKernel& operator=(const RuntimeKernel&) = delete;

  /// `outputs` are those of the node, with their types and shapes; they are allocated here.
  Status Run(OrtKernelContext* context, std::span<const AnyTensor> inputs, std::span<const AnyTensor> outputs) const;

 private:
  RuntimeKernel(OrtOp* op, bool widen) : op_(op), widen_(widen) {}

  OrtOp* op_;
  bool widen_;  // f16 to f32 and back
};

}  // namespace polyop::onnxruntime
