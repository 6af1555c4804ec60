#include "cli/openvino.h"

#include <filesystem>
#include <map>

#include "cli/base/failure.h"
#include "cli/base/file.h"
#include "cli/base/npy.h"
#include "cli/base/process.h"
#include "cli/engine.h"
#include "cli/python.h"

namespace polyop::cli {

bool IsOpenVino(const std::string& path) { return Extension(path) == ".xml"; }

OpenVinoModel::OpenVinoModel(const std::string& path, const SessionOptions& options)
    : path_(path), libraries_(options.libraries), threads_(options.threads) {
  (void)ReadFile(path);  // a missing one is told of by name
  const Json report = Ask({{"task", "describe"}});
  runtime_ = report.at("runtime");
  inputs_ = ReadTensors(report.at("inputs"));
  outputs_ = ReadTensors(report.at("outputs"));
}

Json OpenVinoModel::Ask(Json request) const {
  request["model"] = std::filesystem::absolute(path_).string();
  request["libraries"] = libraries_;
  request["threads"] = threads_;
  Json report = AskPython("polyop.run_openvino", request,
                          "python3 needs polyop and openvino (pip install openvino); its message stands above",
                          "OpenVINO runs in a python3 on the PATH that has polyop and openvino");
  if (report.contains("error")) throw Failure(kFailed, path_ + ": " + report.at("error").get<std::string>());
  return report;
}

Json OpenVinoModel::AskWith(const std::vector<Array>& inputs, Json request, std::vector<Array>* outputs) const {
  const TemporaryFolder folder;
  std::map<std::string, Array> named;
  for (size_t i = 0; i < inputs.size(); ++i) named[inputs_[i].name] = inputs[i];
  WriteNpz(folder.File("inputs.npz"), named);
  request["inputs"] = folder.File("inputs.npz");
  request["outputs"] = folder.File("outputs.npz");
  Json report = Ask(std::move(request));
  std::map<std::string, Array> made = ReadNpz(folder.File("outputs.npz"));
  for (const TensorInfo& output : outputs_) {
    if (!made.contains(output.name)) throw Failure(kFailed, path_ + " did not give output '" + output.name + "'");
    outputs->push_back(std::move(made[output.name]));
  }
  return report;
}

OpenVinoModel::Runs OpenVinoModel::Run(const std::vector<Array>& inputs, int times) const {
  Runs runs;
  const Json report = AskWith(inputs, {{"task", "run"}, {"times", times}}, &runs.outputs);
  runs.load_seconds = report.at("load_seconds");
  runs.seconds = report.at("seconds").get<std::vector<double>>();
  return runs;
}

OpenVinoModel::Runs OpenVinoModel::Time(const std::vector<Array>& inputs, double seconds) const {
  Runs runs;
  const Json report = AskWith(inputs, {{"task", "time"}, {"seconds", seconds}, {"layers", false}}, &runs.outputs);
  runs.seconds = report.at("seconds").get<std::vector<double>>();
  return runs;
}

Json OpenVinoModel::TimeLayers(const std::vector<Array>& inputs) const {
  std::vector<Array> outputs;
  return AskWith(inputs, {{"task", "time"}, {"seconds", 0}, {"layers", true}}, &outputs).at("nodes");
}

void OpenVinoModel::Convert(const std::string& output, bool half) const {
  Ask({{"task", "convert"}, {"output", std::filesystem::absolute(output).string()}, {"half", half}});
}

}  // namespace polyop::cli
