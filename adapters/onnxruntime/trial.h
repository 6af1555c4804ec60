// SPDX-License-Identifier: Apache-2.0
// Compares what a pattern found with the nodes themselves, which ONNX Runtime computes, before they are replaced.
#pragma once

#include "adapters/onnxruntime/ort_api.h"

#if ORT_API_VERSION >= 24

#include <string>
#include <vector>

#include "core/pattern.h"

namespace polyop::onnxruntime {

/// Returns a text that parts have in common if they are the same nodes with the same constants and sizes. Layers of a
/// model are, and one comparison holds for all.
std::string SignatureOf(const OrtGraph* graph, const PatternMatch& match, const Cone& cone);

/// Returns an error unless `kernel` computes what the nodes compute, for random values; dimensions that the graph does
/// not state get different sizes. The nodes must be standard ones.
Status CompareWithRuntime(const OrtGraph* graph, const Pattern& pattern, const PatternMatch& match, const Cone& cone,
                          const StandardKernel& kernel);

}  // namespace polyop::onnxruntime

#endif
