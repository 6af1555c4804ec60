// SPDX-License-Identifier: Apache-2.0
// The products of a sparse convolution on the GPU. In f16 and bf16, if the process has cuBLASLt, the rows of features
// of some outputs are written to columns, which it multiplies with the filters. Otherwise a block gathers rows into
// shared memory, offset by offset, and multiplies them with the filter there; f16 and bf16 on tensor cores.
//
// 100,000 voxels with 64 channels, 64 filters and 27 offsets are 11 billion products, 0.02 ms of an H200 in f16. Their
// columns are 345 MB, which are written and read within L2, 48 MiB at a time: about 0.1 ms each. In f32, the columns
// would need twice the time, and the products 0.28 ms, so that nothing would be won.
#pragma once

#include "kernels/cuda/library_product.h"
#include "kernels/cuda/pack.h"
#include "kernels/cuda/tile_product.h"
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

// Writes the rows of the outputs [first, first + count) to columns[count][offsets][channels]: their sum if there are
// several at an offset, 0 if there is none. A thread copies a pack of all offsets of an output.
template <class T, class Pairs>
Status GatherRows(const CudaContext& cuda, const GatheredFactors<T>& g, const Pairs& pairs, int64_t first,
                  int64_t count, T* columns) {
  constexpr int kWide = 16 / static_cast<int>(sizeof(T)), kAhead = 4;  // packs are loaded before the first is written
  using Channels = Pack<T, kWide>;
  const Divider parts(g.channels / kWide);
  return ForEach(cuda, count * (g.channels / kWide), [=] POLYOP_DEVICE(int64_t i) {
    int64_t part;
    const int64_t row = parts.Split(i, &part), o = first + row;
    typename Pairs::State state = pairs.Start(o);
    Channels* const to = reinterpret_cast<Channels*>(columns + row * g.offsets * g.channels) + part;
    const auto at = [&](int64_t entry) {
      return reinterpret_cast<const Channels*>(g.features + pairs.RowOf(entry) * g.channels) + part;
    };
    for (int64_t f = 0; f < g.offsets; f += kAhead) {
      EntryRange range[kAhead];
      Channels held[kAhead];
      for (int k = 0; k < kAhead; ++k) range[k] = f + k < g.offsets ? pairs.Find(state, o, f + k) : EntryRange{0, 0};
      for (int k = 0; k < kAhead; ++k) {
        for (T& value : held[k].of) value = FromFloat<T>(0);
        if (range[k].begin < range[k].end) held[k] = *at(range[k].begin);
      }
      for (int k = 0; k < kAhead; ++k) {
        if (f + k >= g.offsets) continue;
        for (int64_t entry = range[k].begin + 1; entry < range[k].end; ++entry) {
          const Channels next = *at(entry);
          for (int c = 0; c < kWide; ++c) {
            held[k].of[c] = FromFloat<T>(ToFloat(held[k].of[c]) + ToFloat(next.of[c]));
          }
        }
        to[(f + k) * parts.divisor()] = held[k];
      }
    }
  });
}

// Multiplies columns by the library, if the process has it: *done tells whether the output is complete.
template <class T, class Pairs>
Status MultiplyColumns(const CudaContext& cuda, const GatheredFactors<T>& g, const Pairs& pairs, bool* done) {
  constexpr int64_t kMaxColumns = (int64_t{48} << 20) / static_cast<int64_t>(sizeof(T)), kMinRows = 64;
  constexpr int64_t kWide = 16 / static_cast<int64_t>(sizeof(T));
  *done = false;
  const int64_t depth = g.offsets * g.channels;
  const bool packed = g.channels % kWide == 0 && Pack<T, kWide>::IsAligned(g.features);
  // An upper bound of the rows may be many times their number, which only the device knows.
  if (g.count != nullptr || depth == 0 || g.max_rows == 0 || !LibraryProduct::Available()) return cuda.Check();
  const int64_t most = std::max(kMaxColumns, kMinRows * depth), held = std::min(g.max_rows * depth, most);
  CudaContext attempt = cuda;  // whose scratch may be that of a process without the library
  T* const columns = attempt.Allocate<T>(held);
  T* const filters = attempt.Allocate<T>(depth * g.outputs);
  char* const workspace = attempt.Allocate<char>(LibraryProduct::kWorkspaceBytes);
  if (cuda.measuring()) {
    cuda.Allocate<T>(held);
    cuda.Allocate<T>(depth * g.outputs);
    cuda.Allocate<char>(LibraryProduct::kWorkspaceBytes);
    return cuda.Check();
  }
  if (!packed || !attempt.Check().ok()) return cuda.Check();
  const Divider by_outputs(g.outputs), by_channels(g.channels);
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, depth * g.outputs, [=] POLYOP_DEVICE(int64_t i) {
    int64_t k, channel;
    const int64_t f = by_channels.Split(by_outputs.Split(i, &k), &channel);
    filters[i] = FromFloat<T>(g.Weight(k, f, channel));
  }));
  const bool adds = g.bias != nullptr;
  if (adds) {
    POLYOP_RETURN_IF_ERROR(ForEach(cuda, g.max_rows * g.outputs, [=] POLYOP_DEVICE(int64_t i) {
      int64_t k;
      by_outputs.Split(i, &k);
      g.out[i] = g.bias[k];
    }));
  }
  const int64_t rounds = BlocksFor(g.max_rows, most / depth), rows = BlocksFor(g.max_rows, rounds);
  for (int64_t first = 0; first < g.max_rows; first += rows) {
    const int64_t count = std::min(rows, g.max_rows - first);
    POLYOP_RETURN_IF_ERROR(GatherRows(cuda, g, pairs, first, count, columns));
    const LibraryProduct product{.type = LibraryProduct::kTypeOf<T>,
                                 .count = 1,
                                 .rows = count,
                                 .columns = g.outputs,
                                 .depth = depth,
                                 .a = {columns, depth, 0},
                                 .b = {filters, g.outputs, 0},
                                 .c = g.out + first * g.outputs,
                                 .c_row_step = g.outputs,
                                 .c_matrix_step = 0,
                                 .adds = adds};
    if (!product.Launch(cuda, workspace)) return cuda.Check();
  }
  *done = true;
  if (g.activation.type == SparseActivation::kNone) return cuda.Check();
  return ForEach(cuda, g.max_rows * g.outputs,
                 [=] POLYOP_DEVICE(int64_t i) { g.out[i] = FromFloat<T>(g.activation(ToFloat(g.out[i]))); });
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
  namespace internal = gathered_product_internal;
  if (factors.outputs < kFew) return internal::MultiplyFew(cuda, factors, pairs);
  if constexpr (!std::is_same_v<T, float>) {
    bool done = false;
    POLYOP_RETURN_IF_ERROR(internal::MultiplyColumns(cuda, factors, pairs, &done));
    if (done) return Status::Ok();
  }
  return internal::MultiplyTiles(cuda, factors, pairs);
}

}  // namespace polyop
