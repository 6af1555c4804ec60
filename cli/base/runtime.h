// ONNX Runtime, found and loaded when a model runs: the program starts without it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/base/array.h"
#include "onnxruntime_cxx_api.h"

namespace polyop::cli {

/// More threads than this are a mistake, not a wish.
inline constexpr int kMaxThreads = 1024;

struct SessionOptions {
  std::string onnxruntime;             // path of libonnxruntime.so; "" looks for it
  std::vector<std::string> libraries;  // further custom-op libraries
  bool accelerate = false;             // polyop's kernels in the place of ONNX Runtime's own
  int threads = 0;                     // 0: as many as the machine has cores
  bool reference_kernels = false;      // polyop's operators by their naive kernels
  bool functions_alone = false;        // polyop's operators by the model's own functions
  std::string model;                   // the model's bytes; "" reads the file
  std::string profile;                 // where ONNX Runtime's profile goes, a path's beginning; "": none
};

struct TensorInfo {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;        // -1: dynamic
  std::vector<std::string> symbols;  // names of dynamic extents, "" where there is none
  std::string Text() const;          // "f32[1, 3, H, W]"
};

/// A model in ONNX Runtime with the operators of polyop and of packages registered. Throws Failure.
class Session {
 public:
  Session(const std::string& path, const SessionOptions& options);
  ~Session();

  const std::vector<TensorInfo>& inputs() const { return inputs_; }
  const std::vector<TensorInfo>& outputs() const { return outputs_; }
  /// Inputs in the model's order. Returns the outputs in theirs.
  std::vector<Array> Run(const std::vector<Array>& inputs);
  /// Ends the profile that the options asked for; returns its file.
  std::string EndProfile();
  const std::string& runtime_version() const { return version_; }
  const std::string& runtime_path() const { return path_; }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::vector<TensorInfo> inputs_, outputs_;
  std::string version_, path_;
};

}  // namespace polyop::cli
