// TensorRT engines that `polyop convert` made: what they take, and running them.
#pragma once

#include <string>
#include <vector>

#include "cli/base/array.h"
#include "cli/base/runtime.h"
#include "cli/json.h"

namespace polyop::cli {

/// Tensors as other programs describe them: {name: {"type": "f32", "shape": [1, -1]}}.
std::vector<TensorInfo> ReadTensors(const Json& tensors);

/// True for .engine, .plan and .trt.
bool IsEngine(const std::string& path);

/// An engine file and the one beside it. It runs in `python3 -m polyop.run_engine`, which needs TensorRT, torch and a
/// GPU.
class Engine {
 public:
  /// Throws Failure if the file, or PATH.json, is missing or damaged.
  explicit Engine(const std::string& path);

  const std::vector<TensorInfo>& inputs() const { return inputs_; }
  const std::vector<TensorInfo>& outputs() const { return outputs_; }
  /// "tensorrt 10.14"
  const std::string& runtime() const { return runtime_; }

  /// Inputs and outputs in this order. Throws Failure with what TensorRT says.
  std::vector<Array> Run(const std::vector<Array>& inputs) const;

 private:
  std::string path_, runtime_;
  std::vector<TensorInfo> inputs_, outputs_;
};

}  // namespace polyop::cli
