// SPDX-License-Identifier: Apache-2.0
// Nodes of a session's graph, also those with subgraphs, as a separate model.
#pragma once

#include "adapters/onnxruntime/ort_api.h"

#if ORT_API_VERSION >= 24

#include <string>

#include "core/pattern.h"

namespace polyop::onnxruntime {

/// Writes the nodes between a match's inputs and outputs as an ONNX model.
Status WriteModel(const OrtGraph* graph, const PatternMatch& match, const Cone& cone, std::string* model);

/// Gives the elements of a constant of the graph, which are the runtime's.
Status ReadConstant(const GraphValue& value, AnyTensor* tensor);
/// Returns the elements of a tensor.
std::string_view BytesOf(const AnyTensor& tensor);

}  // namespace polyop::onnxruntime

#endif
