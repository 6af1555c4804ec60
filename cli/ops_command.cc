// SPDX-License-Identifier: Apache-2.0
// polyop ops: prints the catalogue of operators.
#include <algorithm>
#include <iostream>

#include "cli/base/catalogue.h"
#include "cli/base/failure.h"
#include "cli/base/text.h"
#include "cli/commands.h"
#include "cli/json.h"

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
  const std::string near = Nearest(name, names);
  throw Failure(kUsage, "polyop has no operator '" + name + "'",
                near.empty() ? "`polyop ops` lists all" : "did you mean '" + near + "'? `polyop ops` lists all");
}

Json AsJson(const OperatorInfo& op) {
  Json entry = {{"name", op.name},
                {"package", op.package},
                {"summary", op.summary},
                {"types", Join(op.types, ", ")},
                {"runtimes", op.runtimes}};
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
  if (options.json) {
    Json report = Json::array();
    if (!options.name.empty()) {
      report = AsJson(Find(options.name));
    } else {
      for (const OperatorInfo& op : Operators()) report.push_back(AsJson(op));
    }
    std::cout << ToText(report) << "\n";
  } else if (options.name.empty()) {
    std::cout << CatalogueText(options.markdown);
  } else {
    std::cout << PageText(Find(options.name), options.markdown);
  }
  return kOk;
}

}  // namespace polyop::cli
