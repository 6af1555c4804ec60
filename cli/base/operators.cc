// SPDX-License-Identifier: Apache-2.0
#include "cli/base/operators.h"

#include <algorithm>
#include <filesystem>

#include "adapters/catalogue.h"
#include "adapters/resolve.h"
#include "cli/base/environments.h"
#include "cli/base/packages.h"
#include "cli/base/text.h"
#include "core/library.h"
#include "core/node_resolution.h"
#include "core/status.h"
#include "nlohmann/json.hpp"
#include "platform/library.h"

namespace polyop::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

AttributeInfo ReadAttribute(const Json& json) {
  return {.name = json.at("name"),
          .type = json.at("type"),
          .value = json.at("default_text"),
          .range = json.at("range"),
          .meaning = json.at("meaning"),
          .aliases = json.at("aliases"),
          .required = json.at("required")};
}

// The catalogue of an older SDK has no conditions.
std::optional<NodeInfo::Condition> ReadCondition(const Json& node) {
  const Json when = node.value("when", Json());
  if (when.is_null()) return std::nullopt;
  NodeInfo::Condition condition;
  const std::string name = when.at("attribute");
  condition.attribute = node.at("renames").value(name, name);
  if (!when.at("least").is_null()) condition.least = when.at("least").get<int64_t>();
  return condition;
}

NodeInfo ReadNode(const Json& json) {
  NodeInfo node;
  const std::string name = json.at("name");
  const size_t colons = name.find("::");
  node.domain = name.substr(0, colons);
  node.type = name.substr(colons + 2);
  node.label = node.domain.empty() ? node.type : name;
  node.is_plugin = json.value("plugin", false);  // the catalogue of an older SDK lacks it
  node.when = ReadCondition(json);
  node.renames = json.at("renames").get<std::map<std::string, std::string>>();
  std::vector<std::string> parts;
  for (const auto& [attribute, value] : json.at("presets").items()) {
    parts.push_back(attribute + " = " + value.get<std::string>());
  }
  for (const auto& [attribute, other] : json.at("renames").items()) {
    parts.push_back(attribute + " is written " + other.get<std::string>());
  }
  for (const auto& [choice, other] : json.at("spellings").items()) {
    parts.push_back(choice + " is written \"" + other.get<std::string>() + "\"");
  }
  if (!json.at("standards").empty()) parts.push_back("equal to ONNX's " + node.type);
  node.note = parts.empty() ? "" : " (" + Join(parts, "; ") + ")";
  return node;
}

// Returns the folders in which polyop's libraries may be: of the program's installation, of Python packages, and of a
// checkout.
std::vector<fs::path> OwnLibraryFolders() {
  std::vector<fs::path> folders = {InstalledPrefix() / "lib"};
  for (const fs::path& site : SitePackages()) folders.push_back(site / "polyop" / "lib");
  for (const fs::path& programs : CheckoutEnvironments()) {
    folders.push_back(programs.parent_path().parent_path() / "python" / "polyop" / "lib");
  }
  return folders;
}

// Returns the runtimes that have a library of the operators, "onnxruntime" or "torch". ONNX Runtime's is loaded
// already.
std::vector<std::string> InstalledRuntimes(const std::string& package, const std::vector<fs::path>& folders) {
  std::vector<std::string> installed = {"onnxruntime"};
  for (const char* runtime : {"torch", "openvino", "tensorrt"}) {
    const std::string file = LibraryFile(Concat(package, "_", runtime));
    std::error_code error;
    const auto has_file = [&](const fs::path& folder) { return fs::exists(folder / file, error); };
    if (std::any_of(folders.begin(), folders.end(), has_file)) installed.emplace_back(runtime);
  }
  return installed;
}

std::vector<std::string> RuntimesOf(const Json& devices, const std::vector<std::string>& installed) {
  struct Runtime {
    const char *device, *library, *text;
  };
  static constexpr Runtime kRuntimes[] = {
      {"cpu", "onnxruntime", "ONNX Runtime CPU"}, {"cpu", "torch", "PyTorch CPU"},
      {"cpu", "openvino", "OpenVINO CPU"},        {"cuda", "onnxruntime", "ONNX Runtime CUDA"},
      {"cuda", "torch", "PyTorch CUDA"},          {"cuda", "tensorrt", "TensorRT"},
  };
  std::vector<std::string> runtimes;
  for (const std::string device : devices) {
    for (const Runtime& runtime : kRuntimes) {
      const bool has = std::find(installed.begin(), installed.end(), runtime.library) != installed.end();
      if (device == runtime.device && has) runtimes.emplace_back(runtime.text);
    }
  }
  return runtimes;
}

