// One call from PyTorch: its stack of values to checked views, and back.
#pragma once

#include <torch/csrc/stable/library.h>

#include "core/op.h"

namespace polyop::torch_adapter {

/// Takes the operator's inputs and attributes from the stack, in the order of its schema, and puts its outputs there.
/// An error is reported to PyTorch, which throws it through this frame and hands it on to Python.
void CallOperator(const Op& op, StableIValue* stack);

/// The same for a call whose outputs are there: contiguous tensors behind the attributes, of the types and shapes that
/// the operator makes. Nothing is left on the stack.
void CallOperatorInto(const Op& op, StableIValue* stack);

}  // namespace polyop::torch_adapter
