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

  /// A work item is a piece of the indices of a block of channels.
  Status Run(const Context& context) const {
    POLYOP_RETURN_IF_ERROR(CheckIndices(context, "idx", idx, batches * picks, columns, "a column of 'features'"));
    const int64_t blocks = (channels + kChannels - 1) / kChannels, pieces = (picks + kPiece - 1) / kPiece;
    const auto nanoseconds = static_cast<double>(std::min(picks, kPiece) * kChannels);
    context.ParallelFor(batches * blocks * pieces, GrainFor(nanoseconds), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t batch = i / (blocks * pieces), channel = i / pieces % blocks * kChannels;
        const int64_t from = i % pieces * kPiece, to = std::min(picks, from + kPiece);
        CopyBlock(batch, channel, from, to);
      }
    });
    return Status::Ok();
  }

 private:
  static constexpr int64_t kChannels = 4;     // channels of a block: an index is read once for all of them
  static constexpr int64_t kPiece = 1 << 14;  // maximum number of picks per work item

  // Copies picks [from, to) of the block of channels that begins with `channel`.
  void CopyBlock(int64_t batch, int64_t channel, int64_t from, int64_t to) const {
    if (channel + kChannels <= channels) return Copy<kChannels>(batch, channel, from, to);
    for (int64_t c = channel; c < channels; ++c) Copy<1>(batch, c, from, to);
  }

  // Copies picks [from, to) of kRows channels.
  template <int64_t kRows>
  void Copy(int64_t batch, int64_t channel, int64_t from, int64_t to) const {
    const Word* const rows = features + (batch * channels + channel) * columns;
    Word* const rows_out = gathered + (batch * channels + channel) * picks;
    const I* const column = idx + batch * picks;
    for (int64_t j = from; j < to; ++j) {
      const int64_t at = column[j];
      for (int64_t c = 0; c < kRows; ++c) rows_out[c * picks + j] = rows[c * columns + at];
    }
  }
};

}  // namespace polyop
