// Which cells of a sparse convolution's input feed which of its output: attributes, and arithmetic for CPU and GPU.
#pragma once

#include <array>
#include <cstdint>
#include <tuple>

#include "core/definition.h"
#include "core/host_device.h"
#include "core/status.h"

namespace polyop {

/// The cells of input and output, (picture, z, y, x), and the filter that lies between them.
struct SparseGrid {
  int64_t batch, in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
  bool subm, transpose;

  POLYOP_HD int64_t offsets() const { return kernel[0] * kernel[1] * kernel[2]; }
  /// The place of offset `f` of the filter.
  POLYOP_HD void Split(int64_t f, int64_t r[3]) const {
    r[2] = f % kernel[2];
    r[1] = f / kernel[2] % kernel[1];
    r[0] = f / kernel[2] / kernel[1];
  }
  /// The extent of an axis in which cells of input and of output have their numbers.
  POLYOP_HD int64_t extent(int axis) const { return in[axis] > out[axis] ? in[axis] : out[axis]; }
  /// Numbers of cells are below it; they rise with (picture, z, y, x).
  POLYOP_HD int64_t cells() const { return batch * extent(0) * extent(1) * extent(2); }
  POLYOP_HD int64_t CellOf(int64_t picture, const int64_t at[3]) const {
    return ((picture * extent(0) + at[0]) * extent(1) + at[1]) * extent(2) + at[2];
  }
  template <class I>
  POLYOP_HD bool Contains(const I* row) const {
    bool inside = row[0] >= 0 && row[0] < batch;
    for (int a = 0; a < 3; ++a) inside = inside && row[a + 1] >= 0 && row[a + 1] < in[a];
    return inside;
  }

  /// The coordinate of the input that feeds coordinate `o` of the output at place `r` of the filter, if there is one.
  POLYOP_HD bool InputOf(int axis, int64_t o, int64_t r, int64_t* i) const {
    return (transpose ? Narrow(axis, o, r, i) : Widen(axis, o, r, i)) && *i < in[axis];
  }
  /// The coordinate of the output that coordinate `i` of the input feeds there.
  POLYOP_HD bool OutputOf(int axis, int64_t i, int64_t r, int64_t* o) const {
    return (transpose ? Widen(axis, i, r, o) : Narrow(axis, i, r, o)) && *o < out[axis];
  }
  /// The places [first, first + count) of the filter on an axis have their inputs within [*low, *high], which lies in
  /// the grid; false if there are none.
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
  /// The place at which coordinate `i` of the input feeds coordinate `o` of the output, or -1.
  POLYOP_HD int64_t PlaceOf(int axis, int64_t i, int64_t o) const {
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

/// The base of the structs of operators that find pairs.
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

  static constexpr int64_t kMostOffsets = 4096;
  static constexpr int64_t kMostExtent = (int64_t{1} << 31) - 1;

  Status Check() const {
    if (ksize[0] * ksize[1] * ksize[2] > kMostOffsets) {
      return InvalidArgument("attribute 'ksize' is ", Text(ksize), ", wanted at most ", kMostOffsets, " cells");
    }
    const SparseGrid grid = Grid();
    for (int a = 0; a < 3; ++a) {
      if (subm && ksize[a] % 2 == 0) {
        return InvalidArgument("attribute 'ksize' is ", Text(ksize), ", wanted odd numbers where subm = 1");
      }
      if (grid.out[a] >= 1 && grid.out[a] <= kMostExtent) continue;
      return InvalidArgument("the output's extent would be ", grid.out[a], " on axis ", a,
                             " of (z, y, x), wanted 1 to ", kMostExtent);
    }
    int64_t cells = batch_size;
    for (int a = 0; a < 3; ++a) {
      if (!__builtin_mul_overflow(cells, grid.extent(a), &cells)) continue;
      return InvalidArgument("a batch of ", batch_size, " grids of shape ", Text(spatial_shape),
                             " has more cells than 63 bits can number");
    }
    return Status::Ok();
  }

  /// Its arithmetic does not overflow: every attribute fits 31 bits.
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

  /// Rows are counted in 32 bits.
  static Status CheckRows(const AnyTensor& indices) {
    if (indices.shape[0] <= INT32_MAX) return Status::Ok();
    return InvalidArgument("'indices' has shape ", ToString(indices.shape), ": rows must fit 32 bits");
  }

 private:
  static std::string Text(const Triple& values) {
    return Concat("[", values[0], ", ", values[1], ", ", values[2], "]");
  }
};

// Of one input on one axis, the most outputs that it feeds: one for each step of the filter that the stride meets.
#define POLYOP_SPARSE_FED(AXIS) \
  "ceil_div(ksize[" AXIS "], 1 + (stride[" AXIS "] - 1) * (1 - transpose) * max(2 - dilation[" AXIS "], 0))"
/// How many outputs there can be, in a signature's terms.
#define POLYOP_SPARSE_MOST_OUTPUTS \
  "N * (subm + (1 - subm) * " POLYOP_SPARSE_FED("0") " * " POLYOP_SPARSE_FED("1") " * " POLYOP_SPARSE_FED("2") ")"

inline constexpr std::tuple kSparseConvAttributes = {
    Attr("batch_size", &SparseConvRule::batch_size, "pictures").Between(1, SparseConvRule::kMostExtent).Required(),
    Attr("spatial_shape", &SparseConvRule::spatial_shape, "the input's extents z, y, x")
        .Between(1, SparseConvRule::kMostExtent)
        .Required(),
    Attr("ksize", &SparseConvRule::ksize, "the filter's extents; one value serves all three, here and below")
        .Between(1, SparseConvRule::kMostOffsets)
        .Required(),
    Attr("stride", &SparseConvRule::stride, "steps of the filter").Between(1, SparseConvRule::kMostExtent),
    Attr("padding", &SparseConvRule::padding, "empty cells around the grid").Between(0, SparseConvRule::kMostExtent),
    Attr("dilation", &SparseConvRule::dilation, "steps between a filter's cells")
        .Between(1, SparseConvRule::kMostExtent),
    Attr("out_padding", &SparseConvRule::out_padding, "cells behind the grid of a transposed convolution")
        .Between(0, SparseConvRule::kMostExtent),
    Attr("subm", &SparseConvRule::subm,
         "submanifold: the outputs are the inputs, in their order; stride is 1 and padding ksize / 2 * dilation, "
         "whatever these attributes say"),
    Attr("transpose", &SparseConvRule::transpose, "input and output change places"),
    Attr("algo", &SparseConvRule::algo, "without effect").Between(0, 2),
};

inline constexpr const char* kSparseConvSource =
    "Graham et al., 3D Semantic Segmentation with Submanifold Sparse Convolutional Networks, 2018; spconv 2.x, as "
    "autoware_tensorrt_plugins has it";

}  // namespace polyop
