// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// Copies `data` with some elements or slices replaced.
struct ScatterND {
  static constexpr const char* kName = "scatter_nd";
  static constexpr Signature kSignature = "data: T[...D], indices: I[...Q, k], updates: T[...U] -> output: T[...D]";
  static constexpr NodeName kNodes[] = {"mmcv::ScatterND", "mmdeploy::ScatterND"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {
      .summary = "Copies a tensor and overwrites the slices selected by indices.",
      .semantics = R"(The last dimension of `indices` holds the k leading coordinates of a slice of `data`;
          `updates` has the shape indices.shape[:-1] + data.shape[k:]. A negative index counts from the end. If
          several updates select the same slice, the last one wins, whatever the number of threads. An index out of
          range is an error, which is reported before anything is written; if `data` is empty, indices are not
          checked. `indices` are i32 or i64; the elements may be of any type.)",
      .source = "ONNX ScatterND-11",
      .differences = R"(MMCV's TensorRT plugin supports only i32 indices and does not check them. Like ONNX, it
          leaves the order of duplicates unspecified.)",
  };

  /// Checks that index tuples fit the rank of 'data' and that 'updates' has the shape of the selected slices.
  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const Shape &data = inputs[0].shape, &indices = inputs[1].shape, &updates = inputs[2].shape;
    const int last = indices.rank() - 1;
    if (indices[last] > data.rank()) {
      return InvalidArgument("'indices': expected at most ", data.rank(), " in the last dimension for 'data' of shape ",
                             ToString(data), ", got shape ", ToString(indices));
    }
    const int depth = static_cast<int>(indices[last]);
    bool same = updates.rank() == last + data.rank() - depth;
    std::string expected;
    for (int d = 0; d < last + data.rank() - depth; ++d) {
      const int64_t extent = d < last ? indices[d] : data[d - last + depth];
      same = same && updates[d] == extent;
      expected += (d ? ", " : "") + std::to_string(extent);
    }
    if (same) return Status::Ok();
    return InvalidArgument("'updates': expected shape [", expected, "], indices.shape[:-1] + data.shape[", depth,
                           ":], got ", ToString(updates));
  }
};

}  // namespace polyop
