// SPDX-License-Identifier: Apache-2.0
#include "cli/engine.h"

#include <filesystem>

#include "cli/base/failure.h"
#include "cli/base/file.h"

namespace polyop::cli {

bool IsEngine(const std::string& path) {
  const std::string extension = Extension(path);
  return extension == ".engine" || extension == ".plan" || extension == ".trt";
}

namespace {

std::string DescriptionOf(const std::string& engine) { return engine + ".json"; }

Json ReadDescription(const std::string& engine) {
  (void)ReadFile(engine);
  return ParseJson(ReadFile(DescriptionOf(engine)));
}

}  // namespace

Engine::Engine(const std::string& path) try : Engine(path, ReadDescription(path)) {
} catch (const Json::exception& e) {
  throw Failure(kBadFile, DescriptionOf(path) + " does not describe the engine's inputs and outputs: " + e.what(),
                "`polyop convert` writes it");
}

Engine::Engine(const std::string& path, const Json& description)
    : PythonModel("run_engine", "polyop, torch, a GPU and " + description.at("runtime").get<std::string>(),
                  {{"engine", std::filesystem::absolute(path).string()}}, description) {}

}  // namespace polyop::cli
