// SPDX-License-Identifier: Apache-2.0
// The products of a sparse convolution on the GPU. A block gathers rows of features into shared memory, offset by
// offset, and multiplies them with the filter there; f16 and bf16 on tensor cores, which pieces of 16 bytes of features
// and filters reach without registers.
//
// 100,000 voxels with 64 channels, 64 filters and 27 offsets, of which two thirds have a voxel, are 22 billion
// multiplications and additions with the missing ones: 0.03 ms of an H200 in f16. Its 782 tiles of 128 outputs read 147
// MB of rows and 173 MB of filters from L2, 0.06 ms at 5.5 TB/s, and 17 MB from memory. Columns of all offsets, for a
// product by a library, would be written and read instead, 345 MB: 0.2 ms.
#pragma once

#include "kernels/cuda/copied_product.h"
#include "kernels/cuda/pack.h"
#include "kernels/cuda/tile_product.h"
#include "kernels/cuda/warp_lanes.h"
#include "ops/sparse/activation.h"

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
  int64_t feature_rows, channels;
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

// The offsets at which some outputs have entries, a bit each, and the maximum number of entries at one of them.
struct EntriesOfRows {
  uint32_t offsets = 0, most = 0;
};

POLYOP_HD inline EntriesOfRows Union(const EntriesOfRows& a, const EntriesOfRows& b) {
  EntriesOfRows both;
  both.offsets = a.offsets | b.offsets;
  both.most = a.most > b.most ? a.most : b.most;
  return both;
}

// Finds the offset of a piece of a row, with `pieces` each. Requires: the number of pieces of all offsets times
// `pieces` is below 2^32.
class OffsetOfPiece {
 public:
  explicit OffsetOfPiece(int pieces) : magic_(pieces > 1 ? UINT32_MAX / static_cast<uint32_t>(pieces) + 1 : 0) {}

  POLYOP_HD int operator()(int piece) const {
    if (magic_ == 0) return piece;
    return static_cast<int>(static_cast<uint64_t>(static_cast<uint32_t>(piece)) * magic_ >> 32);
  }

 private:
  uint32_t magic_;
};

