// SPDX-License-Identifier: Apache-2.0
#include "cli/engine.h"

#include <filesystem>

#include "cli/base/failure.h"
#include "cli/base/file.h"
#include "cli/python.h"

namespace polyop::cli {

bool IsEngine(const std::string& path) {
  const std::string extension = Extension(path);
  return extension == ".engine" || extension == ".plan" || extension == ".trt";
}

Engine::Engine(const std::string& path) : path_(path) {
  const auto start = std::chrono::steady_clock::now();
  (void)ReadFile(path);
  const std::string description = path + ".json";
  try {
    Describe(ParseJson(ReadFile(description)));
  } catch (const Json::exception& e) {
    throw Failure(kBadFile, description + " does not describe the engine's inputs and outputs: " + e.what(),
                  "`polyop convert` writes it");
  }
  load_seconds_ = SecondsSince(start);
}

LoadedModel::Runs Engine::Run(const std::vector<Array>& inputs, const Timing& timing) const {
  return Repeat(timing, load_seconds_, [&] {
    std::vector<Array> outputs;
    AskPython("run_engine", {{"engine", std::filesystem::absolute(path_).string()}},
              "polyop, torch, a GPU and " + runtime_, inputs_, inputs, outputs_, &outputs);
    return outputs;
  });
}

}  // namespace polyop::cli
