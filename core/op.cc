#include "core/op.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "core/int_domain.h"
#include "core/operator.h"

namespace polyop {
namespace {

std::vector<Op*>& Registry() {
  static std::vector<Op*>* ops = new std::vector<Op*>();  // lives as long as static initialisers use it
  return *ops;
}

std::string RanksAndTypes(std::span<const AnyTensor> inputs) {
  std::string text;
  for (const AnyTensor& t : inputs) {
    if (!text.empty()) text += ", ";
    text += t.present ? Concat(NameOf(t.dtype), ToString(t.shape)) : std::string("(left out)");
  }
  return text;
}

bool TypesMatch(const Signature& s, const Kernel& kernel, std::span<const AnyTensor> inputs) {
  if (inputs.size() > static_cast<size_t>(s.num_inputs()) && !s.variadic()) return false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].present || SpecOf(s, i).any_dtype) continue;
    if (inputs[i].dtype != kernel.inputs[std::min<size_t>(i, s.num_inputs() - 1)]) return false;
  }
  return true;
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

bool Find(const AttrInfo& info, const NodeName& node, AttrSource& source, AttrValue* value) {
  if (source.Get(node.NameOf(info.spec.name), value)) return true;
  for (const char* alias : info.spec.aliases) {
    if (alias != nullptr && source.Get(alias, value)) return true;
  }
  return false;
}

Status CheckElements(const TensorSpec& spec, const Shape& shape) {
  for (int d = 0; d < shape.rank(); ++d) {
    if (shape[d] < 0) {
      return InvalidArgument("output '", spec.name, "' would have shape ", ToString(shape), ": dimension ", d, " (",
                             d < spec.rank ? spec.dims[d].text : "", ") is negative");
    }
  }
  const std::optional<int64_t> count = shape.NumElements();
  int64_t bytes = 0;
  if (!count || __builtin_mul_overflow(*count, int64_t{8}, &bytes)) {
    return InvalidArgument("output '", spec.name, "' would have shape ", ToString(shape),
                           ": its size overflows 64 bits");
  }
  return Status::Ok();
}

}  // namespace

