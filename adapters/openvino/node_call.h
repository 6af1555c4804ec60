// SPDX-License-Identifier: Apache-2.0
// Calls an operator with OpenVINO tensors.
#pragma once

#include <openvino/runtime/tensor.hpp>
#include <span>
#include <vector>

#include "core/op.h"

namespace polyop::openvino {

/// Returns the kernel for inputs from OpenVINO's CPU plugin, which converts i64 to i32 and bool to u8. If no kernel
/// accepts the types, tries the types before this conversion of all and then of some inputs. Returns null if no kernel
/// matches.
const Kernel* FindKernel(const Op& op, std::vector<KnownInput> inputs);

/// Converts inputs back to the kernel's types, which they had before the plugin's conversion. Data that is null stays
/// null; the object owns the converted copies.
class Widening {
 public:
  void Apply(const Op& op, const Kernel& kernel, std::span<AnyTensor> inputs);

 private:
  void Apply(DType target, AnyTensor* input);

  std::vector<std::vector<int64_t>> copies_;
};

/// Runs the operator on the threads of the caller's TBB arena. `present` says which of the operator's inputs are given,
/// `requested` which outputs have consumers.
Status CallNode(const Op& op, const void* params, const std::vector<int64_t>& present, const ov::TensorVector& inputs,
                const std::vector<bool>& requested, ov::TensorVector& outputs);

}  // namespace polyop::openvino
