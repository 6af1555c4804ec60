// SPDX-License-Identifier: Apache-2.0
#include "adapters/resolve.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <string>
#include <vector>

#include "core/guard.h"
#include "core/node_resolution.h"
#include "nlohmann/json.hpp"

namespace polyop {
namespace {

using Json = nlohmann::ordered_json;

bool IsReal(const Json& json) { return json.is_number() || json == "Infinity" || json == "-Infinity" || json == "NaN"; }
double Real(const Json& json) {
  return json.is_string() ? std::strtod(json.get_ref<const std::string&>().c_str(), nullptr) : json.get<double>();
}

class NodeAttributes : public AttrSource {
 public:
  explicit NodeAttributes(const Json& values) : values_(values) {}

  bool Get(const char* name, AttrValue* value) override {
    const auto found = values_.find(name);
    if (found == values_.end()) return false;
    if (found->is_number_integer()) {
      *value = AttrValue::Int(found->get<int64_t>());
    } else if (IsReal(*found)) {
      *value = AttrValue::Float(Real(*found));
    } else if (found->is_string()) {
      *value = AttrValue::String(found->get<std::string>());
    } else if (!found->is_array() || found->empty()) {  // an empty list is an absent attribute in every runtime
      return false;
    } else if (found->front().is_number_integer()) {
      *value = AttrValue::Ints(found->get<std::vector<int64_t>>());
    } else if (IsReal(found->front())) {
      std::vector<double> reals;
      std::transform(found->begin(), found->end(), std::back_inserter(reals), Real);
      *value = AttrValue::Floats(std::move(reals));
    } else {
      return false;
    }
    return true;
  }

 private:
  const Json& values_;
};

Json ToJson(const AttrSpec& spec, const AttrValue& value) {
  if (value.type == AttrType::kFloat) return std::isfinite(value.floats[0]) ? Json(value.floats[0]) : Json(nullptr);
  if (value.type == AttrType::kInts) return value.ints;
  if (value.type == AttrType::kFloats) return value.floats;
  if (value.type == AttrType::kString) return value.text;
  if (spec.num_choices() > 0) return spec.choices[static_cast<size_t>(value.ints[0])];
  return value.ints[0];
}

std::vector<NodeCandidate> FindCandidates(const std::string& domain, const std::string& type) {
  if (domain != kPluginDomain) return CandidatesFor(domain, type);
  for (std::vector<NodeCandidate>& candidates : CandidatesByPluginName(AllOps())) {
    if (candidates[0].node->op_type() == type) return std::move(candidates);
  }
  return {};
}

Json Resolve(const Json& node) {
  const std::vector<NodeCandidate> candidates = FindCandidates(node.at("domain"), node.at("type"));
  if (candidates.empty()) return nullptr;
  NodeAttributes attributes(node.at("attributes"));
  NodeCandidate resolved;
  const Status status = ResolveNode(candidates, attributes, &resolved);
  if (resolved.op == nullptr) return {{"operator", nullptr}, {"error", status.message()}};
  const Op& op = *resolved.op;
  Json reply = {{"operator", op.name}, {"node", resolved.node - op.nodes.data()}};
  Params params;
  const Status valid = status.ok() ? op.MakeParams(*resolved.node, attributes, &params) : status;
  if (!valid.ok()) {
    reply["error"] = valid.message();
    return reply;
  }
  for (const AttrInfo& info : op.attributes) {
    reply["attributes"][info.spec.name] = ToJson(info.spec, info.get(info.spec, params.get()));
  }
  return reply;
}

}  // namespace
}  // namespace polyop

extern "C" const char* polyop_resolve_node(const char* node) {
  using polyop::Json;
  static thread_local std::string reply;
  const auto write = [](const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); };
  reply = polyop::Guarded([&] { return write(polyop::Resolve(Json::parse(node))); },
                          [&](const char* message) {  // the request is malformed
                            return write({{"operator", nullptr}, {"error", message}});
                          });
  return reply.c_str();
}
