// SPDX-License-Identifier: Apache-2.0
#include "adapters/catalogue.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/guard.h"
#include "core/input_role.h"
#include "core/library.h"
#include "core/node_resolution.h"
#include "core/op.h"
#include "core/thread_order.h"
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
  json["meaning"] = UnwrapText(spec.doc);
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
  // The condition that selects this operator where several operators share the node name; null if there is none.
  json["when"] = nullptr;
  if (node.when.attribute != nullptr) {
    const bool any = node.when.min == NodeName::Condition::kAnyValue;
    json["when"] = {{"attribute", node.when.attribute}, {"least", any ? Json(nullptr) : Json(node.when.min)}};
  }
  return json;
}

void AddOnce(const Json& item, Json* list) {
  if (std::find(list->begin(), list->end(), item) == list->end()) list->push_back(item);
}

// Returns the types of an input in the CPU kernels; empty if the input accepts any type.
Json InputTypesJson(const Op& op, int input) {
  Json types = Json::array();
  for (const Kernel& kernel : op.kernels) {
    if (kernel.device != Device::kCpu || op.signatures[kernel.signature].signature->input(input).any_dtype) continue;
    AddOnce(NameOf(kernel.inputs[input]), &types);
  }
  return types;
}

// Returns the rank of a tensor, or null if it varies: within a signature or between them.
Json RankJson(const Op& op, const TensorSpec& (Signature::*tensor)(int) const, int index) {
  Json rank = nullptr;
  for (const OpSignature& s : op.signatures) {
    const TensorSpec& spec = (s.signature->*tensor)(index);
    if (spec.has_rest || (!rank.is_null() && rank != spec.rank)) return nullptr;
    rank = spec.rank;
  }
  return rank;
}

Json InputsJson(const Op& op) {
  Json inputs = Json::array();
  const Signature& signature = *op.signatures[0].signature;  // all signatures have the same input names and kinds
  for (int i = 0; i < signature.num_inputs(); ++i) {
    const TensorSpec& spec = signature.input(i);
    inputs.push_back({{"name", spec.name},
                      {"type", spec.dtype_text},
                      {"rank", RankJson(op, &Signature::input, i)},
                      {"role", RoleOf(spec)},
                      {"optional", spec.optional},
                      {"variadic", spec.variadic},
                      {"types", InputTypesJson(op, i)},
                      {"value", op.signatures[0].needs_value(i)}});  // its value determines shapes
  }
  return inputs;
}

// Returns the types in the CPU kernels of the first input that is not a scalar.
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

// Returns the devices on which the last bits of results differ from run to run.
Json NondeterministicDevicesJson(const Op& op) {
  return SumsInThreadOrder::Marks(op.name) ? Json::array({"cuda"}) : Json::array();
}

// Returns the inputs whose values determine a shape, in any signature.
Json DecidingInputsJson(const Op& op) {
  Json inputs = Json::array();
  for (const OpSignature& s : op.signatures) {
    for (int i = 0; i < s.signature->num_inputs(); ++i) {
      if (s.needs_value(i)) AddOnce(i, &inputs);
    }
  }
  return inputs;
}

// For each signature and output: true if the kernel finds an extent of the output.
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
    const TensorSpec& spec = signature.output(o);
    outputs.push_back({{"name", spec.name},
                       {"type", spec.dtype_text},
                       {"rank", RankJson(op, &Signature::output, o)},
                       {"optional", spec.optional}});
  }
  return outputs;
}

// Returns which inputs have gradients in PyTorch, and the devices that have a gradient kernel, also those that this
// build lacks; null if the operator is not differentiable.
Json GradientJson(const Op& op) {
  for (const Differentiable& known : DifferentiableOperators()) {
    if (op.name != known.op) continue;
    Json json = {{"inputs", Json::array()}, {"kernels", Json::array()}};
    for (const int input : known.inputs) json["inputs"].push_back(op.signatures[0].signature->input(input).name);
    if (known.cpu) json["kernels"].push_back("cpu");
    if (known.cuda) json["kernels"].push_back("cuda");
    return json;
  }
  return nullptr;
}

}  // namespace

std::string CatalogueJson() {
  Json all = Json::array();
  std::set<const NodeName*> of_plugins;
  for (const std::vector<NodeCandidate>& candidates : CandidatesByPluginName(AllOps())) {
    for (const NodeCandidate& candidate : candidates) of_plugins.insert(candidate.node);
  }
  for (const Op* op : AllOps()) {
    const Params params = op->DefaultParams();
    Json json = {
        {"name", op->name}, {"signatures", Json::array()}, {"attributes", Json::array()}, {"nodes", Json::array()}};
    if (!op->gradient_of.empty()) json["gradient_of"] = op->gradient_of;
    json["room"] = RoomOf(op->name);
    json["inputs"] = InputsJson(*op);
    json["summary"] = UnwrapText(op->doc.summary);
    json["semantics"] = UnwrapText(op->doc.semantics);
    json["source"] = UnwrapText(op->doc.source);
    json["differences"] = UnwrapText(op->doc.differences);
    json["not_portable"] = UnwrapText(op->doc.not_portable);
    json["types"] = TypesJson(*op);
    json["devices"] = DevicesJson(*op);
    json["nondeterministic_devices"] = NondeterministicDevicesJson(*op);
    json["gradient"] = GradientJson(*op);
    json["deciding_inputs"] = DecidingInputsJson(*op);
    json["outputs"] = OutputsJson(*op);
    json["found_sizes"] = FoundSizesJson(*op);
    json["half"] = std::any_of(op->kernels.begin(), op->kernels.end(),
                               [](const Kernel& kernel) { return kernel.inputs[0] == DType::kF16; });
    for (const OpSignature& s : op->signatures) json["signatures"].push_back(s.signature->text());
    for (const AttrInfo& info : op->attributes) json["attributes"].push_back(AttributeJson(info, params.get()));
    for (const NodeName& node : op->nodes) {
      json["nodes"].push_back(NodeJson(node));
      json["nodes"].back()["plugin"] = of_plugins.count(&node) != 0;  // the name also exists in kPluginDomain
    }
    all.push_back(json);
  }
  return all.dump();
}

namespace {

// The message may quote a text that is not UTF-8.
std::string CatalogueError(const char* message) {
  return Json({{"error", message}}).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace
}  // namespace polyop

extern "C" const char* polyop_catalogue() {
  using namespace polyop;
  static const std::string json = Guarded(
      [] {
        const Status status = CheckRegistry();
        return status.ok() ? CatalogueJson() : CatalogueError(status.message().c_str());
      },
      CatalogueError);
  return json.c_str();
}