// The catalogue of an older SDK has no gradients.
std::optional<GradientInfo> ReadGradient(const Json& op) {
  const Json json = op.value("gradient", Json());
  if (json.is_null()) return std::nullopt;
  GradientInfo gradient = {.inputs = json.at("inputs").get<std::vector<std::string>>(), .kernels = {}};
  for (const std::string device : json.at("kernels")) gradient.kernels.emplace_back(device == "cpu" ? "CPU" : "CUDA");
  return gradient;
}

void AddOperators(const std::string& package, const std::string& catalogue, const char* (*resolve_node)(const char*),
                  const std::vector<fs::path>& folders, std::vector<OperatorInfo>* all) {
  const Json operators = Json::parse(catalogue);
  if (operators.is_object()) {  // as adapters/catalogue.h states
    return Warn(Concat("the operators of '", package, "' are not loaded: ", operators.at("error").get<std::string>()));
  }
  const std::vector<std::string> installed = InstalledRuntimes(package, folders);
  for (const Json& json : operators) {
    OperatorInfo& op = all->emplace_back();
    op.package = package;
    op.resolve_node = resolve_node;
    op.name = json.at("name");
    op.room = json.value("room", "");  // the catalogue of an older SDK has none
    op.summary = json.at("summary");
    op.semantics = json.at("semantics");
    op.source = json.at("source");
    op.differences = json.at("differences");
    op.not_portable = json.at("not_portable");
    op.signatures = json.at("signatures");
    op.types = json.at("types");
    op.runtimes = RuntimesOf(json.at("devices"), installed);
    for (const Json& attribute : json.at("attributes")) op.attributes.push_back(ReadAttribute(attribute));
    for (const Json& node : json.at("nodes")) op.nodes.push_back(ReadNode(node));
    // The catalogue of an older SDK has no roles.
    for (const Json& input : json.at("inputs")) op.input_roles.push_back(input.value("role", ""));
    op.gradient = ReadGradient(json);
    op.deciding_inputs = json.at("deciding_inputs").get<std::vector<int>>();
  }
}

}  // namespace

const std::vector<OperatorInfo>& Operators() {
  static const std::vector<OperatorInfo> kOperators = [] {
    std::vector<OperatorInfo> all;
    AddOperators(LibraryName(), CatalogueJson(), polyop_resolve_node, OwnLibraryFolders(), &all);
    for (const Package& package : Packages()) {
      AddOperators(package.name, package.catalogue, package.resolve_node, {package.folder}, &all);
    }
    return all;
  }();
  return kOperators;
}

std::string NodeInfo::Condition::Text(bool markdown) const {
  const char* const quote = markdown ? "`" : "";
  return Concat("with ", quote, attribute, quote, least ? Concat(" of ", *least, " or more") : "");
}

std::vector<std::string> OperatorInfo::AttributeNames(const NodeInfo& node) const {
  std::vector<std::string> names;
  for (const AttributeInfo& attribute : attributes) {
    const auto renamed = node.renames.find(attribute.name);
    names.push_back(renamed == node.renames.end() ? attribute.name : renamed->second);
    names.insert(names.end(), attribute.aliases.begin(), attribute.aliases.end());
  }
  return names;
}

std::vector<NodeCandidate> FindCandidates(std::string_view domain, std::string_view type) {
  std::vector<NodeCandidate> found;
  for (const OperatorInfo& op : Operators()) {
    if (!found.empty() && found[0].op->package != op.package) continue;
    for (const NodeInfo& node : op.nodes) {
      const bool is_of_domain = node.domain == domain || (domain == kPluginDomain && node.is_plugin && op.own());
      if (is_of_domain && node.type == type) found.push_back({&op, &node});
    }
  }
  return found;
}

const OperatorInfo* FindOperator(std::string_view domain, std::string_view type) {
  const std::vector<NodeCandidate> candidates = FindCandidates(domain, type);
  return candidates.empty() ? nullptr : candidates[0].op;
}

}  // namespace polyop::cli
