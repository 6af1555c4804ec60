// SPDX-License-Identifier: Apache-2.0
// polyop cmake-dir and polyop test: the SDK that is installed with the program, and tests of projects that use it.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <thread>

#include "cli/base/environments.h"
#include "cli/base/failure.h"
#include "cli/base/process.h"
#include "cli/commands.h"

namespace polyop::cli {
namespace {

namespace fs = std::filesystem;

// Returns the SDK's folder in the prefix of `cmake --install` or in the Python package.
fs::path SdkFolder() {
  const fs::path package = fs::path("lib") / "cmake" / "polyop";
  std::vector<fs::path> folders = {InstalledPrefix() / package};
  for (const fs::path& site : SitePackages()) folders.push_back(site / "polyop" / package);
  std::error_code error;
  for (const fs::path& folder : folders) {
    if (fs::exists(folder / "polyopConfig.cmake", error)) return folder;
  }
  throw Failure(
      kBadFile, "polyop's SDK is not installed with this program, in " + InstalledPrefix().string(),
      "polyop's wheel has it (`make wheel` builds one into dist/); `cmake --install` installs it from a build tree");
}

}  // namespace

int CmakeDir() {
  std::cout << SdkFolder().string() << "\n";
  return kOk;
}

int Test(const TestOptions& options) {
  std::error_code error;
  if (!fs::exists(fs::path(options.project) / "CMakeLists.txt", error)) {
    throw Failure(kUsage, options.project + " has no CMakeLists.txt", "`polyop new NAME --project` writes a project");
  }
  const std::string build =
      options.build.empty() ? (fs::path(options.project) / "build" / "polyop-test").string() : options.build;
  std::vector<std::string> configure = {
      "cmake", "-S", options.project, "-B", build, "-DPOLYOP_BUILD_TESTS=ON", "-Dpolyop_DIR=" + SdkFolder().string()};
  // Tests call the operators without a runtime.
  for (const char* runtime : {"ONNXRUNTIME", "TORCH", "OPENVINO", "TENSORRT"}) {
    configure.push_back(Concat("-DPOLYOP_BUILD_", runtime, "=OFF"));
  }
  if (!fs::exists(fs::path(build) / "CMakeCache.txt", error) && !FindOnPath("ninja").empty()) {
    configure.insert(configure.end(), {"-G", "Ninja"});
  }
  const std::string threads = std::to_string(std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::string> run = {
      "ctest", "--test-dir", (fs::path(build) / "polyop").string(), "--output-on-failure", "--no-tests=error",
      "-j",    threads};
  if (!options.only.empty()) run.insert(run.end(), {"-R", options.only});
  const std::string missing = "tests are built by cmake: `pip install cmake ninja`, or a package of the system";
  ShowProgram(configure, "its message is above", missing);
  ShowProgram({"cmake", "--build", build, "--parallel", threads}, "its message is above", missing);
  ShowProgram(run, "the failures are above", missing);
  return kOk;
}

}  // namespace polyop::cli
