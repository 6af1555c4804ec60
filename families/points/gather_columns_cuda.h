// families/points/gather_columns.h on a GPU.
#pragma once

#include "core/words.h"
#include "kernels/cuda/cuda.h"

namespace polyop {

/// The NaN of a floating type, as the word that it lies in.
template <class Word, class T>
constexpr Word NanWord() {
  if constexpr (std::is_same_v<T, float>) {
    return 0x7FC00000u;
  } else {
    return std::is_same_v<T, Half> ? 0x7E00u : 0x7FC0u;
  }
}

/// gathered[b, c, j] = features[b, c, idx[b, j]]; a wrong index reads nothing and gives `missing`.
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
