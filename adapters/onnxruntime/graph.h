// SPDX-License-Identifier: Apache-2.0
// A graph of ONNX Runtime, as patterns see it.
#pragma once

#include "adapters/onnxruntime/known_node.h"

#if ORT_API_VERSION >= 24

#include "core/pattern.h"

namespace polyop::onnxruntime {

/// Reads a graph. Constants are valid while the runtime's graph is.
Status ReadGraph(const OrtGraph* graph, Graph* read);

}  // namespace polyop::onnxruntime

#endif
