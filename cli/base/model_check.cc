// SPDX-License-Identifier: Apache-2.0
#include "cli/base/model_check.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "cli/base/model.h"
#include "cli/base/number.h"
#include "cli/base/text.h"

namespace polyop::cli {
namespace {

namespace fs = std::filesystem;

// Attributes that are valid on every node, without effect here: TensorRT's parser reads the first two, which tools that
// convert models for it add; MMDeploy and InternImage write the others on deformable convolutions and attention.
constexpr const char* kWithoutEffect[] = {"plugin_version", "plugin_namespace", "im2col_step", "bias"};

std::string Subject(const onnx::NodeProto& node) {
  return TypeOf(node) + (node.name().empty() ? "" : " (node '" + node.name() + "')");
}

// Returns true if the values of attributes come from the call of a function, and are unknown here.
bool RefersToFunction(const onnx::NodeProto& node) {
  return std::any_of(node.attribute().begin(), node.attribute().end(),
                     [](const auto& attribute) { return !attribute.ref_attr_name().empty(); });
}

std::optional<Fault> UnknownAttribute(const onnx::NodeProto& node, const Resolution& found) {
  const std::vector<std::string> known = found.op->AttributeNames(*found.node);
  const auto is_known = [&](const std::string& name) {
    return std::find(known.begin(), known.end(), name) != known.end() ||
           std::find(std::begin(kWithoutEffect), std::end(kWithoutEffect), name) != std::end(kWithoutEffect);
  };
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (is_known(attribute.name())) continue;
    const std::string near = Nearest(attribute.name(), known);
    return Fault{kBadFile, Subject(node) + ": unknown attribute '" + attribute.name() + "'",
                 (near.empty() ? "" : "did you mean '" + near + "'? ") +
                     Concat("`polyop ops ", found.op->FullName(), "` lists the attributes")};
  }
  return std::nullopt;
}

void VisitTensors(const onnx::GraphProto& graph, const std::function<void(const onnx::TensorProto&)>& visit);

void VisitTensors(const onnx::NodeProto& node, const std::function<void(const onnx::TensorProto&)>& visit) {
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.has_t()) visit(attribute.t());
    if (attribute.has_g()) VisitTensors(attribute.g(), visit);
    for (const onnx::GraphProto& graph : attribute.graphs()) VisitTensors(graph, visit);
  }
}

void VisitTensors(const onnx::GraphProto& graph, const std::function<void(const onnx::TensorProto&)>& visit) {
  for (const onnx::TensorProto& tensor : graph.initializer()) visit(tensor);
  for (const onnx::NodeProto& node : graph.node()) VisitTensors(node, visit);
}

void VisitExternal(const onnx::ModelProto& model, const std::function<void(const onnx::TensorProto&)>& visit) {
  const auto filter = [&](const onnx::TensorProto& tensor) {
    if (tensor.data_location() == onnx::TensorProto::EXTERNAL) visit(tensor);
  };
  VisitTensors(model.graph(), filter);
  for (const onnx::FunctionProto& function : model.functions()) {
    for (const onnx::NodeProto& node : function.node()) VisitTensors(node, filter);
  }
}

fs::path Canonical(const fs::path& path) {
  std::error_code error;
  return fs::weakly_canonical(fs::absolute(path, error), error);
}

// Returns the path of a file relative to a folder, both after links, or an empty path if it is not inside.
fs::path Inside(const fs::path& file, const fs::path& folder) {
  const fs::path relative = Canonical(file).lexically_relative(folder);
  return relative.empty() || *relative.begin() == ".." ? fs::path() : relative;
}

// The folders that may have a model's external data, after links.
std::array<fs::path, 2> DataFolders(const std::string& path) {
  return {Canonical(path).parent_path(), Canonical(fs::absolute(path).parent_path())};
}

std::string LocationOf(const onnx::TensorProto& tensor) {
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() == "location") return entry.value();
  }
  return "";
}

