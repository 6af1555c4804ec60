// Gathers columns of each channel by index, on the GPU.
#pragma once

#include "core/words.h"
#include "kernels/cuda/cuda.h"

namespace polyop {

/// Returns the bits of NaN of a floating type as a word.
template <class Word, class T>
constexpr Word NanWord() {
  if constexpr (std::is_same_v<T, float>) {
    return 0x7FC00000u;
  } else {
    return std::is_same_v<T, Half> ? 0x7E00u : 0x7FC0u;
  }
}

/// Computes gathered[b, c, j] = features[b, c, idx[b, j]], or `missing` for an index out of range.
template <class Word, class I>
Status GatherColumns(const CudaContext& cuda, const Word* features, const I* idx, int64_t channels, int64_t columns,
                     int64_t picks, Word missing, Word* gathered, int64_t size) {
  const Divider by_picks(picks), by_channels(channels);
  return ForEach(cuda, size, [=] POLYOP_DEVICE(int64_t i) {
    int64_t pick;
    const int64_t row = by_picks.Split(i, &pick);
    const int64_t column = idx[by_channels.Quotient(row) * picks + pick];
    gathered[i] = column >= 0 && column < columns ? features[row * columns + column] : missing;
  });
}

}  // namespace polyop
