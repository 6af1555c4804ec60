// SPDX-License-Identifier: Apache-2.0
// Models in runtimes that have Python bindings: a module of polyop._commands runs them.
#pragma once

#include <string>
#include <vector>

#include "cli/json.h"
#include "cli/loaded_model.h"

namespace polyop::cli {

class PythonModel : public LoadedModel {
 public:
  Runs Run(const std::vector<Array>& inputs, const Timing& timing) const override;
  /// Returns the mean times of the nodes ("node", "operator", "mean_seconds"), the slowest first.
  Json TimeLayers(const std::vector<Array>& inputs) const;

 protected:
  /// `module` answers the tasks "describe", "run" and "layers" of `request`, which says what is loaded, and how. Throws
  /// Failure with the runtime's message.
  PythonModel(std::string module, std::string needs, Json request);
  /// The same for a module that does not answer "describe". Throws Json::exception for a wrong description.
  PythonModel(std::string module, std::string needs, Json request, const Json& description);
  /// Runs a task. `task` has the fields of the request that are its own.
  Json Ask(const std::vector<Array>& inputs, const Json& task, std::vector<Array>* outputs) const;

 private:
  std::string module_, needs_;
  Json request_;
};

/// How an ONNX file runs in an execution provider of ONNX Runtime.
struct ProviderOptions {
  std::string provider;  // "NAME[:key=value,…]"
  std::string folder;    // of the file's external data; "": the file's
  SessionOptions session;
};

/// A model in an execution provider of the installed package onnxruntime. Requires: the file is valid.
class ProviderModel : public PythonModel {
 public:
  ProviderModel(const std::string& path, const ProviderOptions& options);
};

}  // namespace polyop::cli
