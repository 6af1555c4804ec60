// SPDX-License-Identifier: Apache-2.0
#include "adapters/onnxruntime/fusions.h"

#if ORT_API_VERSION >= 24

#include <algorithm>
#include <cstdio>
#include <set>
#include <utility>

#include "adapters/onnxruntime/graph.h"
#include "adapters/onnxruntime/session_call.h"
#include "adapters/onnxruntime/trial.h"
#include "core/guard.h"

namespace polyop::onnxruntime {
namespace {

const OrtNode* RuntimeNode(const GraphNode* node) { return static_cast<const OrtNode*>(node->of_runtime); }

// Returns true if some pattern may begin at a node of the graph, which is read only then.
bool MayMatch(const std::vector<const OrtNode*>& nodes) {
  std::set<std::string_view> ends;
  for (const Pattern& pattern : Patterns()) {
    if (pattern.files_only) continue;
    for (const std::string_view end : pattern.ends) ends.insert(end.substr(end.rfind(':') + 1));
  }
  return std::any_of(nodes.begin(), nodes.end(), [&](const OrtNode* node) {
    const char* type = "";
    return FromOrt(Api().Node_GetOperatorType(node, &type)).ok() && ends.contains(type);
  });
}

bool IsFree(const OrtNode* node) {
  const char* provider = nullptr;
  return FromOrt(Api().Node_GetEpName(node, &provider)).ok() && (provider == nullptr || *provider == '\0');
}

std::vector<std::string> NamesOf(const std::vector<const GraphValue*>& values) {
  std::vector<std::string> names;
  for (const GraphValue* const value : values) names.push_back(value->name);
  return names;
}

// A graph, in which nodes are taken one fusion after the other.
struct Search {
  const OrtGraph* of_runtime;
  const ProviderOptions& options;
  Comparisons& comparisons;
  Graph graph;
  std::set<const GraphNode*> taken;

  Status Compare(const Pattern& pattern, const PatternMatch& match, const Cone& cone, const StandardKernel& kernel) {
    const auto [known, is_new] = comparisons.try_emplace(SignatureOf(of_runtime, match, cone));
    if (is_new) known->second = CompareWithRuntime(of_runtime, pattern, match, cone, kernel);
    return known->second;
  }

  Status Add(const Pattern& pattern, const PatternMatch& match, std::vector<Fusion>* fusions) {
    if (!match.refused.empty()) return Unsupported(match.refused);
    if (options.only_faster && match.work < pattern.min_work) return Unsupported("too small to gain");
    const std::optional<Cone> cone = ConeOf(graph, match);
    if (!cone.has_value()) return Unsupported("it reads more than its inputs");
    const std::vector<const GraphNode*> nodes = ReplaceableNodes(match, *cone);
    const auto is_free = [&](const GraphNode* node) { return !taken.contains(node) && IsFree(RuntimeNode(node)); };
    if (nodes.empty()) return Unsupported("other nodes read its intermediate results");
    if (!std::all_of(nodes.begin(), nodes.end(), is_free)) return Unsupported("its nodes belong to another part");
    // Older releases give a fused node only what its nodes read outside of their subgraphs.
    const auto is_read = [&](const GraphValue* value) {
      return std::any_of(nodes.begin(), nodes.end(), [&](const GraphNode* node) {
        return std::find(node->inputs.begin(), node->inputs.end(), value) != node->inputs.end();
      });
    };
    if (CurrentHost().release < 31 && !std::all_of(match.inputs.begin(), match.inputs.end(), is_read)) {
      return Unsupported("only subgraphs read its inputs, which this ONNX Runtime does not pass on");
    }
    Fusion fusion;
    fusion.kernel = KernelOf(pattern, match);
    if (fusion.kernel == nullptr) return Unsupported("polyop has no kernel for its types");
    if (!match.is_exact) POLYOP_RETURN_IF_ERROR(Compare(pattern, match, *cone, *fusion.kernel));
    taken.insert(nodes.begin(), nodes.end());
    for (const GraphNode* const node : nodes) fusion.nodes.push_back(RuntimeNode(node));
    fusion.name = Concat(match.node, match.at->name.empty() ? "" : " (node '" + match.at->name + "')");
    fusion.inputs = NamesOf(match.inputs);
    fusion.outputs = NamesOf(match.outputs);
    fusions->push_back(std::move(fusion));
    return Status::Ok();
  }
};

// The functions of a fused node, which run its kernel.
class FusedNode : public OrtNodeComputeInfo {
 public:
  FusedNode(Fusion fusion, const Host& host)
      : OrtNodeComputeInfo{}, host_(host), prefix_(fusion.name + ": "), kernel_(std::move(fusion.kernel)) {
    ort_version_supported = host.version;
    CreateState = [](OrtNodeComputeInfo* self, OrtNodeComputeContext*, void** state) noexcept -> OrtStatus* {
      return *state = self, nullptr;
    };
    OrtNodeComputeInfo::Compute = [](OrtNodeComputeInfo* self, void*, OrtKernelContext* context) noexcept {
      const auto& node = *static_cast<const FusedNode*>(self);
      const HostScope scope(node.host_);
      return Guarded([&] { return ToOrt(node.Run(context).WithPrefix(node.prefix_)); }, ErrorStatus);
    };
    ReleaseState = [](OrtNodeComputeInfo*, void*) noexcept {};
  }

