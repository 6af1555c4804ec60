#include "adapters/catalogue.h"

#include <algorithm>
#include <cmath>

#include "core/op.h"
#include "nlohmann/json.hpp"

namespace polyop {
namespace {

using Json = nlohmann::ordered_json;

Json ToJson(const AttrValue& value) {
  switch (value.type) {
    case AttrType::kInt: return value.ints[0];
    case AttrType::kFloat: return std::isfinite(value.floats[0]) ? Json(value.floats[0]) : Json(nullptr);
    case AttrType::kInts: return value.ints;
    case AttrType::kFloats: return value.floats;
    case AttrType::kString: break;
  }
  return value.text;
}

Json AttributeJson(const AttrInfo& info, const void* params) {
  const AttrSpec& spec = info.spec;
  Json json = {{"name", spec.name}, {"type", NameOf(info.type)}, {"required", spec.required}};
  json["default"] = ToJson(info.get(spec, params));
  json["default_text"] = ToString(info.get(spec, params));
  json["range"] = RangeText(spec);
  json["meaning"] = spec.doc;
  json["aliases"] = Json::array();
  for (const char* alias : spec.aliases) {
    if (alias != nullptr) json["aliases"].push_back(alias);
  }
  json["choices"] = Json::array();
  for (int i = 0; i < spec.num_choices(); ++i) json["choices"].push_back(spec.choices[static_cast<size_t>(i)]);
  return json;
}

Json NodeJson(const NodeName& node) {
  Json json = {{"name", node.name},
               {"renames", Json::object()},
               {"presets", Json::object()},
               {"spellings", Json::object()},
               {"standards", Json::array()}};
  for (const NodeName::Pair& pair : node.renames) {
    if (pair.first != nullptr) json["renames"][pair.first] = pair.second;
  }
  for (const NodeName::Pair& pair : node.presets) {
    if (pair.first != nullptr) json["presets"][pair.first] = pair.second;
  }
  for (const NodeName::Pair& pair : node.spellings) {
    if (pair.first != nullptr) json["spellings"][pair.first] = pair.second;
  }
  for (const NodeName::Standard& standard : node.standards) {
    if (standard.since == 0) continue;
    Json preset = Json::object();
    if (standard.preset.first != nullptr) preset[standard.preset.first] = standard.preset.second;
    json["standards"].push_back({{"since", standard.since}, {"preset", preset}});
  }
  // Which nodes of the name mean the operator, where others have the name, too.
  json["when"] = nullptr;
  if (node.when.attribute != nullptr) {
    const bool any = node.when.least == NodeName::Condition::kAnyValue;
    json["when"] = {{"attribute", node.when.attribute}, {"least", any ? Json(nullptr) : Json(node.when.least)}};
  }
  return json;
}

void AddOnce(const Json& item, Json* list) {
  if (std::find(list->begin(), list->end(), item) == list->end()) list->push_back(item);
}

// The types that an input may have, those of the CPU's kernels; nothing for any.
Json InputTypesJson(const Op& op, int input) {
  Json types = Json::array();
  for (const Kernel& kernel : op.kernels) {
    if (kernel.device != Device::kCpu || op.signatures[kernel.signature].signature->input(input).any_dtype) continue;
    AddOnce(NameOf(kernel.inputs[input]), &types);
  }
  return types;
}

Json InputsJson(const Op& op) {
  Json inputs = Json::array();
  const Signature& signature = *op.signatures[0].signature;  // its inputs' names and kinds are those of all
  for (int i = 0; i < signature.num_inputs(); ++i) {
    const TensorSpec& spec = signature.input(i);
    inputs.push_back({{"name", spec.name},
                      {"optional", spec.optional},
                      {"variadic", spec.variadic},
                      {"types", InputTypesJson(op, i)},
                      {"value", op.signatures[0].needs_value(i)}});  // its value decides shapes
  }
  return inputs;
}

// What the CPU's kernels take for the first input that is more than a number.
Json TypesJson(const Op& op) {
  Json types = Json::array();
  for (const Kernel& kernel : op.kernels) {
    if (kernel.device != Device::kCpu) continue;
    const Signature& s = *op.signatures[kernel.signature].signature;
    int i = 0;
    while (i + 1 < s.num_inputs() && s.input(i).rank == 0 && !s.input(i).has_rest) ++i;
    AddOnce(NameOf(kernel.inputs[static_cast<size_t>(i)]), &types);
  }
  return types;
}

Json DevicesJson(const Op& op) {
  Json devices = Json::array();
  for (const auto& [device, name] : {std::pair{Device::kCpu, "cpu"}, {Device::kCuda, "cuda"}}) {
    const bool has =
        std::any_of(op.kernels.begin(), op.kernels.end(), [d = device](const Kernel& k) { return k.device == d; });
    if (has) devices.push_back(name);
  }
  return devices;
}

// Inputs whose values decide a shape, in any signature.
Json DecidingInputsJson(const Op& op) {
  Json inputs = Json::array();
  for (const OpSignature& s : op.signatures) {
    for (int i = 0; i < s.signature->num_inputs(); ++i) {
      if (s.needs_value(i)) AddOnce(i, &inputs);
    }
  }
  return inputs;
}

// For each signature whether the kernel finds a size of each output.
Json FoundSizesJson(const Op& op) {
  Json found = Json::array();
  for (const OpSignature& s : op.signatures) {
    Json outputs = Json::array();
    for (int o = 0; o < s.signature->num_outputs(); ++o) {
      outputs.push_back(s.signature->output(o).pending());
    }
    found.push_back(outputs);
  }
  return found;
}

Json OutputsJson(const Op& op) {
  Json outputs = Json::array();
  const Signature& signature = *op.signatures[0].signature;
  for (int o = 0; o < signature.num_outputs(); ++o) {
    outputs.push_back({{"name", signature.output(o).name}, {"optional", signature.output(o).optional}});
  }
  return outputs;
}

}  // namespace

std::string CatalogueJson() {
  Json all = Json::array();
  for (const Op* op : AllOps()) {
    const Params params = op->DefaultParams();
    Json json = {
        {"name", op->name}, {"signatures", Json::array()}, {"attributes", Json::array()}, {"nodes", Json::array()}};
    json["inputs"] = InputsJson(*op);
    json["summary"] = op->doc.summary;
    json["semantics"] = op->doc.semantics;
    json["source"] = op->doc.source;
    json["differences"] = op->doc.differences;
    json["not_portable"] = op->doc.not_portable;
    json["types"] = TypesJson(*op);
    json["devices"] = DevicesJson(*op);
    json["deciding_inputs"] = DecidingInputsJson(*op);
    json["outputs"] = OutputsJson(*op);
    json["found_sizes"] = FoundSizesJson(*op);
    json["half"] = std::any_of(op->kernels.begin(), op->kernels.end(),
                               [](const Kernel& kernel) { return kernel.inputs[0] == DType::kF16; });
    for (const OpSignature& s : op->signatures) json["signatures"].push_back(s.signature->text());
    for (const AttrInfo& info : op->attributes) json["attributes"].push_back(AttributeJson(info, params.get()));
    for (const NodeName& node : op->nodes) json["nodes"].push_back(NodeJson(node));
    all.push_back(json);
  }
  return all.dump();
}

}  // namespace polyop

extern "C" __attribute__((visibility("default"))) const char* polyop_catalogue() {
  static const std::string json = polyop::CatalogueJson();
  return json.c_str();
}
