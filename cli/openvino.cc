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

}  // namespace polyop::cli
