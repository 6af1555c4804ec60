// SPDX-License-Identifier: Apache-2.0
#include "cli/openvino.h"

#include <filesystem>

#include "cli/base/failure.h"
#include "cli/base/file.h"
#include "cli/python.h"

namespace polyop::cli {
namespace {

constexpr const char* kModule = "run_openvino";
constexpr const char* kNeeds = "polyop and openvino (pip install openvino)";

}  // namespace

bool IsOpenVino(const std::string& path) { return Extension(path) == ".xml"; }

OpenVinoModel::OpenVinoModel(const std::string& path, const SessionOptions& options, const InputOptions& input)
    : path_(path), libraries_(options.libraries), threads_(options.threads) {
  if (IsOpenVino(path)) {
    (void)ReadFile(path);  // names a missing file
  } else {
    model_ = LoadModel(path);
    CheckInputNames(model_, input);
  }
  Describe(AskPython(kModule, Request({{"task", "describe"}}), kNeeds));
}

Json OpenVinoModel::Request(Json request) const {
  request["model"] = std::filesystem::absolute(path_).string();
  request["libraries"] = libraries_;
  request["threads"] = threads_;
  return request;
}

Json OpenVinoModel::Ask(const std::vector<Array>& inputs, Json request, std::vector<Array>* outputs) const {
  return AskPython(kModule, Request(std::move(request)), kNeeds, inputs_, inputs, outputs_, outputs);
}

LoadedModel::Runs OpenVinoModel::Run(const std::vector<Array>& inputs, int times) const {
  Runs runs;
  const Json reply = Ask(inputs, {{"task", "run"}, {"times", times}}, &runs.outputs);
  runs.load_seconds = reply.at("load_seconds");
  runs.seconds = reply.at("seconds").get<std::vector<double>>();
  return runs;
}

LoadedModel::Runs OpenVinoModel::Time(const std::vector<Array>& inputs, double seconds) const {
  Runs runs;
  const Json reply = Ask(inputs, {{"task", "time"}, {"seconds", seconds}, {"layers", false}}, &runs.outputs);
  runs.seconds = reply.at("seconds").get<std::vector<double>>();
  return runs;
}

Json OpenVinoModel::TimeLayers(const std::vector<Array>& inputs) const {
  std::vector<Array> outputs;
  return Ask(inputs, {{"task", "time"}, {"seconds", 0}, {"layers", true}}, &outputs).at("nodes");
}

}  // namespace polyop::cli
