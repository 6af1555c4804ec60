// SPDX-License-Identifier: Apache-2.0
#include "adapters/torch/schema.h"

#include <cstdio>
namespace polyop::torch_adapter {
namespace {

std::string Number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  const std::string number = text;
  return number.find_first_of(".en") == std::string::npos ? number + ".0" : number;
}

template <class Values, class Text>
std::string ListText(const Values& values, const Text& text) {
  std::string result = "[";
  for (size_t i = 0; i < values.size(); ++i) result += (i ? ", " : "") + text(values[i]);
  return result + "]";
}

// Returns the attribute's type, name and default, if there is one.
std::string AttributeSchema(const AttrInfo& info, const void* params) {
  const AttrSpec& spec = info.spec;
  const AttrValue value = info.get(spec, params);
  const auto with_default = [&](const std::string& type, const std::string& text) {
    return type + " " + spec.name + (spec.required ? "" : "=" + text);
  };
  if (spec.num_choices() > 0) {
    const std::string choice = value.type == AttrType::kInt ? spec.choices[value.ints[0]] : value.text;
    return with_default("str", "\"" + choice + "\"");
  }
  const auto integer = [](int64_t v) { return std::to_string(v); };
  switch (info.type) {
    case AttrType::kInt: return with_default("int", integer(value.ints[0]));
    case AttrType::kFloat:
      if (spec.infinite) return std::string("float? ") + spec.name + "=None";
      return with_default("float", Number(value.floats[0]));
    case AttrType::kInts: return with_default("int[]", ListText(value.ints, integer));
    case AttrType::kFloats: return with_default("float[]", ListText(value.floats, Number));
    case AttrType::kString: break;
  }
  return with_default("str", "\"" + value.text + "\"");
}

// Returns the schema up to the last argument: "roi_align(Tensor input, Tensor rois, *, int output_height=1, …".
std::string Arguments(const Op& op) {
  const Signature& signature = *op.signatures[0].signature;
  std::string text = std::string(op.name) + "(";
  for (int i = 0; i < signature.num_inputs(); ++i) {
    const TensorSpec& spec = signature.input(i);
    text += std::string(i ? ", " : "") +
            (spec.variadic   ? "Tensor[] "
             : spec.optional ? "Tensor? "
                             : "Tensor ") +
            std::string(spec.name);
  }
  const Params params = op.DefaultParams();
  for (size_t a = 0; a < op.attributes.size(); ++a) {
    text += std::string(a == 0 ? ", *" : "") + ", " + AttributeSchema(op.attributes[a], params.get());
  }
  return text;
}

}  // namespace

std::string SchemaOf(const Op& op) {
  const Signature& signature = *op.signatures[0].signature;
  std::string text = Arguments(op) + ") -> ";
  const int outputs = signature.num_outputs();
  if (outputs == 1) return text + "Tensor";
  text += "(";
  for (int o = 0; o < outputs; ++o) text += o ? ", Tensor" : "Tensor";
  return text + ")";
}

std::string SchemaInto(const Op& op) {
  const Signature& signature = *op.signatures[0].signature;
  std::string text = Arguments(op) + (op.attributes.empty() ? ", *" : "");
  for (int o = 0; o < signature.num_outputs(); ++o) {
    text += ", Tensor(o" + std::to_string(o) + "!) " + std::string(signature.output(o).name);
  }
  return text + ") -> ()";
}

bool OutputsCanBeGiven(const Op& op) {
  for (const OpSignature& form : op.signatures) {
    for (int o = 0; o < form.signature->num_outputs(); ++o) {
      const TensorSpec& spec = form.signature->output(o);
      if (spec.optional || spec.pending()) return false;
    }
  }
  return true;
}

}  // namespace polyop::torch_adapter
