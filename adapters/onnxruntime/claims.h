// SPDX-License-Identifier: Apache-2.0
// Which nodes of a graph polyop's execution provider computes.
#pragma once

#include "adapters/onnxruntime/provider_options.h"

#if ORT_API_VERSION >= 24

#include <set>
#include <vector>

namespace polyop::onnxruntime {

/// Returns the nodes to claim, other than `taken`. Leaves a node to ONNX Runtime if polyop does not compute it or is
/// not faster, if another provider has it, if ONNX Runtime would fuse it with the quantization around it, or if f16
/// would need new casts. An error while a node is read leaves that node, too.
Status FindClaims(const OrtGraph* graph, const ProviderOptions& options, const std::set<const OrtNode*>& taken,
                  std::vector<const OrtNode*>* claims);

}  // namespace polyop::onnxruntime

#endif
