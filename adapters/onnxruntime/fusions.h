// SPDX-License-Identifier: Apache-2.0
// Parts of a session's graph that one kernel of polyop computes: a pattern finds them, ONNX Runtime makes each one
// node.
#pragma once

#include "adapters/onnxruntime/provider_options.h"

#if ORT_API_VERSION >= 24

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/standard_node.h"

namespace polyop::onnxruntime {

struct Fusion {
  std::vector<const OrtNode*> nodes;  // valid while the graph is that of the search
  std::string name;                   // "mmcv::MMCVCornerPool (node 'pool')"
  std::unique_ptr<StandardKernel> kernel;
  std::vector<std::string> inputs, outputs;  // of the kernel
};

/// The results of comparing parts with ONNX Runtime's nodes, by their signatures.
using Comparisons = std::map<std::string, Status>;

/// Returns the parts to fuse. Leaves a part to ONNX Runtime if polyop is not faster, if another provider has one of its
/// nodes, if other nodes read what is in its middle, or if the results for random values differ. Each
/// comparison is made once.
Status FindFusions(const OrtGraph* graph, const ProviderOptions& options, Comparisons* comparisons,
                   std::vector<Fusion>* fusions);

/// Returns the functions that run a fused node. The caller deletes them by DeleteFused.
Status MakeFused(Fusion fusion, const OrtNode* fused, const Host& host, OrtNodeComputeInfo** functions);
void DeleteFused(OrtNodeComputeInfo* functions);

}  // namespace polyop::onnxruntime

#endif
