// `polyop portable`: functions of standard operators for a model's nodes. Formulas are Python, so
// `python3 -m polyop.portable` makes the file.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>

#include "cli/base/failure.h"
#include "cli/base/file.h"
#include "cli/base/model.h"
#include "cli/base/process.h"
#include "cli/base/text.h"
#include "cli/commands.h"
#include "cli/json.h"

namespace polyop::cli {
namespace {

namespace fs = std::filesystem;

// Nodes that --only may name.
std::vector<std::string> CustomNodes(const onnx::ModelProto& model) {
  std::map<std::string, int> names;
  ForEachNode(model, [&](const onnx::NodeProto& node) {
    if (!IsStandard(node)) ++names[TypeOf(node)];
  });
  std::vector<std::string> list;
  for (const auto& [name, count] : names) list.push_back(name);
  return list;
}

void CheckOnly(const PortableOptions& options, const onnx::ModelProto& model) {
  const std::vector<std::string> names = CustomNodes(model);
  for (const std::string& wanted : options.only) {
    if (std::find(names.begin(), names.end(), wanted) != names.end()) continue;
    const std::string near = Nearest(wanted, names);
    throw Failure(kUsage, "--only " + wanted + ": " + options.model + " has no such node",
                  near.empty() ? "it has " + Join(names, ", ") : "did you mean '" + near + "'?");
  }
}

// A line for all nodes of one name: they share their function.
void PrintReport(const PortableOptions& options, const Json& report) {
  std::map<std::string, std::pair<int, Json>> by_name;
  for (const Json& record : report.at("nodes")) {
    auto& [count, first] = by_name[record.at("name")];
    if (count++ == 0) first = record;
  }
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, entry] : by_name) {
    const bool given = entry.second.at("given");
    const std::string why = entry.second.at("why");
    rows.push_back({name, std::to_string(entry.first), given ? Green("yes") : Red("no"), why.empty() ? "-" : why});
  }
  if (rows.empty()) {
    std::cout << "No node is polyop's: every operator is ONNX's own, or nobody's.\n";
  } else {
    std::cout << Table({"operator", "count", options.inlined ? "replaced" : "function", "note"}, rows);
  }
  const int before = report.at("opset_before"), after = report.at("opset");
  if (before != after) std::cout << "  opset " << before << " became " << after << ", which functions need\n";
  std::cout << Green("made") << " " << options.output << "\n";
}

}  // namespace

int Portable(const PortableOptions& options) {
  CheckOnly(options, LoadModel(options.model));
  const TemporaryFolder folder;
  std::vector<std::string> words = {"python3",
                                    "-m",
                                    "polyop.portable",
                                    fs::absolute(options.model),
                                    "-o",
                                    fs::absolute(options.output),
                                    "--report",
                                    folder.File("report.json")};
  if (options.inlined) words.emplace_back("--inline");
  for (const std::string& name : options.only) words.insert(words.end(), {"--only", name});
  RunProgram(words, "python3 needs polyop, onnx, onnx_ir and torch; its message stands above",
             "making functions needs a python3 on the PATH that has polyop, onnx, onnx_ir and torch");
  const Json report = ParseJson(ReadFile(folder.File("report.json")));
  if (report.contains("error")) throw Failure(kFailed, options.model + ": " + report.at("error").get<std::string>());
  if (options.json) {
    std::cout << ToText(report) << "\n";
  } else {
    PrintReport(options, report);
  }
  for (const Json& record : report.at("nodes")) {
    if (!record.at("given").get<bool>()) return kNotProvided;
  }
  return kOk;
}

}  // namespace polyop::cli
