// SPDX-License-Identifier: Apache-2.0
// Infers the output shapes of a node, with symbolic extents.
#pragma once

#include "adapters/onnxruntime/custom_op.h"

namespace polyop::onnxruntime {

/// Sets the outputs' shapes as far as they can be inferred. Invalid inputs are not reported here but when the node
/// runs, where the error can name the values.
Status InferShapes(const CustomOp& custom_op, OrtShapeInferContext* context);

}  // namespace polyop::onnxruntime
