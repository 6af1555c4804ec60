// polyop ops: the catalogue of operators.
#include <iostream>

#include "cli/base/catalogue.h"
#include "cli/base/failure.h"
#include "cli/base/text.h"
#include "cli/commands.h"
#include "cli/json.h"

namespace polyop::cli {
namespace {

// By folder, by "domain::Type", or by type alone.
const Op& Find(const std::string& name) {
  std::vector<std::string> names;
  for (const Op* op : AllOps()) {
    if (op->name == name) return *op;
    names.emplace_back(op->name);
    for (const NodeName& node : op->nodes) {
      if (name == node.name || name == node.op_type()) return *op;
      names.emplace_back(node.label());
      names.emplace_back(node.op_type());
    }
  }
  const std::string near = Nearest(name, names);
  throw Failure(kUsage, "polyop has no operator '" + name + "'",
                near.empty() ? "`polyop ops` lists all" : "did you mean '" + near + "'? `polyop ops` lists all");
}

Json AsJson(const Op& op) {
  Json entry = {{"name", op.name}, {"summary", op.doc.summary}, {"types", TypesOf(op)}, {"runtimes", RuntimesOf(op)}};
  for (const NodeName& node : op.nodes) entry["nodes"].push_back(node.label());
  for (const OpSignature& s : op.signatures) entry["signatures"].push_back(s.signature->text());
  entry["attributes"] = Json::array();
  const Params defaults = op.DefaultParams();
  for (const AttrInfo& info : op.attributes) {
    entry["attributes"].push_back({{"name", info.spec.name},
                                   {"type", NameOf(info.type)},
                                   {"default", ToString(info.get(info.spec, defaults.get()))},
                                   {"required", info.spec.required},
                                   {"range", RangeText(info.spec)},
                                   {"meaning", info.spec.doc}});
  }
  entry["semantics"] = op.doc.semantics;
  entry["source"] = op.doc.source;
  entry["differences"] = op.doc.differences;
  entry["not_portable"] = op.doc.not_portable;
  return entry;
}

}  // namespace

int Ops(const OpsOptions& options) {
  if (options.json) {
    Json report = Json::array();
    if (!options.name.empty()) {
      report = AsJson(Find(options.name));
    } else {
      for (const Op* op : AllOps()) report.push_back(AsJson(*op));
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
