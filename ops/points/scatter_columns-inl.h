// SPDX-License-Identifier: Apache-2.0
// Adds columns to the columns that they were gathered from, for the gradients of gathers by index. Compiled once per
// instruction set; include it from a kernel file.
#if defined(POLYOP_OPS_POINTS_SCATTER_COLUMNS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_POINTS_SCATTER_COLUMNS_INL_H_
#undef POLYOP_OPS_POINTS_SCATTER_COLUMNS_INL_H_
#else
#define POLYOP_OPS_POINTS_SCATTER_COLUMNS_INL_H_
#endif

#include <algorithm>

#include "kernels/cpu/channel_blocks-inl.h"
#include "kernels/cpu/check_indices.h"
#include "kernels/cpu/scatter_blocks-inl.h"
#include "kernels/cpu/simd.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// Returns the division of columns [batches, channels, columns] into bands of at most 1 MiB of sums.
inline BandSplit SplitColumns(int64_t batches, int64_t channels, int64_t columns) {
  constexpr int64_t kBandColumns = 1 << 14, kEnoughItems = 4, kMinColumns = 1024;
  const int64_t planes = std::max<int64_t>(batches * ChannelBlocks::BlocksFor(channels), 1);
  const int64_t enough = std::min((kEnoughItems + planes - 1) / planes, columns / kMinColumns);
  const int64_t bands = std::max({(columns + kBandColumns - 1) / kBandColumns, enough, int64_t{1}});
  return BandSplit::Of(batches, channels, columns, 1, bands);
}

/// Sets to[b, c, idx[b, j, k]] to the sum of weight((b * picks + j) * each + k) * grad[b, c, j] over all j < picks and
/// k < each; 0 where there is none. A column whose weight is 0 adds nothing. `grad` is [batches, channels, picks], `to`
/// is [batches, channels, columns]. Requires: indices are in range.
template <class T, class I, class Weight>
Status ScatterColumns(const Context& context, const T* grad, const I* idx, int64_t batches, int64_t channels,
                      int64_t picks, int64_t each, int64_t columns, const Weight& weight, T* to) {
  if (batches * channels * columns == 0) return Status::Ok();
  constexpr int64_t kChunk = 128;
  return ScatterByBands(
      context, SplitColumns(batches, channels, columns), 0, to, [&](float*, const BlockBand& band) HWY_ATTR {
        HWY_ALIGN float tile[kChunk * kBlockChannels];
        const int64_t first = band.block * kBlockChannels, held = std::min(kBlockChannels, channels - first);
        for (int64_t begin = 0; begin < picks; begin += kChunk) {
          const int64_t count = std::min(kChunk, picks - begin), pick = band.image * picks + begin;
          InterleaveChannels(grad + (band.image * channels + first) * picks + begin, held, picks, count, tile);
          for (int64_t j = 0; j < count; ++j) {
            BlockSum column;
            column.Load(tile + j * kBlockChannels);
            for (int64_t k = (pick + j) * each; k < (pick + j + 1) * each; ++k) {
              const float w = weight(k);
              if (band.HasRow(idx[k]) && w != 0) AddToBlock(column, w, band.Row(idx[k]));
            }
          }
        }
      });
}

// Like ScatterColumns with all weights 1, directly in rows of `to`.
template <class I>
void AddColumnsToRows(const Context& context, const float* grad, const I* idx, int64_t batches, int64_t channels,
                      int64_t picks, int64_t columns, float* to) {
  constexpr int64_t kEnoughItems = 16;
  const int64_t rows = batches * channels / 4 >= kEnoughItems ? 4 : 1;  // per index that is read
  const int64_t groups = (channels + rows - 1) / rows;
  const double nanoseconds =
      static_cast<double>(rows) * (static_cast<double>(picks) + 0.2 * static_cast<double>(columns));
  context.ParallelFor(batches * groups, GrainFor(nanoseconds), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t batch = i / groups, first = i % groups * rows, held = std::min(rows, channels - first);
      const I* const column = idx + batch * picks;
      const float* const from = grad + (batch * channels + first) * picks;
      float* const sums = to + (batch * channels + first) * columns;
      std::fill_n(sums, held * columns, 0.0f);
      if (held < 4) {
        for (int64_t c = 0; c < held; ++c) {
          for (int64_t j = 0; j < picks; ++j) sums[c * columns + column[j]] += from[c * picks + j];
        }
        continue;
      }
      for (int64_t j = 0; j < picks; ++j) {
        float* const at = sums + column[j];
        for (int64_t c = 0; c < 4; ++c) at[c * columns] += from[c * picks + j];
      }
    }
  });
}

/// The gradient of ColumnGather (gather_columns.h) with respect to `features`: sets `to` to the sums of the gradients
/// `grad` [batches, channels, picks] of the copies of each column. Returns an error for an index out of range.
template <class T, class I>
Status GatherColumnsBackward(const Context& context, const T* grad, const Tensor<const T, 3>& features, const I* idx,
                             int64_t picks, T* to) {
  const int64_t batches = features.dim(0), columns = features.dim(2);
  POLYOP_RETURN_IF_ERROR(CheckIndices(context, "idx", idx, batches * picks, columns, "a column of 'features'"));
  if constexpr (std::is_same_v<T, float>) {
    // Blocks of channels move all columns twice, and whole blocks. That pays if many gradients are added to each
    // column.
    if (picks < 2 * columns || features.dim(1) < kBlockChannels / 2) {
      AddColumnsToRows(context, grad, idx, batches, features.dim(1), picks, columns, to);
      return Status::Ok();
    }
  }
  const auto one = [](int64_t) { return 1.0f; };
  return ScatterColumns(context, grad, idx, batches, features.dim(1), picks, 1, columns, one, to);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
