// The naive double-precision kernels in place of the fast ones.
#pragma once

#include "core/op.h"

namespace polyop {

/// Does what Call does on the CPU by the operator's reference kernel: inputs are widened to its types, its outputs
/// rounded to those that the CPU's kernel has. Inputs and outputs are in host memory.
Status CallReference(const Op& op, const void* params, std::span<const AnyTensor> inputs, OutputSource& outputs);

/// Whether the environment asks for it in every call: POLYOP_KERNELS=reference.
bool ReferenceIsAsked();

}  // namespace polyop
