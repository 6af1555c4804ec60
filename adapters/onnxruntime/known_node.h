// SPDX-License-Identifier: Apache-2.0
// What ONNX Runtime knows of a node of a standard operator: in a graph, and when the node's kernel is created.
#pragma once

#include "adapters/onnxruntime/ort_api.h"

// Execution providers with kernel registries exist since ONNX Runtime 1.24.
#if ORT_API_VERSION >= 24

#include <memory>
#include <vector>

#include "core/standard_node.h"

namespace polyop::onnxruntime {

/// Owns what StandardNode refers to, other than the elements of constants, which are the runtime's.
struct KnownNode {
  int since = 0;
  std::unique_ptr<AttrSource> attributes;
  std::vector<KnownTensor> inputs, outputs;

  StandardNode view() const { return {since, CurrentHost().release, *attributes, inputs, outputs}; }
};

/// Constants are valid while the graph is, or until the kernel's creation ends.
Status ReadNode(const OrtNode* node, KnownNode* known);
Status ReadNode(const OrtKernelInfo* info, KnownNode* known);

/// Reads what the graph states of a value, and the elements of constants of up to `max_constant`.
Status ReadValue(const OrtValueInfo* value, int64_t max_constant, KnownTensor* tensor);

/// Gives the type, the shape and the elements of a tensor, which are the runtime's.
Status ReadTensor(const OrtValue* value, AnyTensor* tensor);

/// The attributes of a graph's node. A tensor of one element is a number.
class GraphAttributes : public AttrSource {
 public:
  explicit GraphAttributes(const OrtNode* node) : node_(node) {}
  bool Get(const char* name, AttrValue* value) override;

 private:
  const OrtNode* node_;
};

/// Returns the values of a node; null for omitted ones.
Status InputsOf(const OrtNode* node, std::vector<const OrtValueInfo*>* values);
Status OutputsOf(const OrtNode* node, std::vector<const OrtValueInfo*>* values);
/// Returns the inputs, and what the node's subgraphs read.
Status ReadBy(const OrtNode* node, std::vector<const OrtValueInfo*>* values);
Status CapturedBy(const OrtNode* node, std::vector<const OrtValueInfo*>* values);
Status AttributesOf(const OrtNode* node, std::vector<const OrtOpAttr*>* attributes);
/// Returns the domains whose operators a graph has, and their versions.
Status OpsetsOf(const OrtGraph* graph, std::vector<const char*>* domains, std::vector<int64_t>* versions);
/// Returns the inputs or the outputs of a graph.
Status EndsOf(const OrtGraph* graph, bool inputs, std::vector<const OrtValueInfo*>* values);

}  // namespace polyop::onnxruntime

#endif
