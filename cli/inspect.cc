// polyop inspect: describes a model and the operators that it needs, without running it.
#include <filesystem>
#include <iostream>
#include <map>
#include <set>

#include "cli/base/failure.h"
#include "cli/base/model.h"
#include "cli/base/operators.h"
#include "cli/base/text.h"
#include "cli/commands.h"
#include "cli/drawing.h"
#include "cli/json.h"

namespace polyop::cli {
namespace {

// The non-standard nodes of one name that resolve to the same operator.
struct Needed {
  std::string type, domain, op_type;  // type: "domain::Type"
  int count = 0;
  std::map<std::string, std::set<std::string>> attributes;  // name -> values in the model
  bool by_runtime = false, by_function = false;
  const OperatorInfo* op = nullptr;

  bool provided() const { return op != nullptr || by_runtime || by_function; }
};

std::map<std::string, Needed> FindNeeded(const onnx::ModelProto& model) {
  std::map<std::string, Needed> found;
  ForEachNode(model, [&](const onnx::NodeProto& node) {
    if (IsStandard(node)) return;
    const OperatorInfo* const op = ResolveNode(node);
    const bool is_shared = op != nullptr && FindCandidates(node.domain(), node.op_type()).size() > 1;
    Needed& needed = found[TypeOf(node) + (is_shared ? " (" + op->FullName() + ")" : "")];
    needed.op = op;
    needed.type = TypeOf(node);
    needed.domain = node.domain();
    needed.op_type = node.op_type();
    ++needed.count;
    needed.by_runtime = IsRuntimeDomain(node.domain());
    needed.by_function = IsLocalFunction(model, node);
    for (const auto& attribute : node.attribute()) needed.attributes[attribute.name()].insert(AttributeText(attribute));
  });
  return found;
}

std::string AttributesText(const Needed& needed) {
  std::vector<std::string> parts;
  for (const auto& [name, values] : needed.attributes) {
    parts.push_back(
        name + "=" +
        (values.size() <= 3 ? Join({values.begin(), values.end()}, "|") : std::to_string(values.size()) + " values"));
  }
  return parts.empty() ? "-" : Join(parts, " ");
}

std::string ProviderText(const Needed& needed) {
  if (needed.op != nullptr) {
    return needed.op->package + " (" + Join(needed.op->runtimes, ", ") + ")" +
           (needed.by_function ? ", or its function" : "");
  }
  if (needed.by_function) return "a function of the model";
  return needed.by_runtime ? "ONNX Runtime contrib" : "nobody";
}

// The likeliest cause is the right type in another domain, then a misspelling.
std::string Advice(const std::string& name, const Needed& needed) {
  std::vector<std::string> names;
  for (const OperatorInfo& op : Operators()) {
    for (const NodeInfo& node : op.nodes) {
      if (node.type == needed.op_type) {
        return op.package + " has it as " + node.domain + "::" + node.type +
               ": rename the node's domain, or register it under " + needed.domain;
      }
      names.push_back(node.domain + "::" + node.type);
    }
  }
  const std::string near = Nearest(name, names);
  const std::string other = "run with --ops LIB, or write it: CONTRIBUTING.md, \"Add an operator\"";
  return near.empty() ? other : "the nearest is " + near + "; else " + other;
}

int64_t ElementCount(const onnx::TensorProto& tensor) {
  int64_t count = 1;
  for (int64_t d : tensor.dims()) {
    if (d < 0 || __builtin_mul_overflow(count, d, &count)) return 0;
  }
  return count;
}

Json AsJson(const onnx::ModelProto& model, const std::map<std::string, Needed>& needed, const InspectOptions& options,
            int nodes) {
  Json report = {{"model", options.model},
                 {"ir_version", model.ir_version()},
                 {"producer", model.producer_name()},
                 {"nodes", nodes}};
  for (const auto& opset : model.opset_import())
    report["opsets"][opset.domain().empty() ? "ai.onnx" : opset.domain()] = opset.version();
  for (const auto& input : model.graph().input())
    report["inputs"].push_back({{"name", input.name()}, {"type", TypeText(input.type())}});
  for (const auto& output : model.graph().output())
    report["outputs"].push_back({{"name", output.name()}, {"type", TypeText(output.type())}});
  report["operators"] = Json::array();
  for (const auto& [name, n] : needed) {
    Json entry = {{"name", n.type},
                  {"operator", n.op == nullptr ? Json() : Json(n.op->FullName())},
                  {"count", n.count},
                  {"provided", n.provided()},
                  {"provider", ProviderText(n)},
                  {"function", n.by_function}};
    entry["attributes"] = Json::object();
    for (const auto& [attribute, values] : n.attributes) entry["attributes"][attribute] = values;
    if (!n.provided()) entry["advice"] = Advice(name, n);
    report["operators"].push_back(entry);
  }
  return report;
}

void PrintHead(const onnx::ModelProto& model, const InspectOptions& options, int nodes) {
  std::vector<std::string> opsets;
  for (const auto& opset : model.opset_import()) {
    opsets.push_back((opset.domain().empty() ? "ai.onnx" : opset.domain()) + " " + std::to_string(opset.version()));
  }
  double elements = 0;
  std::set<std::string> initializers;
  for (const auto& tensor : model.graph().initializer()) {
    elements += static_cast<double>(ElementCount(tensor));
    initializers.insert(tensor.name());
  }
  const int functions = model.functions_size();
  std::cout << Bold(options.model) << "\n"
            << "  IR version " << model.ir_version() << ", opsets " << Join(opsets, ", ")
            << (model.producer_name().empty()
                    ? ""
                    : ", produced by " + model.producer_name() + " " + model.producer_version())
            << "\n"
            << "  " << nodes << " nodes"
            << (functions ? Concat(", those of ", functions, functions > 1 ? " functions" : " function", " among them")
                          : "")
            << ", " << model.graph().initializer_size() << " initializers with " << elements / 1e6
            << " million elements\n\n";
  std::vector<std::vector<std::string>> rows;
  for (const auto& input : model.graph().input()) {
    if (!initializers.contains(input.name())) rows.push_back({"in", input.name(), TypeText(input.type())});
  }
  for (const auto& output : model.graph().output()) rows.push_back({"out", output.name(), TypeText(output.type())});
  std::cout << Table({"", "tensor", "type"}, rows) << "\n";
}

}  // namespace

int Inspect(const InspectOptions& options) {
  const onnx::ModelProto model = LoadModel(options.model);
  const std::map<std::string, Needed> needed = FindNeeded(model);
  int nodes = 0, missing = 0;
  ForEachNode(model, [&](const onnx::NodeProto&) { ++nodes; });
  for (const auto& [name, n] : needed) missing += !n.provided();
  const std::string title = std::filesystem::path(options.model).filename();
  if (!options.svg.empty()) DrawSvg(model, title, options.svg);
  if (!options.html.empty()) DrawHtml(model, title, options.html);
  if (options.json) {
    std::cout << ToText(AsJson(model, needed, options, nodes)) << "\n";
    return missing ? kNotProvided : kOk;
  }
  PrintHead(model, options, nodes);
  if (needed.empty()) {
    std::cout << "Every operator is ONNX's own.\n";
    return kOk;
  }
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, n] : needed) {
    rows.push_back({name, std::to_string(n.count), n.provided() ? Green(ProviderText(n)) : Red(ProviderText(n)),
                    AttributesText(n)});
  }
  std::cout << Table({"operator", "count", "provided by", "attributes"}, rows);
  if (options.verbose) {
    std::cout << "\n";
    ForEachNode(model, [&](const onnx::NodeProto& node) {
      if (IsStandard(node)) return;
      std::vector<std::string> attributes;
      for (const auto& a : node.attribute()) attributes.push_back(a.name() + "=" + AttributeText(a));
      std::cout << "  " << (node.name().empty() ? "(unnamed)" : node.name()) << "  " << TypeOf(node) << "("
                << Join({node.input().begin(), node.input().end()}, ", ") << ") -> "
                << Join({node.output().begin(), node.output().end()}, ", ") << "  " << Join(attributes, " ") << "\n";
    });
  }
  if (missing == 0) return kOk;
  std::cout << "\n";
  for (const auto& [name, n] : needed) {
    if (!n.provided()) std::cout << "  " << Red(name) << ": " << Advice(name, n) << "\n";
  }
  return kNotProvided;
}

}  // namespace polyop::cli
