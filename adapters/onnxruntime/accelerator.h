// polyop's operators in the place of those that ONNX Runtime itself has.
#pragma once

#include "adapters/onnxruntime/custom_op.h"

namespace polyop::onnxruntime {

/// A session's configuration may say the model's opset under this key; else it is not known.
inline constexpr const char* kOpsetKey = "polyop.opset";

/// The operators that stand in the place of standard ones, for models of this opset; 0: of any.
///
/// ONNX Runtime takes one version of an operator from a library, and does not tell a node which opset its model has. So
/// where older versions of an operator have another default than the newest, they are left alone unless the opset is
/// known.
CustomOps MakeStandardOps(int opset, const Host& host);

/// Adds them to the session's options. No exception leaves it.
OrtStatus* RegisterAccelerator(OrtSessionOptions* options, const OrtApiBase* base);

}  // namespace polyop::onnxruntime
