// SPDX-License-Identifier: Apache-2.0
// polyop inspect: describes a model and the operators that it needs, and checks it, without running it.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>

#include "cli/base/failure.h"
#include "cli/base/file.h"
#include "cli/base/model.h"
#include "cli/base/model_check.h"
#include "cli/base/operators.h"
#include "cli/base/process.h"
#include "cli/base/text.h"
#include "cli/commands.h"
#include "cli/drawing.h"
#include "cli/json.h"
#include "platform/program.h"

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

// The nodes that one operator of PyTorch was exported to.
struct Origin {
  bool by_polyop = false;  // polyop translated it
  int count = 0;
  std::map<std::string, int> types;
};

// Returns the operator of PyTorch that a node was exported from, such as "aten::add.Tensor", or "". PyTorch's exporter
// writes the call into the node's metadata, for a translation of polyop that of an operator of the translation.
std::string OriginOf(const onnx::NodeProto& node, bool* by_polyop) {
  static const std::string kTarget = "target=torch.ops.";
  std::string call;
  for (const auto& entry : node.metadata_props()) {
    if (entry.key() == "polyop.pytorch_operator") {
      *by_polyop = true;
      return entry.value();
    }
    if (entry.key() == "pkg.torch.onnx.fx_node") call = entry.value();
  }
  const size_t start = call.find(kTarget);
  if (start == std::string::npos) return "";
  std::string name = call.substr(start + kTarget.size());
  name = name.substr(0, name.find_first_of("](, "));
  const size_t dot = name.find('.');
  if (dot != std::string::npos) name.replace(dot, 1, "::");
  static const std::string kDefault = ".default";
  if (name.ends_with(kDefault)) name.resize(name.size() - kDefault.size());
  return name;
}

