// SPDX-License-Identifier: Apache-2.0
#include "adapters/resolve.h"

#include <cmath>
#include <string>
#include <vector>

#include "adapters/json_attributes.h"
#include "core/guard.h"
#include "core/node_resolution.h"

namespace polyop {
namespace {

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
  JsonAttributes attributes(node.at("attributes"));
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
