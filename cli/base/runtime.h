// SPDX-License-Identifier: Apache-2.0
// ONNX Runtime. It is loaded when a model runs, so that the program starts without it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/base/array.h"
#include "onnxruntime_cxx_api.h"

namespace polyop::cli {

/// The maximum of --threads.
inline constexpr int kMaxThreads = 1024;

struct SessionOptions {
  std::string onnxruntime;                    // path of libonnxruntime.so; "": searched for
  std::vector<std::string> libraries;         // further custom-op libraries
  bool accelerate = false;                    // replaces ONNX Runtime's own kernels by polyop's
  int threads = 0;                            // 0: one for each core
  bool reference_kernels = false;             // runs polyop's operators by their reference kernels
  bool functions_alone = false;               // runs polyop's operators by the functions of the model
  std::string model;                          // the bytes of the model; "": reads the file
  std::string model_folder;                   // of the external data of `model`; "": the file's
  std::string profile;                        // prefix of the path of ONNX Runtime's profile; "": none
  bool optimize = true;                       // false: ONNX Runtime loads the graph as it is
  std::vector<std::string> optional_outputs;  // left out if they are not tensors that polyop supports
};

/// Returns the kernels that sessions of this process run: the instruction set, or "reference kernels" if POLYOP_KERNELS
/// requests them.
std::string KernelsText();

struct TensorInfo {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;        // -1: dynamic
  std::vector<std::string> symbols;  // names of dynamic extents, or ""
  std::string Text() const;          // "f32[1, 3, H, W]"
};

/// A model in ONNX Runtime with the operators of polyop and of packages registered. Throws Failure.
class Session {
 public:
  Session(const std::string& path, const SessionOptions& options);
  ~Session();

  const std::vector<TensorInfo>& inputs() const { return inputs_; }
  const std::vector<TensorInfo>& outputs() const { return outputs_; }
  /// Takes the inputs and returns the outputs in the order of inputs() and outputs().
  std::vector<Array> Run(const std::vector<Array>& inputs);
  /// Ends the profile of SessionOptions::profile and returns the path of its file.
  std::string EndProfile();
  const std::string& runtime_version() const { return version_; }
  /// Returns the metadata of the model: texts by their keys.
  std::map<std::string, std::string> Metadata() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::vector<TensorInfo> inputs_, outputs_;
  std::string version_;
};

}  // namespace polyop::cli