std::map<std::string, Origin> FindOrigins(const onnx::ModelProto& model) {
  std::map<std::string, Origin> found;
  ForEachNode(model, [&](const onnx::NodeProto& node) {
    bool by_polyop = false;
    const std::string name = OriginOf(node, &by_polyop);
    if (name.empty()) return;
    Origin& origin = found[name];
    origin.by_polyop |= by_polyop;
    ++origin.count;
    ++origin.types[TypeOf(node)];
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

// Types shorter than this occur in many words.
constexpr size_t kMinContained = 5;

bool Contains(const std::string& text, const std::string& part) {
  return part.size() >= kMinContained && text.find(part) != std::string::npos;
}

// Returns the label of the node whose type is the most similar, preferably one of the same domain; "" if none is. A
// type is similar if it is a misspelling, or if one contains the other, such as "RoiAlignPlus".
std::string NearestNode(const Needed& needed) {
  std::vector<std::string> types;
  std::string longest;
  for (const OperatorInfo& op : Operators()) {
    for (const NodeInfo& node : op.nodes) {
      types.push_back(node.type);
      const bool contains = Contains(needed.op_type, node.type) || Contains(node.type, needed.op_type);
      if (contains && node.type.size() > longest.size()) longest = node.type;
    }
  }
  std::string near = Nearest(needed.op_type, types);
  if (near.empty()) near = longest;
  std::string label;
  for (const OperatorInfo& op : Operators()) {
    for (const NodeInfo& node : op.nodes) {
      if (node.type == near && (label.empty() || node.domain == needed.domain)) label = node.label;
    }
  }
  return label;
}

// The likeliest cause is the right type in another domain, then a misspelling.
std::string Advice(const Needed& needed) {
  for (const OperatorInfo& op : Operators()) {
    for (const NodeInfo& node : op.nodes) {
      if (node.type != needed.op_type) continue;
      return op.package + " has it as " + node.label + ": rename the node's domain, or register it under " +
             needed.domain;
    }
  }
  const std::string near = NearestNode(needed);
  const std::string other = "run with --ops LIB, or write it: `polyop new my_ops --project`";
  return near.empty() ? other : "the nearest is " + near + "; otherwise " + other;
}

int64_t ElementCount(const onnx::TensorProto& tensor) {
  int64_t count = 1;
  for (int64_t d : tensor.dims()) {
    if (d < 0 || __builtin_mul_overflow(count, d, &count)) return 0;
  }
  return count;
}

// What a session would report, without running the model.
struct Verdict {
  std::vector<Fault> faults;
  std::string unchecked;  // why no session was created, or ""

  ExitCode code() const {
    const auto not_provided = [](const Fault& fault) { return fault.code == kNotProvided; };
    if (std::any_of(faults.begin(), faults.end(), not_provided)) return kNotProvided;
    return faults.empty() ? kOk : kBadFile;
  }
};

// Returns the next step after a failure to create a session.
std::string SessionHint(const Failure& failure, const std::map<std::string, Needed>& needed) {
  if (failure.code() == kNotProvided) {
    // NVIDIA's libspconv reads files in another format, whose nodes lack what ONNX Runtime or polyop would need.
    if (std::string_view(failure.what()).find("SparseConvolution") != std::string_view::npos) {
      return "SparseConvolution is a node for NVIDIA's libspconv alone: export the PyTorch model with polyop in place "
             "of spconv (docs/compat.md), which writes autoware::ImplicitGemm";
    }
    return "ONNX Runtime has no such operator at the model's opset: correct its name, or export to another opset";
  }
  for (const auto& [name, n] : needed) {
    const bool is_named = std::string_view(failure.what()).find("(" + n.op_type + ")") != std::string_view::npos;
    if (n.op != nullptr && is_named) return "`polyop ops " + n.op->FullName() + "` lists the types that it takes";
  }
  return "";
}

// Creates a session only if the file alone shows no fault: ONNX Runtime reports the first one only, in other words.
Verdict Check(const onnx::ModelProto& model, const std::map<std::string, Needed>& needed,
              const InspectOptions& options) {
  Verdict verdict;
  for (const auto& [name, n] : needed) {
    if (!n.provided() && options.session.libraries.empty()) {
      verdict.faults.push_back({kNotProvided, "nobody provides " + name, Advice(n)});
    }
  }
  for (auto& faults : {AttributeFaults(model), ExternalDataFaults(model, options.model)}) {
    verdict.faults.insert(verdict.faults.end(), faults.begin(), faults.end());
  }
  if (!verdict.faults.empty()) return verdict;
  SessionOptions session = options.session;
  session.optimize = false;
  session.threads = 1;
  try {
    const Session loaded(options.model, session);
  } catch (const Failure& failure) {
    if (failure.code() == kNoRuntime) {
      verdict.unchecked = "ONNX Runtime was not found (pip install onnxruntime)";
    } else if (failure.code() != kFailed) {  // kFailed: a session loads it, but not all of its types are tensors
      verdict.faults.push_back({failure.code(), failure.what(), SessionHint(failure, needed)});
    }
  }
  return verdict;
}

Json AsJson(const onnx::ModelProto& model, const std::map<std::string, Needed>& needed, const Verdict& verdict,
            const InspectOptions& options, int nodes) {
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
    if (!n.provided()) entry["advice"] = Advice(n);
    report["operators"].push_back(entry);
  }
  report["pytorch_operators"] = Json::array();
  for (const auto& [name, origin] : FindOrigins(model)) {
    report["pytorch_operators"].push_back(
        {{"name", name}, {"translated_by_polyop", origin.by_polyop}, {"nodes", origin.types}});
  }
  report["faults"] = Json::array();
  for (const Fault& fault : verdict.faults) {
    report["faults"].push_back({{"message", fault.message}, {"hint", fault.hint}, {"exit_code", fault.code}});
  }
  report["session_checked"] = verdict.faults.empty() && verdict.unchecked.empty();
  return report;
}

// Returns "1 node", "2 nodes" or "25.6 million nodes".
std::string CountText(double count, const std::string& noun) {
  constexpr double kMillion = 1e6;
  const std::string number =
      count < kMillion ? NumberText(count, "%.0f") : NumberText(count / kMillion, "%.1f") + " million";
  return number + " " + noun + (count == 1 ? "" : "s");
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
                    : Escaped(", produced by " + model.producer_name() + " " + model.producer_version()))
            << "\n"
            << "  " << CountText(nodes, "node")
            << (functions ? Concat(", those of ", functions, functions > 1 ? " functions" : " function", " among them")
                          : "")
            << ", " << CountText(model.graph().initializer_size(), "initializer")
            << (elements > 0 ? " with " + CountText(elements, "element") : "") << "\n\n";
  std::vector<std::vector<std::string>> rows;
  for (const auto& input : model.graph().input()) {
    if (!initializers.contains(input.name())) rows.push_back({"in", input.name(), TypeText(input.type())});
  }
  for (const auto& output : model.graph().output()) rows.push_back({"out", output.name(), TypeText(output.type())});
  std::cout << Table({"", "tensor", "type"}, rows) << "\n";
}

void PrintOperators(const onnx::ModelProto& model, const std::map<std::string, Needed>& needed, bool verbose) {
  if (needed.empty()) return;
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, n] : needed) {
    rows.push_back({name, std::to_string(n.count), n.provided() ? Green(ProviderText(n)) : Red(ProviderText(n)),
                    AttributesText(n)});
  }
  std::cout << Table({"operator", "count", "provided by", "attributes"}, rows);
  if (!verbose) return;
  std::cout << "\n";
  ForEachNode(model, [&](const onnx::NodeProto& node) {
    if (IsStandard(node)) return;
    std::vector<std::string> attributes;
    for (const auto& a : node.attribute()) attributes.push_back(a.name() + "=" + AttributeText(a));
    const std::string text =
        Concat(node.name().empty() ? "(unnamed)" : node.name(), "  ", TypeOf(node), "(",
               Join({node.input().begin(), node.input().end()}, ", "), ") -> ",
               Join({node.output().begin(), node.output().end()}, ", "), "  ", Join(attributes, " "));
    std::cout << "  " << Escaped(text) << "\n";
  });
}

