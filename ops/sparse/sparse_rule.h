// SPDX-License-Identifier: Apache-2.0
// Attributes of sparse convolutions, and the arithmetic that maps input cells to output cells, on CPU and GPU.
#pragma once

#include <array>
#include <cstdint>
#include <tuple>

#include "core/definition.h"
#include "core/host_device.h"
#include "core/status.h"

namespace polyop {

/// The cells (batch index, z, y, x) of input and output, and the filter.
struct SparseGrid {
  int64_t batch, in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
  bool subm, transpose;

  POLYOP_HD int64_t offsets() const { return kernel[0] * kernel[1] * kernel[2]; }
  /// Splits the flat offset `f` of the filter into offsets along the axes.
  POLYOP_HD void Split(int64_t f, int64_t r[3]) const {
    r[2] = f % kernel[2];
    r[1] = f / kernel[2] % kernel[1];
    r[0] = f / kernel[2] / kernel[1];
  }
  /// Returns the extent of an axis that indices of both input and output cells use.
  POLYOP_HD int64_t extent(int axis) const { return in[axis] > out[axis] ? in[axis] : out[axis]; }
  /// Returns the upper bound of cell indices, which ascend with (batch index, z, y, x).
  POLYOP_HD int64_t cells() const { return batch * extent(0) * extent(1) * extent(2); }
  POLYOP_HD int64_t CellOf(int64_t image, const int64_t at[3]) const {
    return ((image * extent(0) + at[0]) * extent(1) + at[1]) * extent(2) + at[2];
  }
  template <class I>
  POLYOP_HD bool Contains(const I* row) const {
    bool inside = row[0] >= 0 && row[0] < batch;
    for (int a = 0; a < 3; ++a) inside = inside && row[a + 1] >= 0 && row[a + 1] < in[a];
    return inside;
  }

  /// Computes the input coordinate of output coordinate `o` at offset `r` of the filter. Returns false if there is
  /// none.
  POLYOP_HD bool InputOf(int axis, int64_t o, int64_t r, int64_t* i) const {
    return (transpose ? Narrow(axis, o, r, i) : Widen(axis, o, r, i)) && *i < in[axis];
  }
  /// Computes the output coordinate of input coordinate `i` at offset `r`. Returns false if there is none.
  POLYOP_HD bool OutputOf(int axis, int64_t i, int64_t r, int64_t* o) const {
    return (transpose ? Widen(axis, i, r, o) : Narrow(axis, i, r, o)) && *o < out[axis];
  }
  /// Computes a range [*low, *high] inside the grid that contains the input coordinates of `o` at offsets
  /// [first, first + count) of an axis. Returns false if it is empty.
  POLYOP_HD bool InputsOf(int axis, int64_t o, int64_t first, int64_t count, int64_t* low, int64_t* high) const {
    const int64_t near = first * dilation[axis], far = (first + count - 1) * dilation[axis];
    if (transpose) {
      const int64_t steps = o + padding[axis] - far;
      if (o + padding[axis] < near) return false;
      *low = steps > 0 ? (steps + stride[axis] - 1) / stride[axis] : 0;
      *high = (o + padding[axis] - near) / stride[axis];
    } else {
      *low = o * stride[axis] - padding[axis] + near;
      *high = *low - near + far;
      if (*low < 0) *low = 0;
    }
    if (*high >= in[axis]) *high = in[axis] - 1;
    return *low <= *high;
  }
  /// Returns the offset along an axis at which input coordinate `i` contributes to output coordinate `o`, or -1.
  POLYOP_HD int64_t KernelOffsetOf(int axis, int64_t i, int64_t o) const {
    const int64_t steps = padding[axis] + (transpose ? o - i * stride[axis] : i - o * stride[axis]);
    const int64_t r = dilation[axis] == 1 ? steps : steps / dilation[axis];
    return steps >= 0 && r * dilation[axis] == steps && r < kernel[axis] ? r : -1;
  }

 private:
  POLYOP_HD bool Widen(int axis, int64_t narrow, int64_t r, int64_t* wide) const {
    *wide = narrow * stride[axis] - padding[axis] + r * dilation[axis];
    return *wide >= 0;
  }
  POLYOP_HD bool Narrow(int axis, int64_t wide, int64_t r, int64_t* narrow) const {
    const int64_t steps = wide + padding[axis] - r * dilation[axis];
    *narrow = steps / stride[axis];
    return steps >= 0 && *narrow * stride[axis] == steps;
  }
};

/// The base of the parameters of operators that find pairs.
struct SparseConvRule {
  using Triple = std::array<int64_t, 3>;
  int64_t batch_size = 1;
  Triple spatial_shape = {8, 8, 8};
  Triple ksize = {3, 3, 3};
  Triple stride = {1, 1, 1};
  Triple padding = {0, 0, 0};
  Triple dilation = {1, 1, 1};
  Triple out_padding = {0, 0, 0};
  bool subm = false;
  bool transpose = false;
  int64_t algo = 1;

  static constexpr int64_t kMaxOffsets = 4096;
  static constexpr int64_t kMaxExtent = (int64_t{1} << 31) - 1;

