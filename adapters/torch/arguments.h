// SPDX-License-Identifier: Apache-2.0
// The arguments of a boxed PyTorch kernel. The callee owns each entry of the stack.
#pragma once

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/tensor.h>

#include <optional>
#include <vector>

#include "core/op.h"

namespace polyop::torch_adapter {

struct Arguments {
  std::vector<std::optional<torch::stable::Tensor>> inputs;  // a variadic input has one entry per tensor
  std::vector<std::optional<AttrValue>> attributes;          // in the operator's order; nullopt: the default
};

/// Takes ownership of every entry of a call's stack, in the order of the operator's schema, so that errors leak none.
Arguments TakeArguments(const Op& op, const StableIValue* stack);

}  // namespace polyop::torch_adapter
