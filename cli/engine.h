// SPDX-License-Identifier: Apache-2.0
// TensorRT engines of `polyop convert`.
#pragma once

#include <string>

#include "cli/python_model.h"

namespace polyop::cli {

/// Returns true for .engine, .plan and .trt.
bool IsEngine(const std::string& path);

/// An engine file and its description, PATH.json. It runs in Python, which needs TensorRT, torch and a GPU.
class Engine : public PythonModel {
 public:
  /// Throws Failure if the file, or PATH.json, is missing or damaged.
  explicit Engine(const std::string& path);

  bool runs_on_cpu() const override { return false; }

 private:
  Engine(const std::string& path, const Json& description);
};

}  // namespace polyop::cli
