// SPDX-License-Identifier: Apache-2.0
// A model in the runtime that runs it: ONNX Runtime, OpenVINO or TensorRT.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/base/array.h"
#include "cli/base/model.h"
#include "cli/base/runtime.h"
#include "cli/feeds.h"
#include "cli/json.h"
#include "cli/timing.h"

namespace polyop::cli {

class LoadedModel {
 public:
  struct Runs {
    std::vector<Array> outputs;  // of the last run
    double load_seconds = 0;
    std::vector<double> seconds;  // of every timed run
    std::string note;             // what the runtime says about the run, or ""
  };

  LoadedModel() = default;
  LoadedModel(const LoadedModel&) = delete;
  LoadedModel& operator=(const LoadedModel&) = delete;
  virtual ~LoadedModel() = default;

  const std::vector<TensorInfo>& inputs() const { return inputs_; }
  const std::vector<TensorInfo>& outputs() const { return outputs_; }
  /// The ONNX model. Of an engine or a file of OpenVINO's it has only the metadata of the ONNX file that was converted.
  const onnx::ModelProto& model() const { return model_; }
  /// The runtime with its version, such as "OpenVINO 2026.4.1".
  const std::string& runtime() const { return runtime_; }
  /// Returns false if SessionOptions::threads and the instruction set have no effect.
  virtual bool runs_on_cpu() const { return true; }

  /// Reads or generates all inputs. Throws Failure.
  virtual Feeds FeedsOf(const InputOptions& options) const { return ReadFeeds(inputs_, model_, options); }
  /// Takes the inputs and returns the outputs in the order of inputs() and outputs(). Throws Failure with the runtime's
  /// message. Requires: timing.repeat > 0.
  virtual Runs Run(const std::vector<Array>& inputs, const Timing& timing) const = 0;

 protected:
  /// Takes the runtime, the tensors and the metadata from a description that a Python program wrote.
  void Describe(const Json& description);
  void SetMetadata(const std::map<std::string, std::string>& metadata);
  /// Calls `run`, which returns the outputs.
  template <class Function>
  static Runs Repeat(const Timing& timing, double load_seconds, const Function& run) {
    Runs runs;
    runs.load_seconds = load_seconds;
    runs.seconds = TimeRuns(timing, [&] { runs.outputs = run(); });
    return runs;
  }

  onnx::ModelProto model_;
  std::string runtime_;
  std::vector<TensorInfo> inputs_, outputs_;
};

/// Checks an ONNX file and loads it in ONNX Runtime. Throws Failure.
std::unique_ptr<LoadedModel> LoadInOnnxRuntime(const std::string& path, const SessionOptions& options);

/// Where an ONNX file runs.
struct Target {
  std::string runtime = "onnxruntime";  // or "openvino"
  std::string provider;  // of the package onnxruntime, "NAME[:key=value,…]"; "": the CPU's, in this process

  /// Returns true if Python runs the model.
  bool is_elsewhere() const { return runtime != "onnxruntime" || !provider.empty(); }
};

/// Loads a file of any kind in its runtime, an ONNX file in that of the target. Throws Failure, also if `input` names
/// an input that an ONNX file lacks, and if the file does not run in the target.
std::unique_ptr<LoadedModel> LoadAny(const std::string& path, const Target& target, const SessionOptions& options,
                                     const InputOptions& input);

/// Returns true for .ort, the extension of ONNX Runtime's own format, which has no messages of ONNX.
bool IsOrt(const std::string& path);

}  // namespace polyop::cli
