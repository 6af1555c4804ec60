// SPDX-License-Identifier: Apache-2.0
#include "cli/base/catalogue.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "cli/base/text.h"
#include "core/status.h"

namespace polyop::cli {
namespace {

// Returns a name, and the condition under which a node of that name resolves to the operator.
std::string NodeText(const NodeInfo& node, bool markdown) {
  return (markdown ? "`" + node.label + "`" : node.label) + (node.when ? " " + node.when->Text(markdown) : "");
}

// Returns, for a name that operators share, which of its nodes resolve to the others.
std::string OthersText(const OperatorInfo& op, const NodeInfo& node, bool markdown) {
  std::string text;
  for (const NodeCandidate& other : FindCandidates(node.domain, node.type)) {
    if (other.op->package != op.package || other.op->name == op.name || !other.node->when) continue;
    text += "; " + other.node->when->Text(markdown) + " it is " + other.op->name + "'s";
  }
  return text;
}

std::vector<std::vector<std::string>> AttributeRows(const OperatorInfo& op, bool markdown) {
  std::vector<std::vector<std::string>> rows;
  for (const AttributeInfo& info : op.attributes) {
    const std::string meaning =
        info.meaning + (info.aliases.empty() ? "" : " (also written " + Join(info.aliases, ", ") + ")");
    rows.push_back({markdown ? "`" + info.name + "`" : info.name, info.type, info.required ? "required" : info.value,
                    info.range.empty() ? "any" : info.range, meaning});
  }
  return rows;
}

// Returns what the table says of an operator's gradients.
std::string GradientCell(const OperatorInfo& op) {
  if (!op.gradient) return "none";
  return op.gradient->kernels.empty() ? "formula" : "kernel (" + Join(op.gradient->kernels, ", ") + ")";
}

// Returns a sentence about an operator's gradients.
std::string GradientText(const OperatorInfo& op, bool markdown) {
  if (!op.gradient) return markdown ? "" : "none";
  const std::string quote = markdown ? "`" : "";
  const std::string formula = markdown ? "the [formula](../training.md#what-computes-the-gradients)" : "the formula";
  const std::string kernel = Concat("the kernel ", quote, op.package, "::", op.name, "_backward", quote, " on the ",
                                    Join(op.gradient->kernels, " and on "));
  const std::string how = op.gradient->kernels.empty() ? formula : kernel + ", else " + formula;
  return Concat("In PyTorch, of ", quote, Join(op.gradient->inputs, quote + ", " + quote), quote, ": by ", how, ".");
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

std::string ListText(const OperatorList& operators, int columns) {
  std::map<std::string, OperatorList> rooms;
  size_t widest = 0;
  for (const OperatorInfo* op : operators) {
    rooms[op->room.empty() ? op->package : op->room].push_back(op);
    widest = std::max(widest, op->FullName().size());
  }
  std::string text;
  for (const auto& [room, members] : rooms) {
    text += (text.empty() ? "" : "\n") + Bold(room) + "\n";
    for (const OperatorInfo* op : members) {
      const std::string name = op->FullName();
      const std::string line = "  " + name + std::string(widest - name.size() + 2, ' ') + op->summary;
      text += Shortened(line, columns) + "\n";
    }
  }
  return text +
         "\n`polyop ops NAME` explains an operator; --search WORDS chooses, --long shows node names and types.\n";
}

// Markdown, which is written to files, depends neither on the devices of this build nor on installed packages.
std::string CatalogueText(const OperatorList& operators, bool markdown) {
  std::vector<std::vector<std::string>> rows;
  for (const OperatorInfo* each : operators) {
    const OperatorInfo& op = *each;
    std::vector<std::string> nodes;
    for (const NodeInfo& node : op.nodes) nodes.push_back(NodeText(node, markdown));
    if (markdown) {
      if (!op.own()) continue;
      rows.push_back({op.name, Join(nodes, "<br>"), Join(op.types, ", "), op.summary});
      continue;
    }
    for (const std::string& node : nodes) {  // one line for each name
      const bool first = &node == &nodes.front();
      rows.push_back({first ? op.FullName() : "", node, first ? Join(op.types, ", ") : "",
                      first ? Join(op.runtimes, ", ") : "", first ? GradientCell(op) : ""});
    }
  }
  if (markdown) return MarkdownTable({"operator", "node names", "types", "what it does"}, rows);
  std::vector<std::string> without;
  for (const OperatorInfo* op : operators) {
    if (!op->not_portable.empty()) without.push_back(op->FullName());
  }
  const std::string note = without.empty() ? ""
                                           : "\n  `polyop portable` has no function for " + Join(without, ", ") +
                                                 "; `polyop ops NAME` says why.\n";
  return Table({"operator", "node names", "types", "runs on", "gradient"}, rows) + note;
}

std::string PageText(const OperatorInfo& op, bool markdown) {
  const auto section = [&](const char* title, const std::string& body) {
    if (body.empty()) return std::string();
    return markdown ? "\n## " + std::string(title) + "\n\n" + body : "\n" + Bold(title) + "\n" + body;
  };
  const auto paragraph = [&](const char* title, const std::string& text) {
    if (text.empty()) return std::string();
    return section(title, markdown ? text + "\n" : Wrapped(text));
  };
  std::string page =
      markdown ? "# " + op.name + "\n\n" + op.summary + "\n" : Bold(op.FullName()) + ": " + op.summary + "\n";
  std::string signatures;
  for (const std::string& signature : op.signatures) signatures += (markdown ? "" : "  ") + signature + "\n";
  page += section("Signature", markdown ? "```\n" + signatures + "```\n" : signatures);
  const std::vector<std::string> columns = {"attribute", "type", "default", "range", "meaning"};
  const auto rows = AttributeRows(op, markdown);
  page += section("Attributes", rows.empty() ? (markdown ? "none\n" : "  none\n")
                                : markdown   ? MarkdownTable(columns, rows)
                                             : Table(columns, rows));
  std::string nodes;
  for (const NodeInfo& node : op.nodes) {
    nodes += (markdown ? "- " : "  ") + NodeText(node, markdown) + node.note + OthersText(op, node, markdown) + "\n";
  }
  page += section("Node names", nodes);
  const std::string types = Join(op.types, ", ");
  page += markdown ? section("Types", types + "\n")
                   : section("Runs on", "  " + Join(op.runtimes, ", ") + ", in " + types + "\n");
  page += paragraph("Semantics", op.semantics);
  page += paragraph("Source", op.source);
  page += paragraph("Differences", op.differences);
  page += paragraph("No function in portable files", op.not_portable);
  page += paragraph("Gradients", GradientText(op, markdown));
  return page;
}

}  // namespace polyop::cli