// Returns why the external data of a tensor cannot be read, or "".
std::string ExternalDataError(const onnx::TensorProto& tensor, const std::string& path) {
  std::map<std::string, std::string> data;
  for (const auto& entry : tensor.external_data()) data[entry.key()] = entry.value();
  if (data["location"].empty()) return "no file is named";
  const fs::path file = fs::path(path).parent_path() / data["location"];
  const auto folders = DataFolders(path);
  if (Inside(file, folders[0]).empty() && Inside(file, folders[1]).empty()) {
    return "'" + data["location"] + "' is outside the model's folder";
  }
  std::error_code error;
  const auto size = static_cast<double>(fs::file_size(file, error));
  if (error) return "'" + file.string() + "': " + error.message();
  const double begin = static_cast<double>(ParseInteger(data["offset"]).value_or(0));
  const double length = static_cast<double>(ParseInteger(data["length"]).value_or(0));
  if (begin + length <= size) return "";
  return Concat("'", file.string(), "': expected at least ", BytesText(begin + length), ", got ", BytesText(size));
}

void CheckProvided(const onnx::ModelProto& model, const std::string& path) {
  std::set<std::string> missing;
  ForEachNode(model, [&](const onnx::NodeProto& node) {
    if (IsStandard(node) || IsRuntimeDomain(node.domain()) || IsLocalFunction(model, node)) return;
    if (FindOperator(node.domain(), node.op_type()) == nullptr) missing.insert(TypeOf(node));
  });
  if (missing.empty()) return;
  throw Failure(kNotProvided, "nobody provides " + Join({missing.begin(), missing.end()}, ", "),
                "`polyop inspect " + path + "` has advice; --ops LIB adds a library of operators");
}

}  // namespace

std::vector<Fault> AttributeFaults(const onnx::ModelProto& model) {
  std::vector<Fault> faults;
  ForEachNode(model, [&](const onnx::NodeProto& node) {
    const Resolution found = Resolve(node);
    if (found.op == nullptr) return;
    if (std::optional<Fault> unknown = UnknownAttribute(node, found)) return faults.push_back(std::move(*unknown));
    if (found.error.empty() || RefersToFunction(node)) return;
    faults.push_back({kBadFile, Subject(node) + ": " + found.error,
                      Concat("`polyop ops ", found.op->FullName(), "` lists the attributes")});
  });
  return faults;
}

fs::path FollowLinks(onnx::ModelProto* model, const std::string& path) {
  std::vector<onnx::TensorProto*> tensors;  // of the caller's model, which is not const
  VisitExternal(*model, [&](const onnx::TensorProto& t) { tensors.push_back(const_cast<onnx::TensorProto*>(&t)); });
  const fs::path given = fs::path(path).parent_path();
  for (const fs::path& folder : DataFolders(path)) {
    const bool has_all = std::none_of(tensors.begin(), tensors.end(), [&](const onnx::TensorProto* tensor) {
      return Inside(given / LocationOf(*tensor), folder).empty();
    });
    if (!has_all) continue;
    for (onnx::TensorProto* tensor : tensors) {
      for (auto& entry : *tensor->mutable_external_data()) {
        if (entry.key() == "location") entry.set_value(Inside(given / entry.value(), folder).generic_string());
      }
    }
    return folder;
  }
  return fs::absolute(given);  // ONNX Runtime names the tensor
}

std::vector<Fault> ExternalDataFaults(const onnx::ModelProto& model, const std::string& path) {
  std::vector<Fault> faults;
  VisitExternal(model, [&](const onnx::TensorProto& tensor) {
    const std::string error = ExternalDataError(tensor, path);
    if (error.empty()) return;
    faults.push_back({kBadFile, "external data of '" + tensor.name() + "': " + error,
                      "copy the file to the folder of the model, or export the model again"});
  });
  return faults;
}

void CheckModel(const onnx::ModelProto& model, const std::string& path, const std::vector<std::string>& libraries) {
  if (libraries.empty()) CheckProvided(model, path);
  for (const auto& faults : {AttributeFaults(model), ExternalDataFaults(model, path)}) {
    if (!faults.empty()) throw Failure(faults.front().code, faults.front().message, faults.front().hint);
  }
}

}  // namespace polyop::cli