// The same by pieces of 16 bytes. Channels of consecutive offsets are one depth. kByFilters: filters are neighbours in
// memory, else the channels of a filter are.
template <bool kByFilters, class T, class Pairs>
Status MultiplyPieces(const CudaContext& cuda, const GatheredFactors<T>& g, const Pairs& pairs) {
  using Product = CopiedProduct<T, 128, false, kByFilters>;
  using State = typename Pairs::State;
  constexpr int kRows = Product::kRows, kWarpsOfRows = kRows / kWarpLanes;
  constexpr int kAhead = 4;      // offsets of a row whose entries are requested together
  constexpr int kOffsets = 32;   // whose rows are known at a time
  constexpr int kMinBlocks = 3;  // whose copies together reach the bandwidth of L2
  constexpr int64_t kShared = Product::kSharedBytes + kOffsets * kRows * static_cast<int64_t>(sizeof(int32_t)) +
                              2 * kWarpsOfRows * static_cast<int64_t>(sizeof(EntriesOfRows));
  const int64_t across = BlocksFor(g.outputs, Product::kColumns);
  const Divider by_across(across);
  const auto channels = static_cast<int>(g.channels), pieces = channels / Product::kPiece;
  const OffsetOfPiece offset_of(pieces);
  const auto multiply = [=] POLYOP_DEVICE(Block& block) {
    Product product(block);
    int32_t* const from = block.Shared<int32_t>(kOffsets * kRows);  // the row of the features for each output, or -1
    EntriesOfRows* const entries = block.Shared<EntriesOfRows>(2 * kWarpsOfRows);
    int64_t column;
    const int64_t row = by_across.Split(block.index, &column) * kRows, total = g.rows();
    column *= Product::kColumns;
    if (row >= total) return;
    Block::Local<State> begins(block), ends(block);  // before and after some offsets
    block.ForThreads([&](int t) {
      if (t < kRows) ends[t] = pairs.Start(row + t < total ? row + t : row);
    });
    bool half = false;  // of `entries`, which another thread may still read while this one writes
    for (int64_t first = 0; first < g.offsets; first += kOffsets) {
      const int held = static_cast<int>(g.offsets - first < kOffsets ? g.offsets - first : kOffsets);
      uint32_t rounds = 1;
      for (uint32_t round = 0; round < rounds; ++round) {
        EntriesOfRows* const of_warps = entries + (half ? kWarpsOfRows : 0);
        half = !half;
        block.ForWarps([&](int warp) {
          if (warp >= kWarpsOfRows) return;
          Lanes<EntriesOfRows> found;
          ForLanes([&](int lane) {
            const int t = warp * kWarpLanes + lane;
            const bool exists = row + t < total;
            const int64_t o = exists ? row + t : row;
            if (round == 0) begins[t] = ends[t];
            State state = begins[t];
            EntriesOfRows own;
            const auto keep = [&](int f, const EntryRange& range) {
              const int64_t entry = range.begin + round;
              const bool has = exists && entry < range.end;
              from[f * kRows + t] = has ? static_cast<int32_t>(pairs.RowOf(entry)) : -1;
              own.offsets |= static_cast<uint32_t>(has ? 1 : 0) << f;
              const auto count = static_cast<uint32_t>(range.end - range.begin);
              own.most = exists && count > own.most ? count : own.most;
            };
            // Without branches between them, some entries are requested together.
            int f = 0;
            for (; f + kAhead <= held; f += kAhead) {
              EntryRange ranges[kAhead];
              for (int k = 0; k < kAhead; ++k) ranges[k] = pairs.Find(state, o, first + f + k);
              for (int k = 0; k < kAhead; ++k) keep(f + k, ranges[k]);
            }
            for (; f < held; ++f) keep(f, pairs.Find(state, o, first + f));
            ends[t] = state;
            found[lane] = own;
          });
          const EntriesOfRows all =
              found.Reduce([](const EntriesOfRows& a, const EntriesOfRows& b) { return Union(a, b); });
          ForLanes([&](int lane) {
            if (lane == 0) of_warps[warp] = all;
          });
        });
        EntriesOfRows all;
        for (int warp = 0; warp < kWarpsOfRows; ++warp) all = Union(all, of_warps[warp]);
        rounds = all.most;
        const int all_pieces = held * pieces;
        constexpr int kPieces = Product::kDepth / Product::kPiece;  // of a step
        // Skips steps whose offsets have no entry.
        const auto next = [&](int step) {
          for (++step; step * kPieces < all_pieces; ++step) {
            const int last = step * kPieces + kPieces < all_pieces ? step * kPieces + kPieces - 1 : all_pieces - 1;
            const int low = offset_of(step * kPieces), high = offset_of(last);
            if ((all.offsets >> low & ((uint32_t{2} << (high - low)) - 1)) != 0) return step;
          }
          return -1;
        };
        product.Add(
            next,
            [&](int step, int at, int k) {
              const int piece = step * kPieces + k / Product::kPiece, f = offset_of(piece);
              const int32_t source = piece < all_pieces ? from[f * kRows + at] : -1;
              const int channel = (piece - f * pieces) * Product::kPiece;
              return Piece<T>{g.features + (source >= 0 ? int64_t{source} * channels + channel : 0), source >= 0};
            },
            [&](int step, int at, int k) {
              const int piece = step * kPieces + k / Product::kPiece;
              const bool exists = piece < all_pieces && column + at < g.outputs;
              int64_t element = (column + at) * g.strides.filter;
              if constexpr (kByFilters) {
                const int f = offset_of(piece), channel = step * Product::kDepth + k - f * channels;
                element += (first + f) * g.strides.offset + channel * g.strides.channel;
              } else {
                element += first * g.strides.offset + step * Product::kDepth + k;
              }
              return Piece<T>{g.filters + (exists ? element : 0), exists};
            });
      }
    }
    product.Store([&](int at, int k, float sum) {
      if (row + at < total && column + k < g.outputs) g.Store(row + at, column + k, sum);
    });
  };
  return ForBlocks<Product::kThreads, kMinBlocks>(cuda, BlocksFor(g.max_rows, kRows) * across, Product::kThreads,
                                                  kShared, multiply);
}

// Returns whether the factors consist of pieces that MultiplyPieces copies.
template <bool kByFilters, class T>
bool HasPieces(const GatheredFactors<T>& g) {
  using Channels = Pack<T, 8>;
  constexpr int64_t kMaxChannels = 65536;  // so that 32 offsets can be numbered (OffsetOfPiece)
  if (g.channels == 0 || g.channels % 8 != 0 || g.channels > kMaxChannels) return false;
  if (g.feature_rows > INT32_MAX) return false;
  if (kByFilters && g.outputs % 8 != 0) return false;
  return Channels::IsAligned(g.features) && Channels::IsAligned(g.filters);
}

}  // namespace gathered_product_internal

/// `Pairs` has
///   State                        the state of an output between offsets, which ascend
///   State Start(o)
///   EntryRange Find(state, o, f) the entries that contribute to output o at offset f
///   int64_t RowOf(entry)         a row of the features
/// Filters have the strides of FilterStrides::Of, or, if kByFilters, of OfTransposed.
template <bool kByFilters, class T, class Pairs>
Status GatheredProductCuda(const CudaContext& cuda, const GatheredFactors<T>& factors, const Pairs& pairs) {
  constexpr int64_t kFew = 16;
  namespace internal = gathered_product_internal;
  if (factors.outputs < kFew) return internal::MultiplyFew(cuda, factors, pairs);
  if constexpr (!std::is_same_v<T, float>) {
    if (internal::HasPieces<kByFilters>(factors)) return internal::MultiplyPieces<kByFilters>(cuda, factors, pairs);
  }
  return internal::MultiplyTiles(cuda, factors, pairs);
}

}  // namespace polyop
