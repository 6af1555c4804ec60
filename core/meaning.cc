#include "core/meaning.h"

#include <algorithm>
#include <map>

namespace polyop {
namespace {

bool IsConditional(const Meaning& meaning) { return meaning.node->when.attribute != nullptr; }

const Signature& FirstSignature(const Op& op) { return *op.signatures[0].signature; }

bool NeedsValue(const Op& op, int input) {
  return std::any_of(op.signatures.begin(), op.signatures.end(),
                     [&](const OpSignature& s) { return s.needs_value(input); });
}

bool IsVariadic(const Op& op) {
  return std::any_of(op.signatures.begin(), op.signatures.end(),
                     [](const OpSignature& s) { return s.signature->variadic(); });
}

// Whether the tensors that both have are of the same types.
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

// Every kernel of `a` for a runtime's device has one of `b` beside it.
Status CheckKernels(const Op& a, const Op& b) {
  for (const Kernel& kernel : a.kernels) {
    if (kernel.device != Device::kCpu && kernel.device != Device::kCuda) continue;
    const bool found = std::any_of(b.kernels.begin(), b.kernels.end(), [&](const Kernel& other) {
      return other.device == kernel.device && TypesAgree(a, kernel, b, other);
    });
    if (found) continue;
    return InvalidArgument("'", a.name, "' has a kernel that '", b.name, "' has not, for the ",
                           kernel.device == Device::kCpu ? "CPU" : "GPU", " and ", InputTypesText(a, kernel));
  }
  return Status::Ok();
}

Status CheckAlike(const Op& widest, const Op& other) {
  const Signature &most = FirstSignature(widest), &fewer = FirstSignature(other);
  if (fewer.num_inputs() > most.num_inputs() || fewer.num_outputs() > most.num_outputs()) {
    return InvalidArgument("neither has the inputs and outputs of both");
  }
  if (IsVariadic(widest) || IsVariadic(other)) return InvalidArgument("one has a variadic input");
  for (int i = 0; i < fewer.num_inputs(); ++i) {
    if (NeedsValue(widest, i) != NeedsValue(other, i)) {
      return InvalidArgument("the value of input ", i, " decides a shape of one of them alone");
    }
  }
  POLYOP_RETURN_IF_ERROR(CheckKernels(widest, other));
  return CheckKernels(other, widest);
}

bool Fulfils(const Meaning& meaning, AttrSource& attributes) {
  const NodeName::Condition& when = meaning.node->when;
  AttrValue value;
  const AttrInfo* const info = meaning.op->FindAttribute(when.attribute);
  if (info == nullptr || GivenAs(*info, *meaning.node, attributes, &value) == nullptr) return false;
  return when.least == NodeName::Condition::kAnyValue || (value.type == AttrType::kInt && value.ints[0] >= when.least);
}

bool GivesRequired(const Meaning& meaning, AttrSource& attributes) {
  AttrValue value;
  return std::all_of(meaning.op->attributes.begin(), meaning.op->attributes.end(), [&](const AttrInfo& info) {
    return !info.spec.required || GivenAs(info, *meaning.node, attributes, &value) != nullptr;
  });
}

bool Knows(const Meaning& meaning, std::string_view written) {
  return std::any_of(meaning.op->attributes.begin(), meaning.op->attributes.end(), [&](const AttrInfo& info) {
    const auto is_written = [&](const char* name) { return name != nullptr && written == name; };
    return is_written(meaning.node->NameOf(info.spec.name)) ||
           std::any_of(info.spec.aliases.begin(), info.spec.aliases.end(), is_written);
  });
}

// The node fulfils the condition of `meant` and gives nothing that another operator alone requires.
Status CheckNoOther(const Meaning& meant, std::span<const Meaning> meanings, AttrSource& attributes) {
  for (const Meaning& other : meanings) {
    if (other.op == meant.op) continue;
    for (const AttrInfo& info : other.op->attributes) {
      AttrValue value;
      const char* const written = info.spec.required ? GivenAs(info, *other.node, attributes, &value) : nullptr;
      if (written == nullptr || Knows(meant, written)) continue;
      return InvalidArgument("attribute ", ConditionText(*meant.node), " says that the node means '", meant.op->name,
                             "', and '", written, "' that it means '", other.op->name, "'");
    }
  }
  return Status::Ok();
}

}  // namespace

std::vector<std::vector<Meaning>> MeaningsByName(std::span<const Op* const> ops) {
  std::vector<std::vector<Meaning>> all;
  std::map<std::string_view, size_t> places;
  for (const Op* op : ops) {
    for (const NodeName& node : op->nodes) {
      const auto [place, is_new] = places.emplace(node.name, all.size());
      if (is_new) all.emplace_back();
      all[place->second].push_back({op, &node});
    }
  }
  return all;
}

std::vector<Meaning> MeaningsOf(std::string_view domain, std::string_view op_type) {
  std::vector<Meaning> found;
  for (const Op* op : AllOps()) {
    for (const NodeName& node : op->nodes) {
      if (node.domain() == domain && node.op_type() == op_type) found.push_back({op, &node});
    }
  }
  return found;
}

const Meaning& Widest(std::span<const Meaning> meanings) {
  const auto tensors = [](const Meaning& meaning) {
    return FirstSignature(*meaning.op).num_inputs() + FirstSignature(*meaning.op).num_outputs();
  };
  return *std::max_element(meanings.begin(), meanings.end(),
                           [&](const Meaning& a, const Meaning& b) { return tensors(a) < tensors(b); });
}

Status CheckShared(std::span<const Meaning> meanings) {
  const Meaning* otherwise = nullptr;
  for (const Meaning& meaning : meanings) {
    if (IsConditional(meaning)) continue;
    if (otherwise != nullptr) {
      return InvalidArgument("operators '", otherwise->op->name, "' and '", meaning.op->name, "' both answer to node ",
                             meaning.node->name);
    }
    otherwise = &meaning;
  }
  if (meanings.size() == 1) return Status::Ok();
  const Meaning& widest = Widest(meanings);
  for (const Meaning& other : meanings) {
    if (other.op == widest.op) continue;
    POLYOP_RETURN_IF_ERROR(CheckAlike(*widest.op, *other.op)
                               .WithPrefix(Concat("operators '", widest.op->name, "' and '", other.op->name,
                                                  "' cannot share node ", other.node->name, ": ")));
  }
  return Status::Ok();
}

Status ChooseMeaning(std::span<const Meaning> meanings, AttrSource& attributes, Meaning* chosen) {
  for (const Meaning& meaning : meanings) {
    if (!IsConditional(meaning) || !Fulfils(meaning, attributes)) continue;
    *chosen = meaning;
    return CheckNoOther(meaning, meanings, attributes);
  }
  const Meaning* first = nullptr;
  for (const Meaning& meaning : meanings) {
    if (IsConditional(meaning)) continue;
    if (first == nullptr) first = &meaning;
    if (!GivesRequired(meaning, attributes)) continue;
    *chosen = meaning;
    return Status::Ok();
  }
  if (first != nullptr) {
    *chosen = *first;
    return Status::Ok();
  }
  std::string wanted;
  for (const Meaning& meaning : meanings) {
    wanted += Concat(wanted.empty() ? "" : ", or ", "attribute ", ConditionText(*meaning.node), " for '",
                     meaning.op->name, "'");
  }
  return InvalidArgument("the node's attributes mean no operator, wanted ", wanted);
}

Status CheckOutputCount(std::span<const Meaning> meanings, const Meaning& chosen, size_t count) {
  const Signature& signature = FirstSignature(*chosen.op);
  size_t least = 0;
  for (int o = 0; o < signature.num_outputs(); ++o) {
    if (!signature.output(o).optional) least = static_cast<size_t>(o) + 1;
  }
  if (meanings.size() == 1 || (count >= least && count <= static_cast<size_t>(signature.num_outputs()))) {
    return Status::Ok();
  }
  std::string others;
  for (const Meaning& other : meanings) {
    if (other.op == chosen.op) continue;
    const std::string condition = ConditionText(*other.node);
    others += Concat("; '", other.op->name, "', which is meant ",
                     condition.empty() ? "otherwise" : "with attribute " + condition, ", has ",
                     FirstSignature(*other.op).num_outputs());
  }
  return InvalidArgument("the node has ", count, count == 1 ? " output" : " outputs", " and its attributes mean '",
                         chosen.op->name, "', which has ", signature.num_outputs(), others);
}

std::string ConditionText(const NodeName& node) {
  if (node.when.attribute == nullptr) return "";
  const std::string name = Concat("'", node.NameOf(node.when.attribute), "'");
  return node.when.least == NodeName::Condition::kAnyValue ? name : Concat(name, " of ", node.when.least, " or more");
}

}  // namespace polyop
