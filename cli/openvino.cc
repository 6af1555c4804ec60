// SPDX-License-Identifier: Apache-2.0
#include "cli/openvino.h"

#include <filesystem>

#include "cli/base/file.h"

namespace polyop::cli {

bool IsOpenVino(const std::string& path) { return Extension(path) == ".xml"; }

namespace {

// Returns the path. Throws Failure for a file that is missing, and for an input that an ONNX file lacks.
std::string Checked(const std::string& path, const InputOptions& input) {
  if (IsOpenVino(path)) {
    (void)ReadFile(path);
  } else {
    CheckInputNames(LoadModel(path), input);
  }
  return std::filesystem::absolute(path).string();
}

}  // namespace

OpenVinoModel::OpenVinoModel(const std::string& path, const SessionOptions& options, const InputOptions& input,
                             const std::string& kind)
    : PythonModel("run_openvino", "polyop and openvino (pip install openvino)",
                  {{"model", Checked(path, input)},
                   {"kind", kind},
                   {"libraries", options.libraries},
                   {"threads", options.threads}}) {
  if (!IsOpenVino(path)) model_ = LoadModel(path);
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