  Status Check() const {
    if (ksize[0] * ksize[1] * ksize[2] > kMaxOffsets) {
      return InvalidArgument("attribute 'ksize': expected at most ", kMaxOffsets, " cells, got ", Text(ksize));
    }
    const SparseGrid grid = Grid();
    for (int a = 0; a < 3; ++a) {
      if (subm && ksize[a] % 2 == 0) {
        return InvalidArgument("attribute 'ksize': expected odd numbers because subm = 1, got ", Text(ksize));
      }
      if (grid.out[a] >= 1 && grid.out[a] <= kMaxExtent) continue;
      return InvalidArgument("expected an output extent in [1, ", kMaxExtent, "] on axis ", a, " of (z, y, x), got ",
                             grid.out[a]);
    }
    int64_t cells = batch_size;
    for (int a = 0; a < 3; ++a) {
      if (!__builtin_mul_overflow(cells, grid.extent(a), &cells)) continue;
      return InvalidArgument("expected fewer than 2^63 cells, got a batch of ", batch_size, " grids of shape ",
                             Text(spatial_shape));
    }
    return Status::Ok();
  }

  /// Returns the grid. The arithmetic does not overflow because every attribute fits 31 bits.
  SparseGrid Grid() const {
    SparseGrid grid{};
    grid.batch = batch_size;
    grid.subm = subm;
    grid.transpose = transpose && !subm;
    for (size_t a = 0; a < 3; ++a) {
      const int64_t reach = dilation[a] * (ksize[a] - 1);
      grid.in[a] = spatial_shape[a];
      grid.kernel[a] = ksize[a];
      grid.dilation[a] = dilation[a];
      grid.stride[a] = subm ? 1 : stride[a];
      grid.padding[a] = subm ? reach / 2 : padding[a];
      const int64_t steps = grid.in[a] + 2 * grid.padding[a] - reach - 1;
      grid.out[a] = grid.transpose ? (grid.in[a] - 1) * stride[a] - 2 * padding[a] + ksize[a] + out_padding[a]
                    : steps < 0    ? 0
                                   : steps / grid.stride[a] + 1;
    }
    return grid;
  }

  /// Checks that 32 bits can index the rows.
  static Status CheckRows(const AnyTensor& indices) {
    if (indices.shape[0] <= INT32_MAX) return Status::Ok();
    return InvalidArgument("'indices': expected at most 2147483647 rows, got ", indices.shape[0]);
  }

 private:
  static std::string Text(const Triple& values) {
    return Concat("[", values[0], ", ", values[1], ", ", values[2], "]");
  }
};

// Maximum number of outputs per input on one axis: one for each offset of the filter that the stride meets.
#define POLYOP_SPARSE_FED(AXIS) \
  "ceil_div(ksize[" AXIS "], 1 + (stride[" AXIS "] - 1) * (1 - transpose) * max(2 - dilation[" AXIS "], 0))"
// Extent of the output grid on one axis, as Grid() computes it.
#define POLYOP_SPARSE_OUT(AXIS)                                                                                       \
  "(transpose * ((spatial_shape[" AXIS "] - 1) * stride[" AXIS "] - 2 * padding[" AXIS "] + ksize[" AXIS              \
  "] + out_padding[" AXIS "]) + (1 - transpose) * ((spatial_shape[" AXIS "] + 2 * padding[" AXIS "] - dilation[" AXIS \
  "] * (ksize[" AXIS "] - 1) - 1) / stride[" AXIS "] + 1))"
/// Maximum number of outputs as an expression of signatures: the number of outputs that inputs feed, but no more than
/// the output grid has cells. Without the latter, the bounds of stacked convolutions would multiply.
#define POLYOP_SPARSE_MAX_OUTPUTS \
  "subm * N + min((1 - subm) * N * " POLYOP_SPARSE_FED("0") " * " POLYOP_SPARSE_FED("1") " * " POLYOP_SPARSE_FED("2") \
  ", (1 - subm) * batch_size * " POLYOP_SPARSE_OUT("0") " * " POLYOP_SPARSE_OUT("1") " * " POLYOP_SPARSE_OUT("2") ")"

inline constexpr std::tuple kSparseConvAttributes = {
    Attr("batch_size", &SparseConvRule::batch_size, "number of grids in the batch")
        .Between(1, SparseConvRule::kMaxExtent)
        .Required(),
    Attr("spatial_shape", &SparseConvRule::spatial_shape, "extents (z, y, x) of the input grid")
        .Between(1, SparseConvRule::kMaxExtent)
        .Required(),
    Attr("ksize", &SparseConvRule::ksize,
         "extents (z, y, x) of the filter; here and below, a single value is used for all axes")
        .Between(1, SparseConvRule::kMaxOffsets)
        .Required(),
    Attr("stride", &SparseConvRule::stride, "stride (z, y, x)").Between(1, SparseConvRule::kMaxExtent),
    Attr("padding", &SparseConvRule::padding, "padding (z, y, x)").Between(0, SparseConvRule::kMaxExtent),
    Attr("dilation", &SparseConvRule::dilation, "distance (z, y, x) of the filter's cells")
        .Between(1, SparseConvRule::kMaxExtent),
    Attr("out_padding", &SparseConvRule::out_padding,
         "cells added at the end of the output grid of a transposed convolution")
        .Between(0, SparseConvRule::kMaxExtent),
    Attr("subm", &SparseConvRule::subm,
         "1: submanifold convolution, whose outputs are the inputs in the same order. Stride is then 1 and padding "
         "ksize / 2 * "
         "dilation; the attributes are ignored"),
    Attr("transpose", &SparseConvRule::transpose, "1: transposed convolution"),
    Attr("algo", &SparseConvRule::algo, "ignored").Between(0, 2),
};

inline constexpr const char* kSparseConvSource =
    "Graham et al., 3D Semantic Segmentation with Submanifold Sparse Convolutional Networks, 2018; spconv 2.x as in "
    "autoware_tensorrt_plugins";

}  // namespace polyop
