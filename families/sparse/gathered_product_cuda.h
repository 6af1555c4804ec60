// The products of a sparse convolution on the GPU: a block gathers rows of features into shared memory, offset by
// offset, and multiplies them with the filter there; f16 and bf16 on tensor cores.
#pragma once

#include "families/sparse/activation.h"
#include "kernels/cuda/tile_product.h"

namespace polyop {

/// Entries [begin, end) of a list of rows.
struct EntryRange {
  int64_t begin, end;
};

/// Where the weights of a filter, an offset and a channel are.
struct FilterStrides {
  int64_t filter, offset, channel;

  /// filters[filters][offsets][channels].
  static FilterStrides Of(int64_t offsets, int64_t channels) { return {offsets * channels, channels, 1}; }
  /// The same filters, but with filters and channels exchanged.
  static FilterStrides OfTransposed(int64_t offsets, int64_t channels) { return {1, channels, offsets * channels}; }
};

/// Factors and output: out[max_rows][outputs], of which the first `*count` rows are computed, or all if it is null.
/// `bias` may be null.
template <class T>
struct GatheredFactors {
  const T* features;
  int64_t channels;
  const T* filters;
  FilterStrides strides;
  int64_t offsets, outputs;
  const T* bias;
  ActivationRule activation;
  int64_t max_rows;
  const int64_t* count;
  T* out;

  POLYOP_HD int64_t rows() const { return count != nullptr ? *count : max_rows; }
  POLYOP_HD float Weight(int64_t k, int64_t f, int64_t channel) const {
    return ToFloat(filters[k * strides.filter + f * strides.offset + channel * strides.channel]);
  }
  POLYOP_HD void Store(int64_t o, int64_t k, float sum) const {
    if (bias != nullptr) sum += ToFloat(bias[k]);
    out[o * outputs + k] = FromFloat<T>(activation(sum));
  }
};

namespace gathered_product_internal {

// For few filters: one thread per sum.
template <class T, class Pairs>
Status MultiplyFew(const CudaContext& cuda, const GatheredFactors<T>& g, const Pairs& pairs) {
  const Divider by_outputs(g.outputs);
  return ForEach(cuda, g.max_rows * g.outputs, [=] POLYOP_DEVICE(int64_t i) {
    int64_t k;
    const int64_t o = by_outputs.Split(i, &k);
    if (o >= g.rows()) return;
    typename Pairs::State state = pairs.Start(o);
    float sum = 0;
    for (int64_t f = 0; f < g.offsets; ++f) {
      const EntryRange range = pairs.Find(state, o, f);
      for (int64_t entry = range.begin; entry < range.end; ++entry) {
        const T* const row = g.features + pairs.RowOf(entry) * g.channels;
        for (int64_t c = 0; c < g.channels; ++c) sum = std::fma(ToFloat(row[c]), g.Weight(k, f, c), sum);
      }
    }
    g.Store(o, k, sum);
  });
}

// Each block computes a tile of outputs x filters.
template <class T, class Pairs>
Status MultiplyTiles(const CudaContext& cuda, const GatheredFactors<T>& g, const Pairs& pairs) {
  using Product = TileProduct<T>;
  using State = typename Pairs::State;
  constexpr int kMaxRows = 128;  // more would need too much shared memory
  const int rows = RowsOfTiles<T>(1, g.max_rows, g.outputs, kMaxRows);
  const int64_t shared = rows * static_cast<int64_t>(sizeof(State) + sizeof(EntryRange) + sizeof(int64_t)) + 64;
  const auto multiply = [=] POLYOP_DEVICE(Block& block, Product& product, const Tile& tile) {
    const int64_t total = g.rows();
    if (tile.row >= total) return;
    State* const states = block.Shared<State>(rows);
    EntryRange* const ranges = block.Shared<EntryRange>(rows);
    int64_t* const from = block.Shared<int64_t>(rows);  // the row of the features for each output, or -1
    int64_t* const rounds = block.Shared<int64_t>(1);   // maximum number of entries of an output
    const auto exists = [&](int row) { return row < tile.rows && tile.row + row < total; };
    block.ForThreads([&](int t) {
      for (int row = t; row < rows; row += block.threads()) {
        if (exists(row)) states[row] = pairs.Start(tile.row + row);
      }
    });
    for (int64_t f = 0; f < g.offsets; ++f) {
      block.ForThreads([&](int t) {
        if (t == 0) *rounds = 0;
      });
      block.ForThreads([&](int t) {
        for (int row = t; row < rows; row += block.threads()) {
          const EntryRange range = exists(row) ? pairs.Find(states[row], tile.row + row, f) : EntryRange{0, 0};
          ranges[row] = range;
          if (range.begin < range.end) AtomicMax(rounds, range.end - range.begin);
        }
      });
      const int64_t max_entries = *rounds;
      for (int64_t round = 0; round < max_entries; ++round) {
        block.ForThreads([&](int t) {
          for (int row = t; row < rows; row += block.threads()) {
            const int64_t entry = ranges[row].begin + round;
            from[row] = entry < ranges[row].end ? pairs.RowOf(entry) : -1;
          }
        });
        // Reads an element that exists instead of one outside, which needs no branches. There are features, because
        // there is an entry.
        for (int64_t channel = 0; channel < g.channels; channel += Product::kDepth) {
          const int64_t rest = g.channels - channel;
          const int depth = rest < Product::kDepth ? static_cast<int>(rest) : Product::kDepth;
          const int columns = static_cast<int>(tile.columns);
          product.template Add<Product::Order::kDeep, Product::Order::kDeep>(
              [&](int k, int row) {
                const int64_t held = from[row];
                const T* const features = g.features + (held < 0 ? 0 : held) * g.channels + channel;
                const float value = ToFloat(features[k < depth ? k : 0]);
                return k < depth && held >= 0 ? value : 0.0f;
              },
              [&](int k, int column) {
                const bool inside = k < depth && column < columns;
                const float value = g.Weight(tile.column + (inside ? column : 0), f, channel + (inside ? k : 0));
                return inside ? value : 0.0f;
              });
        }
      }
    }
    product.Store([&](int row, int column, float sum) {
      if (exists(row) && column < tile.columns) g.Store(tile.row + row, tile.column + column, sum);
    });
  };
  return ForTiles<T>(cuda, 1, g.max_rows, g.outputs, shared, multiply, kMaxRows);
}

}  // namespace gathered_product_internal

/// `Pairs` has
///   State                        the state of an output between offsets, which ascend
///   State Start(o)
///   EntryRange Find(state, o, f) the entries that contribute to output o at offset f
///   int64_t RowOf(entry)         a row of the features
template <class T, class Pairs>
Status GatheredProductCuda(const CudaContext& cuda, const GatheredFactors<T>& factors, const Pairs& pairs) {
  constexpr int64_t kFew = 16;
  const auto multiply = factors.outputs < kFew ? gathered_product_internal::MultiplyFew<T, Pairs>
                                               : gathered_product_internal::MultiplyTiles<T, Pairs>;
  return multiply(cuda, factors, pairs);
}

}  // namespace polyop
