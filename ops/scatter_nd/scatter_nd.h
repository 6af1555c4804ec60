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
          "error, before anything is written; in an empty `data` nothing is looked at. `indices` are i32 or i64; the "
          "elements may be of any type.",
      .source = "ONNX ScatterND-11",
      .differences =
          "MMCV's TensorRT plugin takes i32 indices only, checks none, and leaves the order of "
          "duplicates open, as ONNX does.",
  };

  /// The tuples index leading dimensions of 'data', and 'updates' has what they select.
  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const Shape &data = inputs[0].shape, &indices = inputs[1].shape, &updates = inputs[2].shape;
    const int last = indices.rank() - 1;
    if (indices[last] > data.rank()) {
      return InvalidArgument("'indices' has shape ", ToString(indices), ", wanted at most ", data.rank(),
                             " in its last dimension: 'data' has shape ", ToString(data));
    }
    const int depth = static_cast<int>(indices[last]);
    bool same = updates.rank() == last + data.rank() - depth;
    std::string wanted;
    for (int d = 0; d < last + data.rank() - depth; ++d) {
      const int64_t extent = d < last ? indices[d] : data[d - last + depth];
      same = same && updates[d] == extent;
      wanted += (d ? ", " : "") + std::to_string(extent);
    }
    if (same) return Status::Ok();
    return InvalidArgument("'updates' has shape ", ToString(updates), ", wanted [", wanted,
                           "]: indices.shape[:-1] + data.shape[", depth, ":]");
  }
};

}  // namespace polyop
