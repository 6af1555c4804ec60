// SPDX-License-Identifier: Apache-2.0
// Calls the naive double-precision kernels instead of the fast ones.
#pragma once

#include "core/context.h"
#include "core/op.h"

namespace polyop {

/// Like Call on the CPU, with the operator's reference kernel: inputs are widened to its types, and its outputs are
/// rounded to those of the CPU kernel. Inputs and outputs are in host memory.
Status CallReference(const Op& op, const void* params, std::span<const AnyTensor> inputs, OutputSource& outputs);

/// Returns a backend that runs loops on the calling thread.
ContextBackend SerialBackend();

/// Returns true if the environment requests it for every call: POLYOP_KERNELS=reference.
bool ReferenceRequested();
/// Returns an error if POLYOP_KERNELS has another value.
Status CheckKernelRequest();

}  // namespace polyop
