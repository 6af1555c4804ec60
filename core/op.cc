// SPDX-License-Identifier: Apache-2.0
#include "core/op.h"

#include <algorithm>
#include <cstring>

#include "core/shape_eval.h"

namespace polyop {
namespace {

std::string TypesAndShapes(std::span<const AnyTensor> inputs) {
  std::string text;
  for (const AnyTensor& t : inputs) {
    if (!text.empty()) text += ", ";
    text += t.present ? Concat(NameOf(t.dtype), ToString(t.shape)) : std::string("(none)");
  }
  return text;
}

bool HasType(const AnyTensor& input, DType dtype) { return input.dtype == dtype; }
bool HasType(const KnownInput& input, DType dtype) { return input.dtype.value_or(dtype) == dtype; }

template <class Input>
bool TypesMatch(const Signature& s, const Kernel& kernel, std::span<const Input> inputs) {
  if (inputs.size() > static_cast<size_t>(s.num_inputs()) && !s.variadic()) return false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].present || SpecOf(s, i).any_dtype) continue;
    if (!HasType(inputs[i], kernel.inputs[static_cast<size_t>(SpecIndex(s, i))])) return false;
  }
  return true;
}

// Returns the kernel for these types and ranks, or null. Sets `by_type` to the first kernel that matches the types
// alone.
template <class Input>
const Kernel* Search(const Op& op, Device device, std::span<const Input> inputs, const Kernel** by_type) {
  for (const Kernel& k : op.kernels) {
    const Signature& signature = *op.signatures[static_cast<size_t>(k.signature)].signature;
    if (k.device != device || !TypesMatch(signature, k, inputs)) continue;
    if (*by_type == nullptr) *by_type = &k;
    if (RanksMatch(signature, inputs)) return &k;
  }
  return nullptr;
}

// Replaces the node's spelling of a choice by the operator's name of it.
void Respell(const NodeName& node, AttrValue* value) {
  for (const NodeName::Pair& p : node.spellings) {
    if (p.first == nullptr || value->type != AttrType::kString || value->text != p.second) continue;
    value->text = p.first;
    return;
  }
}

const char* PresetFor(const NodeName& node, const char* name) {
  for (const NodeName::Pair& p : node.presets) {
    if (p.first != nullptr && std::strcmp(p.first, name) == 0) return p.second;
  }
  return nullptr;
}

AttrValue PresetValue(const AttrInfo& info, const char* text) {
  if (info.spec.num_choices() > 0 && (*text < '0' || *text > '9')) return AttrValue::String(text);
  return AttrValue::Int(std::strtoll(text, nullptr, 10));
}

}  // namespace

const char* FindNodeAttribute(const AttrInfo& info, const NodeName& node, AttrSource& source, AttrValue* value) {
  const char* const name = node.NameOf(info.spec.name);
  if (source.Get(name, value)) return name;
  for (const char* alias : info.spec.aliases) {
    if (alias != nullptr && source.Get(alias, value)) return alias;
  }
  return nullptr;
}

std::string InputTypesText(const Op& op, const Kernel& kernel) {
  const Signature& s = *op.signatures[kernel.signature].signature;
  std::string text = "(";
  for (int i = 0; i < s.num_inputs(); ++i) {
    text += Concat(i ? ", " : "", s.input(i).name, ": ", s.input(i).any_dtype ? "any" : NameOf(kernel.inputs[i]));
  }
  return text + ")";
}

std::string ToString(const Shape& shape) {
  std::string text;
  for (int64_t d : shape.span()) text += (text.empty() ? "" : ", ") + std::to_string(d);
  return "[" + text + (shape.too_long() ? ", …]" : "]");
}

bool OpSignature::needs_value(int i) const {
  for (int n = 0; n < signature->num_names(); ++n) {
    if (signature->name(n).kind == NameSpec::Kind::kInput && signature->name(n).input == i) return true;
  }
  return false;
}