std::string ToString(const Shape& shape) {
  std::string text = "[";
  for (int i = 0; i < shape.rank(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

bool OpSignature::needs_value(int i) const {
  for (int n = 0; n < signature->num_names(); ++n) {
    if (signature->name(n).kind == NameSpec::Kind::kInput && signature->name(n).input == i) return true;
  }
  return false;
}

namespace operator_internal {

Op& AddOp(std::string_view name) {
  Op* op = new Op();  // records live as long as the process
  op->name = name;
  Registry().push_back(op);
  return *op;
}

OpSignature Resolve(const Signature& signature, const std::vector<AttrInfo>& attributes) {
  OpSignature resolved;
  resolved.signature = &signature;
  resolved.attribute_of_name.fill(-1);
  for (int n = 0; n < signature.num_names(); ++n) {
    for (size_t a = 0; a < attributes.size(); ++a) {
      if (attributes[a].spec.name == signature.name(n).text) {
        resolved.attribute_of_name[n] = static_cast<int16_t>(a);
      }
    }
  }
  return resolved;
}

}  // namespace operator_internal

std::span<const Op* const> AllOps() {
  static const std::vector<const Op*>* sorted = [] {
    auto* ops = new std::vector<const Op*>(Registry().begin(), Registry().end());
    std::sort(ops->begin(), ops->end(), [](const Op* a, const Op* b) { return a->name < b->name; });
    return ops;
  }();
  return *sorted;
}

const Op* FindOp(std::string_view name) {
  for (const Op* op : AllOps()) {
    if (op->name == name) return op;
  }
  return nullptr;
}

const Op* FindOpByNode(std::string_view domain, std::string_view op_type, const NodeName** node) {
  for (const Op* op : AllOps()) {
    for (const NodeName& n : op->nodes) {
      if (n.domain() != domain || n.op_type() != op_type) continue;
      if (node != nullptr) *node = &n;
      return op;
    }
  }
  return nullptr;
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
  Params made = DefaultParams();
  for (const AttrInfo& info : attributes) {
    AttrValue value;
    if (const char* preset = PresetFor(node, info.spec.name)) {
      POLYOP_RETURN_IF_ERROR(info.set(info.spec, made.get(), PresetValue(info, preset)));
    }
    if (Find(info, node, source, &value)) {
      POLYOP_RETURN_IF_ERROR(info.set(info.spec, made.get(), value));
    } else if (info.spec.required) {
      return InvalidArgument("attribute '", node.NameOf(info.spec.name), "' is missing (", NameOf(info.type), ": ",
                             info.spec.doc, ")");
    }
  }
  POLYOP_RETURN_IF_ERROR(check_params(made.get()));
  *params = std::move(made);
  return Status::Ok();
}

Status Op::FindKernel(Device device, std::span<const AnyTensor> inputs, const Kernel** kernel) const {
  const Kernel* by_type = nullptr;
  for (const Kernel& k : kernels) {
    if (k.device != device || !TypesMatch(*signatures[k.signature].signature, k, inputs)) continue;
    if (by_type == nullptr) by_type = &k;
    if (RanksMatch(*signatures[k.signature].signature, inputs)) {
      *kernel = &k;
      return Status::Ok();
    }
  }
  if (by_type != nullptr) {  // its checks will say what is wrong with the shapes
    *kernel = by_type;
    return Status::Ok();
  }
  std::string have;
  for (const Kernel& k : kernels) {
    if (k.device != device) continue;
    const Signature& s = *signatures[k.signature].signature;
    have += have.empty() ? "(" : "; (";
    for (int i = 0; i < s.num_inputs(); ++i) {
      have += Concat(i ? ", " : "", s.input(i).name, ": ", s.input(i).any_dtype ? "any" : NameOf(k.inputs[i]));
    }
    have += ")";
  }
  return Unsupported("no kernel takes inputs (", RanksAndTypes(inputs), "); there is ",
                     have.empty() ? "none for this device" : have);
}

Status Op::Run(const Kernel& kernel, const void* params, std::span<const AnyTensor> inputs, OutputSource& outputs,
               const void* context) const {
  constexpr size_t kMaxInputs = kMaxTensors + TensorList<float, 1>::kMax;
  const OpSignature& resolved = signatures[kernel.signature];
  const Signature& signature = *resolved.signature;
  if (inputs.size() > kMaxInputs) {
    return InvalidArgument(inputs.size(), " inputs came, at most ", kMaxInputs, " are possible");
  }
  std::array<Dims<int64_t>, kMaxInputs> shapes;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorSpec& spec = SpecOf(signature, i);
    shapes[i].present = inputs[i].present;
    if (!inputs[i].present) {
      if (!spec.optional) return InvalidArgument("'", spec.name, "' was left out, but is not optional");
      continue;
    }
    if (!inputs[i].shape.NumElements()) {
      return InvalidArgument("'", spec.name, "' has shape ", ToString(inputs[i].shape),
                             ": its size is negative or overflows 64 bits");
    }
    for (int64_t d : inputs[i].shape.span()) shapes[i].push_back(d);
  }
  IntDomain domain(inputs);
  ShapeEvaluator<IntDomain> evaluator(resolved, *this, params, domain);
  POLYOP_RETURN_IF_ERROR(evaluator.Bind({shapes.data(), inputs.size()}));
  if (domain.problem() != nullptr) return InvalidArgument(domain.problem());

  std::array<AnyTensor, kMaxTensors> made;
  for (int o = 0; o < signature.num_outputs(); ++o) {
    const TensorSpec& spec = signature.output(o);
    AnyTensor& out = made[o];
    out.dtype = kernel.outputs[o];
    out.present = !spec.optional || outputs.Wanted(o);
    if (!out.present) continue;
    Dims<int64_t> dims;
    POLYOP_RETURN_IF_ERROR(evaluator.Output(o, &dims));
    if (domain.problem() != nullptr) {
      return InvalidArgument("output '", spec.name, "': ", domain.problem());
    }
    out.shape = Shape(std::span<const int64_t>(dims.dim.data(), static_cast<size_t>(dims.rank)));
    if (spec.pending()) continue;
    POLYOP_RETURN_IF_ERROR(CheckElements(spec, out.shape));
    POLYOP_RETURN_IF_ERROR(outputs.Allocate(o, out.dtype, out.shape, &out.data));
  }
  return kernel.launch(
      {params, context, inputs, {made.data(), static_cast<size_t>(signature.num_outputs())}, &outputs});
}

}  // namespace polyop
