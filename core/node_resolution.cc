// SPDX-License-Identifier: Apache-2.0
#include "core/node_resolution.h"

#include <algorithm>
#include <map>

namespace polyop {
namespace {

bool IsConditional(const NodeCandidate& candidate) { return candidate.node->when.attribute != nullptr; }

const Signature& FirstSignature(const Op& op) { return *op.signatures[0].signature; }

bool NeedsValue(const Op& op, int input) {
  return std::any_of(op.signatures.begin(), op.signatures.end(),
                     [&](const OpSignature& s) { return s.needs_value(input); });
}

bool IsVariadic(const Op& op) {
  return std::any_of(op.signatures.begin(), op.signatures.end(),
                     [](const OpSignature& s) { return s.signature->variadic(); });
}

// Returns true if inputs and outputs at the same index have the same types, as far as both operators have them.
bool TypesAgree(const Op& a, const Kernel& ka, const Op& b, const Kernel& kb) {
  const Signature &sa = *a.signatures[ka.signature].signature, &sb = *b.signatures[kb.signature].signature;
  for (int i = 0; i < std::min(sa.num_inputs(), sb.num_inputs()); ++i) {
    if (sa.input(i).any_dtype != sb.input(i).any_dtype) return false;
    if (!sa.input(i).any_dtype && ka.inputs[i] != kb.inputs[i]) return false;
  }
  for (int o = 0; o < std::min(sa.num_outputs(), sb.num_outputs()); ++o) {
    if (ka.outputs[o] != kb.outputs[o]) return false;
  }
  return true;
}

// Checks that `b` has a kernel of the same device and types for every kernel of `a`.
Status CheckKernels(const Op& a, const Op& b) {
  for (const Kernel& kernel : a.kernels) {
    if (kernel.device != Device::kCpu && kernel.device != Device::kCuda) continue;
    const bool found = std::any_of(b.kernels.begin(), b.kernels.end(), [&](const Kernel& other) {
      return other.device == kernel.device && TypesAgree(a, kernel, b, other);
    });
    if (found) continue;
    return InvalidArgument("'", a.name, "' has a ", kernel.device == Device::kCpu ? "CPU" : "GPU", " kernel for ",
                           InputTypesText(a, kernel), " and '", b.name, "' has none");
  }
  return Status::Ok();
}

Status CheckFitsSchema(const Op& schema, const Op& other) {
  const Signature &all = FirstSignature(schema), &fewer = FirstSignature(other);
  if (fewer.num_inputs() > all.num_inputs() || fewer.num_outputs() > all.num_outputs()) {
    return InvalidArgument("expected one to have all inputs and outputs of the other");
  }
  if (IsVariadic(schema) || IsVariadic(other)) return InvalidArgument("a variadic input cannot be shared");
  for (int i = 0; i < fewer.num_inputs(); ++i) {
    if (NeedsValue(schema, i) != NeedsValue(other, i)) {
      return InvalidArgument("the value of input ", i, " determines a shape of only one of them");
    }
  }
  POLYOP_RETURN_IF_ERROR(CheckKernels(schema, other));
  return CheckKernels(other, schema);
}

bool FulfilsCondition(const NodeCandidate& candidate, AttrSource& attributes) {
  const NodeName::Condition& when = candidate.node->when;
  AttrValue value;
  const AttrInfo* const info = candidate.op->FindAttribute(when.attribute);
  if (info == nullptr || FindNodeAttribute(*info, *candidate.node, attributes, &value) == nullptr) return false;
  return when.min == NodeName::Condition::kAnyValue || (value.type == AttrType::kInt && value.ints[0] >= when.min);
}

bool HasRequiredAttributes(const NodeCandidate& candidate, AttrSource& attributes) {
  AttrValue value;
  return std::all_of(candidate.op->attributes.begin(), candidate.op->attributes.end(), [&](const AttrInfo& info) {
    return !info.spec.required || FindNodeAttribute(info, *candidate.node, attributes, &value) != nullptr;
  });
}

bool HasAttribute(const NodeCandidate& candidate, std::string_view written) {
  return std::any_of(candidate.op->attributes.begin(), candidate.op->attributes.end(), [&](const AttrInfo& info) {
    const auto is_written = [&](const char* name) { return name != nullptr && written == name; };
    return is_written(candidate.node->NameOf(info.spec.name)) ||
           std::any_of(info.spec.aliases.begin(), info.spec.aliases.end(), is_written);
  });
}

// Checks that a node that fulfils the condition of `resolved` has no attribute that only another candidate requires.
Status CheckUnambiguous(const NodeCandidate& resolved, std::span<const NodeCandidate> candidates,
                        AttrSource& attributes) {
  for (const NodeCandidate& other : candidates) {
    if (other.op == resolved.op) continue;
    for (const AttrInfo& info : other.op->attributes) {
      AttrValue value;
      const char* const written =
          info.spec.required ? FindNodeAttribute(info, *other.node, attributes, &value) : nullptr;
      if (written == nullptr || HasAttribute(resolved, written)) continue;
      return InvalidArgument("ambiguous node: attribute ", ConditionText(*resolved.node), " selects '",
                             resolved.op->name, "', attribute '", written, "' selects '", other.op->name, "'");
    }
  }
  return Status::Ok();
}

}  // namespace

std::vector<std::vector<NodeCandidate>> CandidatesByName(std::span<const Op* const> ops) {
  std::vector<std::vector<NodeCandidate>> all;
  std::map<std::string_view, size_t> positions;
  for (const Op* op : ops) {
    for (const NodeName& node : op->nodes) {
      const auto [position, is_new] = positions.emplace(node.name, all.size());
      if (is_new) all.emplace_back();
      all[position->second].push_back({op, &node});
    }
  }
  return all;
}

std::vector<std::vector<NodeCandidate>> CandidatesByPluginName(std::span<const Op* const> ops) {
  std::vector<std::vector<NodeCandidate>> all;
  std::map<std::string_view, size_t> positions;
  for (std::vector<NodeCandidate>& candidates : CandidatesByName(ops)) {
    const auto [position, is_new] = positions.emplace(candidates[0].node->op_type(), all.size());
    if (is_new) {
      all.push_back(std::move(candidates));
    } else if (candidates[0].node->domain() == "polyop") {
      all[position->second] = std::move(candidates);
    }
  }
  return all;
}

std::vector<NodeCandidate> CandidatesFor(std::string_view domain, std::string_view op_type) {
  std::vector<NodeCandidate> found;
  for (const Op* op : AllOps()) {
    for (const NodeName& node : op->nodes) {
      if (node.domain() == domain && node.op_type() == op_type) found.push_back({op, &node});
    }
  }
  return found;
}

const NodeCandidate& SchemaCandidate(std::span<const NodeCandidate> candidates) {
  const auto tensors = [](const NodeCandidate& candidate) {
    return FirstSignature(*candidate.op).num_inputs() + FirstSignature(*candidate.op).num_outputs();
  };
  return *std::max_element(candidates.begin(), candidates.end(),
                           [&](const NodeCandidate& a, const NodeCandidate& b) { return tensors(a) < tensors(b); });
}

Status CheckSharedName(std::span<const NodeCandidate> candidates) {
  const NodeCandidate* otherwise = nullptr;
  for (const NodeCandidate& candidate : candidates) {
    if (IsConditional(candidate)) continue;
    if (otherwise != nullptr) {
      return InvalidArgument("operators '", otherwise->op->name, "' and '", candidate.op->name,
                             "' are both registered for node ", candidate.node->name);
    }
    otherwise = &candidate;
  }
  if (candidates.size() == 1) return Status::Ok();
  const NodeCandidate& schema = SchemaCandidate(candidates);
  for (const NodeCandidate& other : candidates) {
    if (other.op == schema.op) continue;
    POLYOP_RETURN_IF_ERROR(CheckFitsSchema(*schema.op, *other.op)
                               .WithPrefix(Concat("operators '", schema.op->name, "' and '", other.op->name,
                                                  "' cannot share node ", other.node->name, ": ")));
  }
  return Status::Ok();
}

Status ResolveNode(std::span<const NodeCandidate> candidates, AttrSource& attributes, NodeCandidate* resolved) {
  for (const NodeCandidate& candidate : candidates) {
    if (!IsConditional(candidate) || !FulfilsCondition(candidate, attributes)) continue;
    *resolved = candidate;
    return CheckUnambiguous(candidate, candidates, attributes);
  }
  const NodeCandidate* first = nullptr;
  for (const NodeCandidate& candidate : candidates) {
    if (IsConditional(candidate)) continue;
    if (first == nullptr) first = &candidate;
    if (!HasRequiredAttributes(candidate, attributes)) continue;
    *resolved = candidate;
    return Status::Ok();
  }
  if (first != nullptr) {
    *resolved = *first;
    return Status::Ok();
  }
  std::string expected;
  for (const NodeCandidate& candidate : candidates) {
    expected += Concat(expected.empty() ? "" : ", or ", "attribute ", ConditionText(*candidate.node), " for '",
                       candidate.op->name, "'");
  }
  return InvalidArgument("the node's attributes select no operator: expected ", expected);
}

Status CheckOutputCount(std::span<const NodeCandidate> candidates, const NodeCandidate& resolved, size_t count) {
  const Signature& signature = FirstSignature(*resolved.op);
  size_t min = 0;
  for (int o = 0; o < signature.num_outputs(); ++o) {
    if (!signature.output(o).optional) min = static_cast<size_t>(o) + 1;
  }
  const size_t max = static_cast<size_t>(signature.num_outputs());
  if (candidates.size() == 1 || (count >= min && count <= max)) return Status::Ok();
  std::string others;
  for (const NodeCandidate& other : candidates) {
    if (other.op == resolved.op) continue;
    const std::string condition = ConditionText(*other.node);
    others += Concat("; '", other.op->name, "' (", condition.empty() ? "otherwise" : "attribute " + condition, ") has ",
                     FirstSignature(*other.op).num_outputs());
  }
  return InvalidArgument("expected ", count < min ? min : max, (count < min ? min : max) == 1 ? " output" : " outputs",
                         ", got ", count, ": the node's attributes select '", resolved.op->name, "'", others);
}

std::string ConditionText(const NodeName& node) {
  if (node.when.attribute == nullptr) return "";
  const std::string name = Concat("'", node.NameOf(node.when.attribute), "'");
  return node.when.min == NodeName::Condition::kAnyValue ? name : Concat(name, " >= ", node.when.min);
}

}  // namespace polyop
