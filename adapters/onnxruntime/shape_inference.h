// Output shapes of a node before it runs, with symbolic extents.
#pragma once

#include "adapters/onnxruntime/custom_op.h"

namespace polyop::onnxruntime {

/// Sets what can be told of the outputs' shapes. Inputs that do not fit are left to the run, where the
/// error can name the values.
Status InferShapes(const CustomOp& custom_op, OrtShapeInferContext* context);

}  // namespace polyop::onnxruntime
