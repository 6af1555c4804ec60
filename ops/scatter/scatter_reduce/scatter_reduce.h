// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "core/elements.h"
#include "core/host_device.h"
#include "core/operator.h"

namespace polyop {

/// Reduces elements or slices into those of another tensor that indices select.
struct ScatterReduce {
  enum class Reduction { kAdd, kMul, kMax, kMin, kMean };

  int64_t axis = 0;
  Reduction reduction = Reduction::kAdd;
  int64_t include_self = 1;

  static constexpr const char* kName = "scatter_reduce";
  static constexpr Signature kSignature = "data: T[...D], indices: I[...Q], updates: T[...U] -> output: T[...D]";
  static constexpr NodeName kNodes[] = {"polyop::ScatterReduce"};
  static constexpr std::tuple kAttributes = {
      Attr("axis", &ScatterReduce::axis, "the dimension of `data` that is indexed; negative: from the last one"),
      Attr("reduction", &ScatterReduce::reduction, "how elements are combined")
          .OneOf("add", "mul", "max", "min", "mean"),
      Attr("include_self", &ScatterReduce::include_self,
           "1: the elements of `data` are combined, too; 0: those that an index selects are replaced")
          .Between(0, 1),
  };
  static constexpr Doc kDoc = {
      .summary =
          "Copies a tensor, and adds, multiplies, averages or compares updates into the elements that indices "
          "select.",
      .semantics = R"(If `indices` has the shape of `updates`: for each element of `updates`, the element of `output`
          with the same coordinates, but for the one along `axis`, which is the index, is combined with it. Extents of
          `updates` along other dimensions may be smaller than those of `data`. If `indices` is a vector of K elements
          and `data` has two dimensions or more, it selects slices: `updates` has the shape of `data` with K along
          `axis`. A negative index counts from the end; an index out of range is an error. Updates are combined in
          their order, in the type of the elements; integers wrap around. NaN is greater and less than any number. The
          mean divides the sum by the number of elements, and exists for real types only. Elements that no index selects
          are copied.)",
      .source =
          "`torch.scatter_reduce`, `scatter_add`, `index_reduce` and `index_add`; ScatterElements of ONNX with a "
          "`reduction`",
      .differences = "ONNX has neither the mean nor `include_self`; ONNX Runtime's maximum ignores some NaN.",
  };

  int Axis(const Shape& data) const { return static_cast<int>(axis < 0 ? axis + data.rank() : axis); }

  /// Returns true if the indices select slices, and not elements.
  static bool SelectsSlices(const Shape& data, const Shape& indices) { return indices.rank() == 1 && data.rank() > 1; }

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const Shape &data = inputs[0].shape, &indices = inputs[1].shape, &updates = inputs[2].shape;
    if (reduction == Reduction::kMean && !IsReal(inputs[0].dtype)) {
      return InvalidArgument("'data': expected a real type for the mean, got ", NameOf(inputs[0].dtype));
    }
    const int rank = data.rank();
    if (rank == 0 || axis < -rank || axis >= rank) {
      return InvalidArgument("attribute 'axis': expected a dimension of 'data' of shape ", ToString(data), ", got ",
                             axis);
    }
    const int at = Axis(data);
    if (updates.rank() != rank) {
      return InvalidArgument("'updates': expected the dimensions of 'data' of shape ", ToString(data), ", got shape ",
                             ToString(updates));
    }
    const bool slices = SelectsSlices(data, indices);
    if (slices ? indices[0] != updates[at] : !(indices == updates)) {
      return InvalidArgument("'indices': expected ", slices ? "as many elements as" : "the shape of", " 'updates' of ",
                             "shape ", ToString(updates), slices ? " has along the axis" : "", ", got ",
                             ToString(indices));
    }
    for (int d = 0; d < rank; ++d) {
      if (d == at || (slices ? updates[d] == data[d] : updates[d] <= data[d])) continue;
      return InvalidArgument("'updates': expected ", slices ? "" : "at most ", data[d], " elements along dimension ", d,
                             ", as 'data', got shape ", ToString(updates));
    }
    return Status::Ok();
  }
};

/// A tensor as [outer, length, inner], and the updates as [outer, count, inner] of at most these extents.
struct ScatterLines {
  int64_t outer = 1, length = 1, inner = 1;
  int64_t update_outer = 1, count = 1, update_inner = 1;
  bool slices = false;
  int rank = 0, axis = 0;
  int64_t extent[kMaxRank] = {}, update_extent[kMaxRank] = {};

  ScatterLines(const ScatterReduce& op, const Shape& data, const Shape& indices, const Shape& updates)
      : slices(ScatterReduce::SelectsSlices(data, indices)), rank(data.rank()), axis(op.Axis(data)) {
    for (int d = 0; d < rank; ++d) {
      (d < axis ? outer : d > axis ? inner : length) *= data[d];
      (d < axis ? update_outer : d > axis ? update_inner : count) *= updates[d];
      extent[d] = data[d];
      update_extent[d] = updates[d];
    }
  }

  /// Returns true if the updates' coordinates before the axis, or after it, are those of the data.
  bool SameOuter() const { return outer == update_outer; }
  bool SameInner() const { return inner == update_inner; }

  /// Returns the position in the data of the updates' coordinates before the axis, or after it.
  POLYOP_HD int64_t OuterOf(int64_t at) const { return Position(at, 0, axis); }
  POLYOP_HD int64_t InnerOf(int64_t at) const { return Position(at, axis + 1, rank); }

 private:
  POLYOP_HD int64_t Position(int64_t at, int first, int last) const {
    int64_t position = 0, stride = 1;
    for (int d = last - 1; d >= first; --d) {
      position += at % update_extent[d] * stride;
      at /= update_extent[d];
      stride *= extent[d];
    }
    return position;
  }
};

/// Returns an index from the beginning; one that is out of range gives a number that is not in [0, length).
template <class I>
POLYOP_HD int64_t FromBeginning(I index, int64_t length) {
  return index < 0 ? int64_t{index} + length : int64_t{index};
}

}  // namespace polyop