// Prints the operators of PyTorch that polyop translated; all of them if verbose.
void PrintOrigins(const onnx::ModelProto& model, bool verbose) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, origin] : FindOrigins(model)) {
    if (!verbose && !origin.by_polyop) continue;
    std::vector<std::string> types;
    for (const auto& [type, count] : origin.types) types.push_back(Concat(type, " x", count));
    rows.push_back({name, origin.by_polyop ? "polyop" : "PyTorch", std::to_string(origin.count), Join(types, ", ")});
  }
  if (!rows.empty()) std::cout << "\n" << Table({"PyTorch operator", "exported by", "nodes", "types"}, rows);
}

void PrintVerdict(const Verdict& verdict, bool only_standard) {
  if (only_standard && verdict.faults.empty()) std::cout << "Every operator is ONNX's own.\n";
  if (!verdict.unchecked.empty()) {
    std::cout << "\nTypes, shapes and opsets are not checked: " << verdict.unchecked << ".\n";
  }
  if (verdict.faults.empty()) return;
  if (!only_standard) std::cout << "\n";
  for (const Fault& fault : verdict.faults) {
    std::cout << "  " << Red(fault.message) << "\n";
    if (!fault.hint.empty()) std::cout << "    hint: " << fault.hint << "\n";
  }
}

// Draws the graph. Says what it wrote on stderr, because stdout may be JSON.
void Draw(const onnx::ModelProto& model, const InspectOptions& options) {
  const std::string title = std::filesystem::path(options.model).filename().string();
  const auto write = [&](const std::string& path, auto draw) {
    if (path.empty()) return;
    draw(model, title, path);
    std::cerr << "Wrote " << path << "\n";
    if (!options.open) return;
    const std::vector<std::string> words = OpeningCommand(std::filesystem::absolute(path).string());
    if (ExitStatusOf(words) != 0) {
      throw Failure(kFailed, "'" + path + "' was written, but " + words.front() + " does not open it",
                    "open the file in a browser");
    }
  };
  write(options.svg, DrawSvg);
  write(options.html, DrawHtml);
}

}  // namespace

int Inspect(const InspectOptions& options) {
  for (const std::string& path : {options.svg, options.html}) {
    if (!path.empty()) PrepareOutput(path);
  }
  if (options.open && options.svg.empty() && options.html.empty()) {
    throw Failure(kUsage, "--open: expected --html FILE or --svg FILE, got neither");
  }
  const onnx::ModelProto model = LoadModel(options.model);
  const std::map<std::string, Needed> needed = FindNeeded(model);
  int nodes = 0;
  ForEachNode(model, [&](const onnx::NodeProto&) { ++nodes; });
  Draw(model, options);
  const Verdict verdict = Check(model, needed, options);
  if (options.json) {
    std::cout << ToText(AsJson(model, needed, verdict, options, nodes)) << "\n";
    return verdict.code();
  }
  PrintHead(model, options, nodes);
  PrintOperators(model, needed, options.verbose);
  PrintOrigins(model, options.verbose);
  PrintVerdict(verdict, needed.empty());
  return verdict.code();
}

}  // namespace polyop::cli
