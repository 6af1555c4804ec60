#include "cli/engine.h"

#include <map>

#include "cli/base/failure.h"
#include "cli/base/file.h"
#include "cli/base/npy.h"
#include "cli/base/process.h"

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
  const std::string beside = path + ".json";
  try {
    const Json needs = ParseJson(ReadFile(beside));
    runtime_ = needs.at("runtime");
    inputs_ = ReadTensors(needs.at("inputs"));
    outputs_ = ReadTensors(needs.at("outputs"));
  } catch (const Json::exception& e) {
    throw Failure(kBadFile, beside + " does not say what the engine takes: " + e.what(), "`polyop convert` writes it");
  }
}

std::vector<Array> Engine::Run(const std::vector<Array>& inputs) const {
  const TemporaryFolder folder;
  std::map<std::string, Array> named;
  for (size_t i = 0; i < inputs.size(); ++i) named[inputs_[i].name] = inputs[i];
  WriteNpz(folder.File("inputs.npz"), named);
  RunProgram({"python3", "-m", "polyop.run_engine", path_, folder.File("inputs.npz"), folder.File("outputs.npz")},
             "an engine needs a GPU, and a python3 that has polyop, torch and " + runtime_,
             "running an engine needs a python3 on the PATH that has polyop, torch and " + runtime_);
  std::map<std::string, Array> made = ReadNpz(folder.File("outputs.npz"));
  std::vector<Array> outputs;
  for (const TensorInfo& output : outputs_) {
    if (!made.contains(output.name)) throw Failure(kFailed, path_ + " did not give output '" + output.name + "'");
    outputs.push_back(std::move(made[output.name]));
  }
  return outputs;
}

}  // namespace polyop::cli