  // The runtime's node has the inputs and outputs in another order.
  Status Map(const Fusion& fusion, const OrtNode* fused) {
    std::vector<const OrtValueInfo*> inputs, outputs;
    POLYOP_RETURN_IF_ERROR(InputsOf(fused, &inputs));
    POLYOP_RETURN_IF_ERROR(OutputsOf(fused, &outputs));
    for (const std::string& name : fusion.inputs) {
      inputs_.push_back(IndexOf(name, inputs));
      if (inputs_.back() < 0) return Internal(prefix_, "expected an input '", name, "' of the fused node, got none");
    }
    for (const std::string& name : fusion.outputs) outputs_.push_back(IndexOf(name, outputs));
    return Status::Ok();
  }

 private:
  static int IndexOf(const std::string& name, const std::vector<const OrtValueInfo*>& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      const char* other = "";
      if (values[i] != nullptr && FromOrt(Api().GetValueInfoName(values[i], &other)).ok() && name == other) {
        return static_cast<int>(i);
      }
    }
    return -1;
  }

  Status Run(OrtKernelContext* context) const {
    std::vector<AnyTensor> inputs(inputs_.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      POLYOP_RETURN_IF_ERROR(ReadInput(context, static_cast<size_t>(inputs_[i]), &inputs[i]));
    }
    return RunInSession(*kernel_, reference_, context, inputs, outputs_);
  }

  const Host& host_;
  const bool reference_ = UsesReferenceKernels();
  const std::string prefix_;
  const std::unique_ptr<StandardKernel> kernel_;
  std::vector<int> inputs_, outputs_;  // the runtime's indices
};

}  // namespace

Status FindFusions(const OrtGraph* graph, const ProviderOptions& options, Comparisons* comparisons,
                   std::vector<Fusion>* fusions) {
  size_t count = 0;
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().Graph_GetNumNodes(graph, &count)));
  std::vector<const OrtNode*> nodes(count);
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().Graph_GetNodes(graph, nodes.data(), count)));
  if (!MayMatch(nodes)) return Status::Ok();
  Search search{graph, options, *comparisons, {}, {}};
  POLYOP_RETURN_IF_ERROR(ReadGraph(graph, &search.graph));
  FindExtents(&search.graph);
  for (const Pattern& pattern : Patterns()) {
    if (pattern.files_only) continue;
    for (const GraphNode& node : search.graph.nodes) {
      const std::optional<PatternMatch> match = FindAt(pattern, search.graph, node);
      if (!match.has_value()) continue;
      const size_t before = fusions->size();
      const Status added = search.Add(pattern, *match, fusions);
      if (!options.trace) continue;
      const std::string what = Concat(pattern.name, " at '", match->at->name, "'");
      if (added.ok()) {
        std::fprintf(stderr, "polyop: %s: %zu nodes fused\n", what.c_str(), (*fusions)[before].nodes.size());
      } else {
        std::fprintf(stderr, "polyop: %s: left: %s\n", what.c_str(), added.message().c_str());
      }
    }
  }
  return Status::Ok();
}

Status MakeFused(Fusion fusion, const OrtNode* fused, const Host& host, OrtNodeComputeInfo** functions) {
  const Fusion names{{}, fusion.name, nullptr, fusion.inputs, fusion.outputs};
  auto node = std::make_unique<FusedNode>(std::move(fusion), host);
  POLYOP_RETURN_IF_ERROR(node->Map(names, fused));
  *functions = node.release();
  return Status::Ok();
}

void DeleteFused(OrtNodeComputeInfo* functions) { delete static_cast<FusedNode*>(functions); }

}  // namespace polyop::onnxruntime

#endif
