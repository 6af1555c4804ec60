// SPDX-License-Identifier: Apache-2.0
// ONNX Runtime's own kernel for a node whose operator polyop overrides.
#pragma once

#include <memory>
#include <span>

#include "adapters/onnxruntime/custom_op.h"

namespace polyop::onnxruntime {

class RuntimeKernel {
 public:
  /// Creates the kernel for the node's attributes and types; `params` provides the attributes that the node lacks.
  /// Returns an error if the runtime has no such kernel. If it has none for f16 on the CPU, the f32 kernel is used, as
  /// in the runtime, which inserts casts around such nodes.
  static Status Create(const CustomOp& custom_op, const OrtKernelInfo* info, const void* params,
                       std::unique_ptr<RuntimeKernel>* kernel);
  ~RuntimeKernel();
  RuntimeKernel(const RuntimeKernel&) = delete;
  RuntimeKernel& operator=(const RuntimeKernel&) = delete;

  /// Allocates the outputs, whose types and shapes are given, and runs the kernel.
  Status Run(OrtKernelContext* context, std::span<const AnyTensor> inputs, std::span<const AnyTensor> outputs) const;

 private:
  RuntimeKernel(OrtOp* op, bool widen) : op_(op), widen_(widen) {}

  OrtOp* op_;
  bool widen_;  // f16 to f32 and back
};

}  // namespace polyop::onnxruntime
