// A call of an operator with OpenVINO's tensors.
#pragma once

#include <openvino/runtime/tensor.hpp>
#include <span>
#include <vector>

#include "core/op.h"

namespace polyop::openvino {

/// The kernel for inputs as OpenVINO's CPU plugin hands them over, which makes i64 i32, and bool u8: where no kernel
/// takes the types, one that does when these are what they were, or any that does when some are. Null if none does.
const Kernel* FindKernel(const Op& op, std::vector<KnownInput> inputs);

/// Gives inputs the types that the kernel takes, as they were before the plugin's. Values that are not known (no data)
/// stay so; copies of the others live as long as this.
class Widening {
 public:
  void Apply(const Op& op, const Kernel& kernel, std::span<AnyTensor> inputs);

 private:
  void Apply(DType wanted, AnyTensor* input);

  std::vector<std::vector<int64_t>> copies_;
};

/// Runs the operator on the threads of the caller's arena. `present` tells which of the operator's inputs the tensors
/// are, `wanted` which of the outputs somebody reads.
Status CallNode(const Op& op, const void* params, const std::vector<int64_t>& present, const ov::TensorVector& inputs,
                const std::vector<bool>& wanted, ov::TensorVector& outputs);

}  // namespace polyop::openvino
