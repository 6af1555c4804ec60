// SPDX-License-Identifier: Apache-2.0
// Gathers columns of each channel by index, on the CPU.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/check_indices.h"

namespace polyop {

/// Computes gathered[b, c, j] = features[b, c, idx[b, j]]. Returns an error for an index out of range.
template <class Word, class I>
struct ColumnGather {
  const Word* features;  // [batches, channels, columns]
  const I* idx;          // [batches, picks]
  Word* gathered;        // [batches, channels, picks]
  int64_t batches, channels, columns, picks;

  Status Run(const Context& context) const {
    POLYOP_RETURN_IF_ERROR(CheckIndices(context, "idx", idx, batches * picks, columns, "a column of 'features'"));
    const int64_t blocks = (channels + kChannels - 1) / kChannels, pieces = (picks + kPiece - 1) / kPiece;
    const int64_t nanoseconds = std::min(picks, kPiece) * kChannels;
    context.ParallelFor(batches * blocks * pieces, GrainFor(static_cast<double>(nanoseconds)),
                        [&](int64_t begin, int64_t end) {
                          for (int64_t i = begin; i < end; ++i) {
                            const int64_t batch = i / (blocks * pieces), first = i / pieces % blocks * kChannels;
                            const int64_t from = i % pieces * kPiece, to = std::min(picks, from + kPiece);
                            const int64_t rows = std::min(kChannels, channels - first);
                            rows == kChannels ? Copy(batch, first, from, to) : CopyRows(batch, first, rows, from, to);
                          }
                        });
    return Status::Ok();
  }

 private:
  static constexpr int64_t kChannels = 4;     // channels per index that is read
  static constexpr int64_t kPiece = 1 << 14;  // maximum number of picks per work item

  const Word* Row(int64_t batch, int64_t channel) const { return features + (batch * channels + channel) * columns; }
  Word* RowOut(int64_t batch, int64_t channel) const { return gathered + (batch * channels + channel) * picks; }

  void Copy(int64_t batch, int64_t c, int64_t from, int64_t to) const {
    const Word *const a = Row(batch, c), *const b = Row(batch, c + 1), *const d = Row(batch, c + 2),
                      *const e = Row(batch, c + 3);
    Word *const to_a = RowOut(batch, c), *const to_b = RowOut(batch, c + 1), *const to_d = RowOut(batch, c + 2),
                *const to_e = RowOut(batch, c + 3);
    const I* const column = idx + batch * picks;
    for (int64_t j = from; j < to; ++j) {
      const int64_t at = column[j];
      to_a[j] = a[at];
      to_b[j] = b[at];
      to_d[j] = d[at];
      to_e[j] = e[at];
    }
  }

  void CopyRows(int64_t batch, int64_t first, int64_t rows, int64_t from, int64_t to) const {
    const I* const column = idx + batch * picks;
    for (int64_t c = first; c < first + rows; ++c) {
      const Word* const row = Row(batch, c);
      Word* const row_out = RowOut(batch, c);
      for (int64_t j = from; j < to; ++j) row_out[j] = row[column[j]];
    }
  }
};

}  // namespace polyop
