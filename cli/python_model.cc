// SPDX-License-Identifier: Apache-2.0
#include "cli/python_model.h"

#include <filesystem>

#include "cli/python.h"

namespace polyop::cli {

PythonModel::PythonModel(std::string module, std::string needs, Json request)
    : module_(std::move(module)), needs_(std::move(needs)), request_(std::move(request)) {
  Json describe = request_;
  describe["task"] = "describe";
  Describe(AskPython(module_, describe, needs_));
}

PythonModel::PythonModel(std::string module, std::string needs, Json request, const Json& description)
    : module_(std::move(module)), needs_(std::move(needs)), request_(std::move(request)) {
  Describe(description);
}

Json PythonModel::Ask(const std::vector<Array>& inputs, const Json& task, std::vector<Array>* outputs) const {
  Json request = request_;
  request.update(task);
  return AskPython(module_, std::move(request), needs_, inputs_, inputs, outputs_, outputs);
}

LoadedModel::Runs PythonModel::Run(const std::vector<Array>& inputs, const Timing& timing) const {
  Runs runs;
  const Json task = {
      {"task", "run"}, {"warmup", timing.warmup}, {"repeat", timing.repeat}, {"seconds", timing.seconds}};
  const Json reply = Ask(inputs, task, &runs.outputs);
  runs.load_seconds = reply.at("load_seconds");
  runs.seconds = reply.at("seconds").get<std::vector<double>>();
  runs.note = reply.value("note", "");
  return runs;
}

Json PythonModel::TimeLayers(const std::vector<Array>& inputs) const {
  std::vector<Array> outputs;
  return Ask(inputs, {{"task", "layers"}}, &outputs).at("nodes");
}

ProviderModel::ProviderModel(const std::string& path, const ProviderOptions& options)
    : PythonModel("run_onnxruntime", "polyop and onnxruntime (pip install onnxruntime)",
                  {{"model", std::filesystem::absolute(path).string()},
                   {"folder", options.folder},
                   {"kind", "provider"},
                   {"value", options.provider},
                   {"libraries", options.session.libraries},
                   {"accelerate", options.session.accelerate},
                   {"threads", options.session.threads}}) {}

}  // namespace polyop::cli
