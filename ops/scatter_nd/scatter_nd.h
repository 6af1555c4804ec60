#pragma once

#include "core/operator.h"

namespace polyop {

/// A copy of `data` with some elements or slices replaced.
struct ScatterND {
  static constexpr const char* kName = "scatter_nd";
  static constexpr Signature kSignature = "data: T[...D], indices: I[...Q, k], updates: T[...U] -> output: T[...D]";
  static constexpr NodeName kNodes[] = {"mmcv::ScatterND", "mmdeploy::ScatterND"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = "Copies a tensor and overwrites the slices that indices name.",
      .semantics =
          "The last dimension of `indices` holds the k leading coordinates of a slice of `data`; `updates` has the "
          "shape indices.shape[:-1] + data.shape[k:]. A negative index counts from the end. Where several updates "
          "name the same slice the last of them wins, whatever the number of threads. An index out of range is an "
          "error, before anything is written. `indices` are i32 or i64; the elements may be of any type.",
      .source = "ONNX ScatterND-11",
      .differences =
          "MMCV's TensorRT plugin takes i32 indices only, checks none, and leaves the order of "
          "duplicates open, as ONNX does.",
  };
};

}  // namespace polyop