Status CheckCount(const Signature& signature, size_t got) {
  size_t min = 0;
  for (int i = 0; i < signature.num_inputs(); ++i) {
    if (!signature.input(i).optional) min = static_cast<size_t>(i) + 1;
  }
  const size_t named = static_cast<size_t>(signature.num_inputs());
  if (signature.variadic() && got >= min && got - (named - 1) > kMaxVariadic) {
    return InvalidArgument("'", signature.input(signature.num_inputs() - 1).name, "': expected at most ", kMaxVariadic,
                           " tensors, got ", got - (named - 1));
  }
  const bool too_many = !signature.variadic() && got > named;
  if (got >= min && !too_many) return Status::Ok();
  const size_t expected = too_many ? named : min;
  const char* const bound = !signature.variadic() && min == named ? "" : too_many ? "at most " : "at least ";
  return InvalidArgument("expected ", bound, expected, expected == 1 ? " input, got " : " inputs, got ", got, " (",
                         signature.text(), ")");
}

std::string UnwrapText(std::string_view text) {
  std::string unwrapped;
  for (size_t i = 0; i < text.size();) {
    const size_t end = std::min(text.find_first_not_of(" \t\r\n", i), text.size());
    const std::string_view white = text.substr(i, end - i);
    const auto line_breaks = std::count(white.begin(), white.end(), '\n');
    if (end == text.size()) break;
    if (line_breaks > 0) {
      if (!unwrapped.empty()) unwrapped += line_breaks > 1 ? "\n\n" : " ";
    } else if (!unwrapped.empty()) {
      unwrapped += white;
    }
    const size_t word_end = std::min(text.find_first_of(" \t\r\n", end), text.size());
    unwrapped += text.substr(end, word_end - end);
    i = word_end;
  }
  return unwrapped;
}

const AttrInfo* Op::FindAttribute(std::string_view attribute) const {
  for (const AttrInfo& info : attributes) {
    if (info.spec.name == attribute) return &info;
  }
  return nullptr;
}

Status SetAttribute(const Op& op, void* params, std::string_view name, const AttrValue& value) {
  const AttrInfo* info = op.FindAttribute(name);
  if (info == nullptr) return InvalidArgument("operator ", op.name, " has no attribute '", name, "'");
  return info->set(info->spec, params, value);
}

Status Op::MakeParams(const NodeName& node, AttrSource& source, Params* params) const {
  Params result = DefaultParams();
  for (const AttrInfo& info : attributes) {
    AttrValue value;
    if (const char* preset = PresetFor(node, info.spec.name)) {
      POLYOP_RETURN_IF_ERROR(info.set(info.spec, result.get(), PresetValue(info, preset)));
    }
    if (FindNodeAttribute(info, node, source, &value) != nullptr) {
      Respell(node, &value);
      POLYOP_RETURN_IF_ERROR(info.set(info.spec, result.get(), value));
    } else if (info.spec.required) {
      return InvalidArgument("attribute '", node.NameOf(info.spec.name), "' is missing (", NameOf(info.type), ": ",
                             UnwrapText(info.spec.doc), ")");
    }
  }
  POLYOP_RETURN_IF_ERROR(check_params(result.get()));
  *params = std::move(result);
  return Status::Ok();
}

Status Op::FindKernel(Device device, std::span<const AnyTensor> inputs, const Kernel** kernel) const {
  const Kernel* by_type = nullptr;
  *kernel = Search(*this, device, inputs, &by_type);
  if (*kernel == nullptr) *kernel = by_type;  // Prepare's checks report the wrong ranks
  if (*kernel != nullptr) return Status::Ok();
  std::vector<std::string> types;  // kernels of several ranks have the same types
  std::string have;
  for (const Kernel& k : kernels) {
    std::string text = InputTypesText(*this, k);
    if (k.device != device || std::find(types.begin(), types.end(), text) != types.end()) continue;
    have += (have.empty() ? "" : " or ") + text;
    types.push_back(std::move(text));
  }
  return Unsupported("no kernel takes inputs (", TypesAndShapes(inputs),
                     "): ", have.empty() ? "the operator has no kernel for this device" : "expected " + have);
}

const Kernel* Op::FindKernel(Device device, std::span<const KnownInput> inputs) const {
  const Kernel* by_type = nullptr;
  return Search(*this, device, inputs, &by_type);
}

}  // namespace polyop
