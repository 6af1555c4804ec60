// Models in OpenVINO: what they take, and running, timing and converting them.
#pragma once

#include <string>
#include <vector>

#include "cli/base/array.h"
#include "cli/base/runtime.h"
#include "cli/json.h"

namespace polyop::cli {

/// True for .xml, OpenVINO's own files.
bool IsOpenVino(const std::string& path);

/// A model in OpenVINO's CPU plugin with polyop's operators. It runs in `python3 -m polyop.run_openvino`.
class OpenVinoModel {
 public:
  /// An ONNX file or one of OpenVINO's. Of the options, the threads and libraries count. Throws Failure with what
  /// OpenVINO says.
  OpenVinoModel(const std::string& path, const SessionOptions& options);

  const std::vector<TensorInfo>& inputs() const { return inputs_; }
  const std::vector<TensorInfo>& outputs() const { return outputs_; }
  /// "OpenVINO 2026.4.1"
  const std::string& runtime() const { return runtime_; }

  struct Runs {
    std::vector<Array> outputs;  // of the last run
    double load_seconds = 0;
    std::vector<double> seconds;  // of every run
  };
  /// Inputs and outputs in this order.
  Runs Run(const std::vector<Array>& inputs, int times) const;
  /// Runs for so long; the times rise.
  Runs Time(const std::vector<Array>& inputs, double seconds) const;
  /// The mean times of its layers: "node", "operator", "mean_seconds"; the slowest first.
  Json TimeLayers(const std::vector<Array>& inputs) const;
  /// Writes it as `output` and a .bin file beside it; `half`: its weights in f16.
  void Convert(const std::string& output, bool half) const;

 private:
  Json Ask(Json request) const;
  Json AskWith(const std::vector<Array>& inputs, Json request, std::vector<Array>* outputs) const;

  std::string path_, runtime_;
  std::vector<std::string> libraries_;
  int threads_ = 0;
  std::vector<TensorInfo> inputs_, outputs_;
};

}  // namespace polyop::cli
