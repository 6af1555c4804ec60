// SPDX-License-Identifier: Apache-2.0
#include "cli/loaded_model.h"

#include <map>

#include "cli/base/failure.h"
#include "cli/base/file.h"
#include "cli/base/model_check.h"
#include "cli/engine.h"
#include "cli/openvino.h"
#include "cli/python_model.h"

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
    if (IsOrt(path)) {
      (void)FileSize(path);
    } else {
      model_ = LoadModel(path);
      CheckModel(model_, path, options.libraries);
      CheckInputNames(model_, input);
    }
    const auto start = std::chrono::steady_clock::now();
    session_ = std::make_unique<Session>(path, options);
    load_seconds_ = SecondsSince(start);
    inputs_ = session_->inputs();
    outputs_ = session_->outputs();
    runtime_ = "ONNX Runtime " + session_->runtime_version();
    if (IsOrt(path)) SetMetadata(session_->Metadata());
  }

  Feeds FeedsOf(const InputOptions& options) const override {
    Feeds feeds = LoadedModel::FeedsOf(options);
    if (!feeds.integers_are_drawn) return feeds;
    std::vector<Array> outputs;
    int integer_bound = 0;
    return ReadFeedsThatRun(*session_, model_, options, &outputs, &integer_bound);
  }
  Runs Run(const std::vector<Array>& inputs, const Timing& timing) const override {
    return Repeat(timing, load_seconds_, [&] { return session_->Run(inputs); });
  }

 private:
  std::unique_ptr<Session> session_;
  double load_seconds_ = 0;
};

}  // namespace

void LoadedModel::Describe(const Json& description) {
  runtime_ = description.at("runtime");
  inputs_ = ReadTensors(description.at("inputs"));
  outputs_ = ReadTensors(description.at("outputs"));
  SetMetadata(description.value("metadata", std::map<std::string, std::string>()));  // older files have none
}

void LoadedModel::SetMetadata(const std::map<std::string, std::string>& metadata) {
  for (const auto& [key, value] : metadata) {
    onnx::StringStringEntryProto& entry = *model_.add_metadata_props();
    entry.set_key(key);
    entry.set_value(value);
  }
}

std::unique_ptr<LoadedModel> LoadInOnnxRuntime(const std::string& path, const SessionOptions& options) {
  return std::make_unique<OnnxRuntimeModel>(path, options, InputOptions());
}

std::unique_ptr<LoadedModel> LoadAny(const std::string& path, const Target& target, const SessionOptions& options,
                                     const InputOptions& input) {
  const auto& [runtime, provider] = target;
  if (!provider.empty() && (runtime != "onnxruntime" || IsEngine(path) || IsOpenVino(path))) {
    throw Failure(kUsage, "--provider " + provider + ": expected a model that runs in ONNX Runtime, got '" + path +
                              "'" + (runtime == "onnxruntime" ? "" : " with --runtime " + runtime));
  }
  if (runtime != "onnxruntime" && IsOrt(path)) {
    throw Failure(kUsage, "--runtime " + runtime + ": expected an ONNX file, got '" + path + "'");
  }
  if (IsEngine(path)) return std::make_unique<Engine>(path);
  if (runtime == "openvino" || IsOpenVino(path)) return std::make_unique<OpenVinoModel>(path, options, input);
  if (provider.empty()) return std::make_unique<OnnxRuntimeModel>(path, options, input);
  if (!IsOrt(path)) {
    const onnx::ModelProto model = LoadModel(path);
    CheckModel(model, path, options.libraries);
    CheckInputNames(model, input);
  }
  return std::make_unique<ProviderModel>(path, ProviderOptions{provider, "", options});
}

bool IsOrt(const std::string& path) { return Extension(path) == ".ort"; }

}  // namespace polyop::cli
