#include "cli/base/catalogue.h"

#include <algorithm>

#include "cli/base/text.h"

namespace polyop::cli {
namespace {

std::vector<std::string> NodesOf(const Op& op) {
  std::vector<std::string> names;
  for (const NodeName& node : op.nodes) names.emplace_back(node.label());
  return names;
}

std::vector<std::vector<std::string>> AttributeRows(const Op& op, bool markdown) {
  const Params defaults = op.DefaultParams();
  std::vector<std::vector<std::string>> rows;
  for (const AttrInfo& info : op.attributes) {
    std::vector<std::string> aliases;
    for (const char* alias : info.spec.aliases) {
      if (alias != nullptr) aliases.emplace_back(alias);
    }
    const std::string meaning =
        std::string(info.spec.doc) + (aliases.empty() ? "" : " (also written " + Join(aliases, ", ") + ")");
    const std::string name = markdown ? "`" + std::string(info.spec.name) + "`" : info.spec.name;
    const std::string range = RangeText(info.spec);
    rows.push_back({name, std::string(NameOf(info.type)),
                    info.spec.required ? "required" : ToString(info.get(info.spec, defaults.get())),
                    range.empty() ? "any" : range, meaning});
  }
  return rows;
}

// What a node name implies: preset and renamed attributes, the standard operator that it is equal to.
std::string NodeNote(const NodeName& node) {
  std::vector<std::string> parts;
  for (const auto& p : node.presets) {
    if (p.first != nullptr) parts.push_back(std::string(p.first) + " = " + p.second);
  }
  for (const auto& p : node.renames) {
    if (p.first != nullptr) parts.push_back(std::string(p.first) + " is written " + p.second);
  }
  for (const auto& p : node.spellings) {
    if (p.first != nullptr) parts.push_back(std::string(p.first) + " is written \"" + p.second + "\"");
  }
  if (node.standards[0].since != 0) parts.push_back("equal to ONNX's " + std::string(node.op_type()));
  return parts.empty() ? "" : " (" + Join(parts, "; ") + ")";
}

// Breaks a paragraph at 96 columns and indents it.
std::string Wrapped(const std::string& text) {
  std::string result, line;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (line.size() + word.size() + 1 > 96) {
      result += "  " + line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return result + "  " + line + "\n";
}

}  // namespace

std::vector<std::string> RuntimesOf(const Op& op) {
  std::vector<std::string> runtimes;
  for (const auto& [device, name] : {std::pair{Device::kCpu, "ONNX Runtime CPU"},
                                     {Device::kCpu, "PyTorch CPU"},
                                     {Device::kCpu, "OpenVINO CPU"},
                                     {Device::kCuda, "ONNX Runtime CUDA"},
                                     {Device::kCuda, "PyTorch CUDA"},
                                     {Device::kCuda, "TensorRT"}}) {
    const bool has =
        std::any_of(op.kernels.begin(), op.kernels.end(), [d = device](const Kernel& k) { return k.device == d; });
    if (has) runtimes.emplace_back(name);
  }
  return runtimes;
}

std::string TypesOf(const Op& op) {
  std::vector<std::string> types;
  for (const Kernel& kernel : op.kernels) {
    if (kernel.device != Device::kCpu) continue;
    const Signature& s = *op.signatures[kernel.signature].signature;
    int i = 0;
    while (i + 1 < s.num_inputs() && s.input(i).rank == 0 && !s.input(i).has_rest) ++i;
    const std::string name(NameOf(kernel.inputs[static_cast<size_t>(i)]));
    if (std::find(types.begin(), types.end(), name) == types.end()) types.push_back(name);
  }
  return Join(types, ", ");
}

// What is written to files does not depend on what this program was built for.
std::string CatalogueText(bool markdown) {
  std::vector<std::vector<std::string>> rows;
  for (const Op* op : AllOps()) {
    std::vector<std::string> nodes = NodesOf(*op);
    if (markdown) {
      for (std::string& node : nodes) node = Concat("`", node, "`");
      rows.push_back({std::string(op->name), Join(nodes, "<br>"), TypesOf(*op), op->doc.summary});
      continue;
    }
    for (const std::string& node : nodes) {  // a line each
      const bool first = &node == &nodes.front();
      rows.push_back({first ? std::string(op->name) : "", node, first ? TypesOf(*op) : "",
                      first ? Join(RuntimesOf(*op), ", ") : ""});
    }
  }
  if (markdown) return MarkdownTable({"operator", "node names", "types", "what it does"}, rows);
  std::vector<std::string> without;
  for (const Op* op : AllOps()) {
    if (*op->doc.not_portable != '\0') without.emplace_back(op->name);
  }
  const std::string note = without.empty() ? ""
                                           : "\n  `polyop portable` has no function for " + Join(without, ", ") +
                                                 "; `polyop ops NAME` says why.\n";
  return Table({"operator", "node names", "types", "runs on"}, rows) + note;
}

std::string PageText(const Op& op, bool markdown) {
  const auto section = [&](const char* title, const std::string& body) {
    if (body.empty()) return std::string();
    return markdown ? "\n## " + std::string(title) + "\n\n" + body : "\n" + Bold(title) + "\n" + body;
  };
  const auto paragraph = [&](const char* title, const char* text) {
    if (*text == '\0') return std::string();
    return section(title, markdown ? std::string(text) + "\n" : Wrapped(text));
  };
  std::string page = markdown ? "# " + std::string(op.name) + "\n\n" + op.doc.summary + "\n"
                              : Bold(std::string(op.name)) + ": " + op.doc.summary + "\n";
  std::string signatures;
  for (const OpSignature& s : op.signatures)
    signatures += (markdown ? "" : "  ") + std::string(s.signature->text()) + "\n";
  page += section("Signature", markdown ? "```\n" + signatures + "```\n" : signatures);
  const std::vector<std::string> columns = {"attribute", "type", "default", "range", "meaning"};
  const auto rows = AttributeRows(op, markdown);
  page += section("Attributes", rows.empty() ? (markdown ? "none\n" : "  none\n")
                                : markdown   ? MarkdownTable(columns, rows)
                                             : Table(columns, rows));
  std::string nodes;
  for (const NodeName& node : op.nodes) {
    nodes +=
        (markdown ? "- `" + std::string(node.label()) + "`" : "  " + std::string(node.label())) + NodeNote(node) + "\n";
  }
  page += section("Node names", nodes);
  page += markdown ? section("Types", TypesOf(op) + "\n")
                   : section("Runs on", "  " + Join(RuntimesOf(op), ", ") + ", in " + TypesOf(op) + "\n");
  page += paragraph("Semantics", op.doc.semantics);
  page += paragraph("Source", op.doc.source);
  page += paragraph("Differences", op.doc.differences);
  page += paragraph("No function in portable files", op.doc.not_portable);
  return page;
}

}  // namespace polyop::cli
