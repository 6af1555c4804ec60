// SPDX-License-Identifier: Apache-2.0
#include "cli/engine.h"

#include <filesystem>

#include "cli/base/failure.h"
#include "cli/base/file.h"
#include "cli/python.h"

namespace polyop::cli {

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

bool IsEngine(const std::string& path) {
  const std::string extension = Extension(path);
  return extension == ".engine" || extension == ".plan" || extension == ".trt";
}

Engine::Engine(const std::string& path) : path_(path) {
  (void)ReadFile(path);
  const std::string description = path + ".json";
  try {
    const Json json = ParseJson(ReadFile(description));
    runtime_ = json.at("runtime");
    inputs_ = ReadTensors(json.at("inputs"));
    outputs_ = ReadTensors(json.at("outputs"));
    metadata_ = json.value("metadata", MetadataMap());  // older descriptions have none
  } catch (const Json::exception& e) {
    throw Failure(kBadFile, description + " does not describe the engine's inputs and outputs: " + e.what(),
                  "`polyop convert` writes it");
  }
}

std::vector<Array> Engine::Run(const std::vector<Array>& inputs) const {
  std::vector<Array> outputs;
  AskPython("run_engine", {{"engine", std::filesystem::absolute(path_).string()}},
            "polyop, torch, a GPU and " + runtime_, inputs_, inputs, outputs_, &outputs);
  return outputs;
}

}  // namespace polyop::cli
