// SPDX-License-Identifier: Apache-2.0
// Compares what a pattern found with the nodes themselves, which ONNX Runtime computes, before they are replaced.
#pragma once

#include "adapters/onnxruntime/ort_api.h"

#if ORT_API_VERSION >= 24

#include <vector>

#include "core/pattern.h"

namespace polyop::onnxruntime {

/// Returns an error unless `kernel` computes what the nodes compute, for random values; dimensions that the graph does
/// not state get different sizes. `domains` has polyop's operators, which may be among the nodes.
Status CompareWithRuntime(const OrtGraph* graph, const std::vector<OrtCustomOpDomain*>& domains,
                          const PatternMatch& match, const Cone& cone, const StandardKernel& kernel);

}  // namespace polyop::onnxruntime

#endif
