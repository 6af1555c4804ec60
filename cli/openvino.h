// SPDX-License-Identifier: Apache-2.0
// Models in OpenVINO: their inputs and outputs, running and timing them.
#pragma once

#include <string>
#include <vector>

#include "cli/base/array.h"
#include "cli/base/runtime.h"
#include "cli/engine.h"
#include "cli/json.h"

namespace polyop::cli {

/// Returns true for .xml, the extension of OpenVINO's own files.
bool IsOpenVino(const std::string& path);

/// A model in OpenVINO's CPU plugin with polyop's operators. It runs in Python.
class OpenVinoModel {
 public:
  /// Loads an ONNX file or one of OpenVINO's. Uses the threads and the libraries of the options, and ignores the
  /// others. Throws Failure with OpenVINO's message.
  OpenVinoModel(const std::string& path, const SessionOptions& options);

  const std::vector<TensorInfo>& inputs() const { return inputs_; }
  const std::vector<TensorInfo>& outputs() const { return outputs_; }
  /// The metadata of the ONNX file that `polyop convert` wrote a file of OpenVINO's from; empty for ONNX files.
  const MetadataMap& metadata() const { return metadata_; }
  /// "OpenVINO 2026.4.1"
  const std::string& runtime() const { return runtime_; }

  struct Runs {
    std::vector<Array> outputs;  // of the last run
    double load_seconds = 0;
    std::vector<double> seconds;  // of every run
  };
  /// Takes the inputs and returns the outputs in the order of inputs() and outputs().
  Runs Run(const std::vector<Array>& inputs, int times) const;
  /// Runs the model for at least `seconds`. The times are in ascending order.
  Runs Time(const std::vector<Array>& inputs, double seconds) const;
  /// Returns the mean times of the layers ("node", "operator", "mean_seconds"), the slowest first.
  Json TimeLayers(const std::vector<Array>& inputs) const;

 private:
  Json Request(Json request) const;
  Json Ask(const std::vector<Array>& inputs, Json request, std::vector<Array>* outputs) const;

  std::string path_, runtime_;
  std::vector<std::string> libraries_;
  int threads_ = 0;
  std::vector<TensorInfo> inputs_, outputs_;
  MetadataMap metadata_;
};

}  // namespace polyop::cli
