// SPDX-License-Identifier: Apache-2.0
// Registers polyop's operators as overrides of ONNX Runtime's standard operators.
#pragma once

#include "adapters/onnxruntime/custom_op.h"

namespace polyop::onnxruntime {

/// The key of the model's opset in a session's configuration. Without it, the opset is unknown.
inline constexpr const char* kOpsetKey = "polyop.opset";

/// Returns the operators that override standard ones, for models of this opset; 0: unknown.
///
/// ONNX Runtime accepts one version of an operator from a library, and does not expose the model's opset to a node. If
/// older versions of an operator have a different default than the newest, they are overridden only if the opset is
/// known.
CustomOps MakeStandardOps(int opset, const Host& host);

/// Adds these operators to the session's options. Does not throw.
OrtStatus* RegisterAccelerator(OrtSessionOptions* options, const OrtApiBase* base);

}  // namespace polyop::onnxruntime
