// SPDX-License-Identifier: Apache-2.0
#include "cli/loaded_model.h"

#include <map>

#include "cli/base/model_check.h"
#include "cli/engine.h"
#include "cli/openvino.h"

namespace polyop::cli {
namespace {

// Returns the tensors of {name: {"type": "f32", "shape": [1, -1]}}.
std::vector<TensorInfo> ReadTensors(const Json& tensors) {
  std::vector<TensorInfo> infos;
  for (const auto& [name, json] : tensors.items()) {
    TensorInfo info;
    info.name = name;
    const std::string type = json.at("type");
    for (int t = 0; t < kNumDTypes; ++t) {
      if (NameOf(static_cast<DType>(t)) == type) info.dtype = static_cast<DType>(t);
    }
    info.shape = json.at("shape").get<std::vector<int64_t>>();
    info.symbols.resize(info.shape.size());
    infos.push_back(info);
  }
  return infos;
}

class OnnxRuntimeModel : public LoadedModel {
 public:
  OnnxRuntimeModel(const std::string& path, const SessionOptions& options, const InputOptions& input) {
    model_ = LoadModel(path);
    CheckModel(model_, path, options.libraries);
    CheckInputNames(model_, input);
    const auto start = std::chrono::steady_clock::now();
    session_ = std::make_unique<Session>(path, options);
    load_seconds_ = SecondsSince(start);
    inputs_ = session_->inputs();
    outputs_ = session_->outputs();
    runtime_ = "ONNX Runtime " + session_->runtime_version();
  }

  Feeds FeedsOf(const InputOptions& options) const override {
    Feeds feeds = LoadedModel::FeedsOf(options);
    if (!feeds.integers_are_drawn) return feeds;
    std::vector<Array> outputs;
    int integer_bound = 0;
    return ReadFeedsThatRun(*session_, model_, options, &outputs, &integer_bound);
  }
  Runs Run(const std::vector<Array>& inputs, int times) const override {
    return Repeat(times, load_seconds_, [&] { return session_->Run(inputs); });
  }

 private:
  std::unique_ptr<Session> session_;
  double load_seconds_ = 0;
};

}  // namespace

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void LoadedModel::Describe(const Json& description) {
  runtime_ = description.at("runtime");
  inputs_ = ReadTensors(description.at("inputs"));
  outputs_ = ReadTensors(description.at("outputs"));
  using Metadata = std::map<std::string, std::string>;
  for (const auto& [key, value] : description.value("metadata", Metadata())) {  // older files have none
    onnx::StringStringEntryProto& entry = *model_.add_metadata_props();
    entry.set_key(key);
    entry.set_value(value);
  }
}

std::unique_ptr<LoadedModel> LoadInOnnxRuntime(const std::string& path, const SessionOptions& options) {
  return std::make_unique<OnnxRuntimeModel>(path, options, InputOptions());
}

std::unique_ptr<LoadedModel> LoadAny(const std::string& path, const std::string& runtime, const SessionOptions& options,
                                     const InputOptions& input) {
  if (IsEngine(path)) return std::make_unique<Engine>(path);
  if (runtime == "openvino" || IsOpenVino(path)) return std::make_unique<OpenVinoModel>(path, options, input);
  return std::make_unique<OnnxRuntimeModel>(path, options, input);
}

}  // namespace polyop::cli
