// SPDX-License-Identifier: Apache-2.0
// polyop ops: prints the catalogue of operators.
#include <algorithm>
#include <iostream>
#include <iterator>
#include <sstream>

#include "cli/base/catalogue.h"
#include "cli/base/failure.h"
#include "cli/base/text.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "platform/program.h"

namespace polyop::cli {
namespace {

// Finds an operator by its folder, its name in PyTorch, "domain::Type", or the type alone.
const OperatorInfo& Find(const std::string& name) {
  std::vector<std::string> names;
  for (const OperatorInfo& op : Operators()) {
    names.insert(names.end(), {op.name, op.FullName()});
    for (const NodeInfo& node : op.nodes) {
      if (name == node.domain + "::" + node.type) return op;
      names.insert(names.end(), {node.label, node.type});
    }
    if (std::find(names.begin(), names.end(), name) != names.end()) return op;
  }
  const auto begins = [&](const std::string& known) { return !name.empty() && known.starts_with(name); };
  const auto longer = std::find_if(names.begin(), names.end(), begins);
  const std::string near = longer != names.end() ? *longer : Nearest(name, names);
  throw Failure(kUsage, "polyop has no operator '" + name + "'",
                near.empty() ? "`polyop ops` lists all" : "did you mean '" + near + "'? `polyop ops` lists all");
}

// Returns the operators that have all words of `search` in their names or descriptions, in upper or lower case.
OperatorList Chosen(const std::string& search) {
  std::istringstream stream(Lower(search));
  const std::vector<std::string> words{std::istream_iterator<std::string>(stream), {}};
  OperatorList chosen;
  for (const OperatorInfo& op : Operators()) {
    std::string text = Join({op.FullName(), op.room, op.summary, op.semantics, op.source}, " ");
    for (const NodeInfo& node : op.nodes) text += " " + node.label;
    text = Lower(text);
    const auto has = [&](const std::string& word) { return text.find(word) != std::string::npos; };
    if (std::all_of(words.begin(), words.end(), has)) chosen.push_back(&op);
  }
  if (chosen.empty()) throw Failure(kUsage, "no operator has '" + search + "'", "`polyop ops` lists all");
  return chosen;
}

Json AsJson(const OperatorInfo& op) {
  Json entry = {{"name", op.name},       {"package", op.package},         {"room", op.room},
                {"summary", op.summary}, {"types", Join(op.types, ", ")}, {"runtimes", op.runtimes}};
  for (const NodeInfo& node : op.nodes) entry["nodes"].push_back(node.label);
  entry["signatures"] = op.signatures;
  entry["attributes"] = Json::array();
  for (const AttributeInfo& info : op.attributes) {
    entry["attributes"].push_back({{"name", info.name},
                                   {"type", info.type},
                                   {"default", info.value},
                                   {"required", info.required},
                                   {"range", info.range},
                                   {"meaning", info.meaning}});
  }
  entry["gradient"] = nullptr;
  if (op.gradient) entry["gradient"] = {{"inputs", op.gradient->inputs}, {"kernels", op.gradient->kernels}};
  entry["semantics"] = op.semantics;
  entry["source"] = op.source;
  entry["differences"] = op.differences;
  entry["not_portable"] = op.not_portable;
  return entry;
}

}  // namespace

int Ops(const OpsOptions& options) {
  if (!options.name.empty() && (options.all || !options.search.empty())) {
    throw Failure(kUsage, "--long and --search are for lists, not for the operator '" + options.name + "'");
  }
  if (options.json) {
    Json report = Json::array();
    if (!options.name.empty()) {
      report = AsJson(Find(options.name));
    } else {
      for (const OperatorInfo* op : Chosen(options.search)) report.push_back(AsJson(*op));
    }
    std::cout << ToText(report) << "\n";
  } else if (options.name.empty()) {
    const OperatorList chosen = Chosen(options.search);
    const bool table = options.all || options.markdown;
    std::cout << (table ? CatalogueText(chosen, options.markdown) : ListText(chosen, TerminalColumns()));
  } else {
    std::cout << PageText(Find(options.name), options.markdown);
  }
  return kOk;
}

}  // namespace polyop::cli
