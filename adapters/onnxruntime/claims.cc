// SPDX-License-Identifier: Apache-2.0
#include "adapters/onnxruntime/claims.h"

#if ORT_API_VERSION >= 24

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>
#include <string_view>

#include "adapters/onnxruntime/known_node.h"

namespace polyop::onnxruntime {
namespace {

using Nodes = std::set<const OrtNode*>;

std::string_view TypeOf(const OrtNode* node) {
  const char *domain = "", *type = "";
  const bool known =
      FromOrt(Api().Node_GetDomain(node, &domain)).ok() && FromOrt(Api().Node_GetOperatorType(node, &type)).ok();
  const bool standard = std::string_view(domain).empty() || std::string_view(domain) == "ai.onnx";
  return known && standard ? type : "";
}

const StandardOperator* FindStandard(std::string_view type) {
  if (type.empty()) return nullptr;
  const auto operators = StandardOperators();
  const auto found = std::find_if(operators.begin(), operators.end(), [&](const auto& o) { return type == o.type; });
  return found == operators.end() ? nullptr : &*found;
}

bool IsTaken(const OrtNode* node) {
  const char* provider = nullptr;
  return !FromOrt(Api().Node_GetEpName(node, &provider)).ok() || (provider != nullptr && *provider != '\0');
}

// Returns null for inputs of the graph and initializers.
const OrtNode* ProducerOf(const OrtValueInfo* value) {
  const OrtNode* node = nullptr;
  return FromOrt(Api().ValueInfo_GetValueProducer(value, &node, nullptr)).ok() ? node : nullptr;
}

std::vector<const OrtNode*> ReadersOf(const OrtValueInfo* value) {
  size_t count = 0;
  if (!FromOrt(Api().ValueInfo_GetValueNumConsumers(value, &count)).ok()) return {};
  std::vector<const OrtNode*> nodes(count);
  std::vector<int64_t> indices(count);
  if (!FromOrt(Api().ValueInfo_GetValueConsumers(value, nodes.data(), indices.data(), count)).ok()) return {};
  return nodes;
}

bool IsBetweenQuantization(const OrtNode* node) {
  std::vector<const OrtValueInfo*> inputs, outputs;
  if (!InputsOf(node, &inputs).ok() || !OutputsOf(node, &outputs).ok()) return true;
  if (inputs.empty() || inputs[0] == nullptr || outputs.empty() || outputs[0] == nullptr) return false;
  const OrtNode* const before = ProducerOf(inputs[0]);
  if (before == nullptr || TypeOf(before) != "DequantizeLinear") return false;
  const auto after = ReadersOf(outputs[0]);
  return std::any_of(after.begin(), after.end(), [](auto* reader) { return TypeOf(reader) == "QuantizeLinear"; });
}

bool IsHalf(const OrtValueInfo* value) {
  const OrtTypeInfo* type = nullptr;
  const OrtTensorTypeAndShapeInfo* info = nullptr;
  ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  return FromOrt(Api().GetValueInfoTypeInfo(value, &type)).ok() &&
         FromOrt(Api().CastTypeInfoToTensorInfo(type, &info)).ok() && info != nullptr &&
         FromOrt(Api().GetTensorElementType(info, &element)).ok() && element == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16;
}

// Returns true if all f16 tensors of the node are of the graph or of other claimed nodes: ONNX Runtime has few f16
// kernels on the CPU, and computes chains of other nodes in f32, with casts at their ends only.
bool HasHalfNeighbours(const OrtNode* node, const Nodes& claimed) {
  std::vector<const OrtValueInfo*> inputs, outputs;
  if (!InputsOf(node, &inputs).ok() || !OutputsOf(node, &outputs).ok()) return false;
  const auto fits = [&](const OrtNode* other) { return other == nullptr || claimed.contains(other); };
  for (const OrtValueInfo* const value : inputs) {
    if (value != nullptr && IsHalf(value) && !fits(ProducerOf(value))) return false;
  }
  for (const OrtValueInfo* const value : outputs) {
    if (value == nullptr || !IsHalf(value)) continue;
    const auto readers = ReadersOf(value);
    if (!std::all_of(readers.begin(), readers.end(), fits)) return false;
  }
  return true;
}

bool IsFaster(const OrtNode* node, const StandardOperator& standard, const ProviderOptions& options) {
  KnownNode known;
  if (!ReadNode(node, &known).ok()) return false;
  const StandardNode view = known.view();
  return standard.make(view) != nullptr && (!options.only_faster || standard.pays(view));
}

void Trace(const std::vector<const OrtNode*>& claims, size_t nodes) {
  for (const OrtNode* const node : claims) {
    const char* name = "";
    if (!FromOrt(Api().Node_GetName(node, &name)).ok()) name = "";
    std::fprintf(stderr, "polyop: claimed %s '%s'\n", std::string(TypeOf(node)).c_str(), name);
  }
  std::fprintf(stderr, "polyop: claimed %zu of %zu nodes of a graph\n", claims.size(), nodes);
}

}  // namespace

Status FindClaims(const OrtGraph* graph, const ProviderOptions& options, const std::set<const OrtNode*>& taken,
                  std::vector<const OrtNode*>* claims) {
  size_t count = 0;
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().Graph_GetNumNodes(graph, &count)));
  std::vector<const OrtNode*> nodes(count);
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().Graph_GetNodes(graph, nodes.data(), count)));
  Nodes claimed;
  for (const OrtNode* const node : nodes) {
    const StandardOperator* const standard = FindStandard(TypeOf(node));
    if (standard == nullptr || !options.Claims(standard->type) || IsTaken(node) || taken.contains(node)) continue;
    if (IsFaster(node, *standard, options) && !IsBetweenQuantization(node)) claimed.insert(node);
  }
  // A node that is left may be the neighbour that another one needs.
  while (std::erase_if(claimed, [&](const OrtNode* node) { return !HasHalfNeighbours(node, claimed); }) > 0) {
  }
  for (const OrtNode* const node : nodes) {
    if (claimed.contains(node)) claims->push_back(node);
  }
  if (options.trace) Trace(*claims, count);
  return Status::Ok();
}

}  // namespace polyop::onnxruntime

#endif
