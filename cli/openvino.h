// SPDX-License-Identifier: Apache-2.0
// Models in OpenVINO: their inputs and outputs, running and timing them.
#pragma once

#include <string>
#include <vector>

#include "cli/json.h"
#include "cli/loaded_model.h"

namespace polyop::cli {

/// Returns true for .xml, the extension of OpenVINO's own files.
bool IsOpenVino(const std::string& path);

/// A model in OpenVINO's CPU plugin with polyop's operators. It runs in Python.
class OpenVinoModel : public LoadedModel {
 public:
  /// Loads an ONNX file, whose inputs must have the names in `input`, or one of OpenVINO's. Uses the threads and the
  /// libraries of the options, and ignores the others. Throws Failure with OpenVINO's message.
  OpenVinoModel(const std::string& path, const SessionOptions& options, const InputOptions& input);

  Runs Run(const std::vector<Array>& inputs, int times) const override;
  /// Runs the model for at least `seconds`. The times are in ascending order.
  Runs Time(const std::vector<Array>& inputs, double seconds) const;
  /// Returns the mean times of the layers ("node", "operator", "mean_seconds"), the slowest first.
  Json TimeLayers(const std::vector<Array>& inputs) const;

 private:
  Json Request(Json request) const;
  Json Ask(const std::vector<Array>& inputs, Json request, std::vector<Array>* outputs) const;

  std::string path_;
  std::vector<std::string> libraries_;
  int threads_ = 0;
};

}  // namespace polyop::cli
