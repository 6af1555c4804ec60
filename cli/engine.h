// SPDX-License-Identifier: Apache-2.0
// TensorRT engines of `polyop convert`: their inputs and outputs, and running them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/base/array.h"
#include "cli/base/runtime.h"
#include "cli/json.h"

namespace polyop::cli {

/// Returns the tensors of a description by another program: {name: {"type": "f32", "shape": [1, -1]}}.
std::vector<TensorInfo> ReadTensors(const Json& tensors);

/// Metadata of an ONNX file, by name.
using MetadataMap = std::map<std::string, std::string>;

/// Returns true for .engine, .plan and .trt.
bool IsEngine(const std::string& path);

/// An engine file and its description, PATH.json. It runs in Python, which needs TensorRT, torch and a GPU.
class Engine {
 public:
  /// Throws Failure if the file, or PATH.json, is missing or damaged.
  explicit Engine(const std::string& path);

  const std::vector<TensorInfo>& inputs() const { return inputs_; }
  const std::vector<TensorInfo>& outputs() const { return outputs_; }
  /// The metadata of the ONNX file that the engine was built from.
  const MetadataMap& metadata() const { return metadata_; }
  /// "tensorrt 10.14"
  const std::string& runtime() const { return runtime_; }

  /// Takes the inputs and returns the outputs in the order of inputs() and outputs(). Throws Failure with TensorRT's
  /// message.
  std::vector<Array> Run(const std::vector<Array>& inputs) const;

 private:
  std::string path_, runtime_;
  std::vector<TensorInfo> inputs_, outputs_;
  MetadataMap metadata_;
};

}  // namespace polyop::cli
