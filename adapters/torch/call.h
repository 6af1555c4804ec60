// SPDX-License-Identifier: Apache-2.0
// Runs a boxed call from PyTorch.
#pragma once

#include <torch/csrc/stable/library.h>

#include "core/op.h"

namespace polyop::torch_adapter {

/// Takes the operator's inputs and attributes from the stack, in the order of its schema, and returns its outputs
/// there. Reports errors to PyTorch, which throws them through this frame and passes them to Python.
void CallOperator(const Op& op, StableIValue* stack);

/// Like CallOperator, with outputs of the caller: contiguous tensors after the attributes on the stack, which have the
/// types and shapes of the operator's outputs. Returns nothing on the stack.
void CallOperatorInto(const Op& op, StableIValue* stack);

}  // namespace polyop::torch_adapter
