// What PyTorch hands to a boxed kernel. Each entry of its stack is the callee's to free.
#pragma once

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/tensor.h>

#include <optional>
#include <vector>

#include "core/op.h"

namespace polyop::torch_adapter {

struct Arguments {
  std::vector<std::optional<torch::stable::Tensor>> inputs;  // one by one, those of a variadic input too
  std::vector<std::optional<AttrValue>> attributes;          // in the operator's order; nothing: left at the default
};

/// Takes every entry of a call's stack, in the order of the operator's schema. Whatever fails afterwards leaks none.
Arguments TakeArguments(const Op& op, const StableIValue* stack);

}  // namespace polyop::torch_adapter
