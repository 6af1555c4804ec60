// SPDX-License-Identifier: Apache-2.0
// A tiled matrix product, one tile per block, whose factors are computed element by element on the fly: gathered
// samples, permuted weights, converted types.
#pragma once

#include <algorithm>

#include "kernels/cuda/warp_sums.h"

namespace polyop {

/// A block's tile: `rows` x kColumns sums of products of T, in float.
template <class T>
class TileProduct {
 public:
  static constexpr int kColumns = 64;
  static constexpr int kDepth = 16;
  static constexpr int kThreads = 256;
  static constexpr int kMinRows = 64;
  static constexpr int kMaxRows = 256;

  /// Returns the least number of rows of a tile that covers a matrix with `rows` rows, if possible: 64, 128 or 256.
  static constexpr int RowsFor(int64_t rows) {
    return rows <= kMinRows ? kMinRows : rows <= 2 * kMinRows ? 2 * kMinRows : kMaxRows;
  }
  static constexpr int64_t SharedBytes(int rows) {
    const int64_t factors = 2 * Elements(rows) * static_cast<int64_t>(sizeof(T));
    const int64_t sums = kWarps * kBand * kSide * static_cast<int64_t>(sizeof(float));
    return factors > sums ? factors : sums;
  }

  /// Must be constructed before the block takes other shared memory, because tensor cores need alignment to 32 bytes.
  /// Requires: the block has kThreads threads; `rows` is a result of RowsFor.
  POLYOP_DEVICE TileProduct(Block& block, int rows)
      : block_(block),
        bands_(rows / kMinRows),
        sums_(block),
        shared_(block.Shared<char>(static_cast<int>(SharedBytes(rows)))) {
    Clear();
  }

  /// Sets all sums to 0.
  POLYOP_DEVICE void Clear() {
    pending_ = false;
    block_.ForWarps([&](int warp) { sums_[warp].Clear(); });
  }

  /// The order in which neighbouring threads request elements: of the same depth (kAlong) or of ascending depth
  /// (kDeep).
  enum class Order { kAlong, kDeep };

  /// Adds the product of kDepth columns of the left factor and kDepth rows of the right one. a(k, row) and b(k, column)
  /// return elements as float, or 0 outside of the factors. They are not called after Add returns, and all threads have
  /// called them then.
  template <Order kOrderA, Order kOrderB, class A, class B>
  POLYOP_DEVICE void Add(const A& a, const B& b) {
    // Without branches between its loads, a thread waits for all of them at once.
    if (bands_ == 4) {
      Step<4, kOrderA, kOrderB>(a, b);
    } else if (bands_ == 2) {
      Step<2, kOrderA, kOrderB>(a, b);
    } else {
      Step<1, kOrderA, kOrderB>(a, b);
    }
  }

  /// Calls store(row, column, sum) for every sum; neighbouring threads have neighbouring columns.
  template <class F>
  POLYOP_DEVICE void Store(const F& store) {
    block_.ForWarps([&](int warp) {
      if (!pending_) return;
      if (bands_ == 4) {
        Multiply<4>(warp);
      } else if (bands_ == 2) {
        Multiply<2>(warp);
      } else {
        Multiply<1>(warp);
      }
    });
    pending_ = false;
    StoreBand<0>(store);
    if (bands_ > 1) StoreBand<1>(store);
    if (bands_ > 2) {
      StoreBand<2>(store);
      StoreBand<3>(store);
    }
  }

 private:
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kSide = 32;  // columns of a warp
  static constexpr int kBand = 16;  // rows of a warp are a multiple of it
  // So that the rows of a factor start in different banks.
  static constexpr int kPad = 16 / static_cast<int>(sizeof(T));
  static constexpr int kRightStep = kColumns + kPad;
  static constexpr int kPerThread = kDepth * kColumns / kThreads;
  static_assert(kMinRows == kColumns && kMinRows == kWarps / 2 * kBand && kColumns == 2 * kSide);

  // Elements of both factors of a step.
  POLYOP_HD static constexpr int64_t Elements(int rows) { return kDepth * (rows + kPad + kRightStep); }
  POLYOP_HD int LeftStep() const { return bands_ * kMinRows + kPad; }
  // [kDepth][rows + kPad], then [kDepth][kRightStep].
  POLYOP_DEVICE T* Half(bool half) const {
    return reinterpret_cast<T*>(shared_) + (half ? Elements(bands_ * kMinRows) : 0);
  }
  // Warps that are adjacent in pairs have the same rows.
  POLYOP_HD int Row(int warp) const { return warp / 2 * bands_ * kBand; }
  POLYOP_HD static int Column(int warp) { return warp % 2 * kSide; }

  template <Order kOrder, int kWidth>
  POLYOP_HD static int DepthOf(int t, int i) {
    return kOrder == Order::kAlong ? t / kWidth + i * (kThreads / kWidth) : t % kDepth;
  }
  template <Order kOrder, int kWidth>
  POLYOP_HD static int AlongOf(int t, int i) {
    return kOrder == Order::kAlong ? t % kWidth : t / kDepth + i * (kThreads / kDepth);
  }
  template <Order kOrder, int kWidth, class F>
  POLYOP_DEVICE static void Load(int t, const F& element, float* to) {
    for (int i = 0; i < kPerThread; ++i) to[i] = element(DepthOf<kOrder, kWidth>(t, i), AlongOf<kOrder, kWidth>(t, i));
  }
  template <Order kOrder, int kWidth>
  POLYOP_DEVICE static void Write(int t, const float* from, T* to, int step) {
    for (int i = 0; i < kPerThread; ++i) {
      to[DepthOf<kOrder, kWidth>(t, i) * step + AlongOf<kOrder, kWidth>(t, i)] = FromFloat<T>(from[i]);
    }
  }

  // Loads and writes elements while the warps multiply those of the last call, which are in the other half of the
  // shared memory.
  template <int kBands, Order kOrderA, Order kOrderB, class A, class B>
  POLYOP_DEVICE void Step(const A& a, const B& b) {
    struct Loaded {
      float left[kBands][kPerThread], right[kPerThread];
    };
    T* const to = Half(!half_);
    block_.ForThreadsAndWarps(
        [&](int t) {
          Loaded loaded;
          for (int band = 0; band < kBands; ++band) {
            Load<kOrderA, kMinRows>(t, [&](int k, int row) { return a(k, band * kMinRows + row); }, loaded.left[band]);
          }
          Load<kOrderB, kColumns>(t, b, loaded.right);
          return loaded;
        },
        [&](int warp) {
          if (pending_) Multiply<kBands>(warp);
        },
        [&](int t, const Loaded& loaded) {
          for (int band = 0; band < kBands; ++band) {
            Write<kOrderA, kMinRows>(t, loaded.left[band], to + band * kMinRows, LeftStep());
          }
          Write<kOrderB, kColumns>(t, loaded.right, to + kDepth * LeftStep(), kRightStep);
        });
    half_ = !half_;
    pending_ = true;
  }

  // Adds the product of the half that Add has written last.
  template <int kBands>
  POLYOP_DEVICE void Multiply(int warp) {
    const T* const left = Half(half_) + Row(warp);
    const T* const right = Half(half_) + kDepth * LeftStep() + Column(warp);
    sums_[warp].template Add<kBands>(left, LeftStep(), right, kRightStep);
  }

  template <int kWhich, class F>
  POLYOP_DEVICE void StoreBand(const F& store) {
    float* const staged = reinterpret_cast<float*>(shared_);  // [kWarps][kBand][kSide]
    block_.ForWarps([&](int warp) { sums_[warp].template Store<kWhich>(staged + warp * kBand * kSide); });
    block_.ForThreads([&](int t) {
      const int warp = t / 32, lane = t % 32;
      for (int i = 0; i < kBand; ++i) {
        store(Row(warp) + kWhich * kBand + i, Column(warp) + lane, staged[(warp * kBand + i) * kSide + lane]);
      }
    });
  }

  Block& block_;
  const int bands_;  // of each warp
  Block::WarpLocal<WarpSums<T>> sums_;
  char* const shared_;
  bool half_ = false;     // that Add has written last
  bool pending_ = false;  // whether it is not in the sums yet
};

/// The matrix of a tile, its first row and column, and the numbers of rows and columns to compute.
struct Tile {
  int64_t matrix, row, column, rows, columns;
};

/// Returns the rows of the tiles that ForTiles uses, at most `max_rows`: as many as possible, unless there are few
/// tiles or most of the last one is outside.
template <class T>
int RowsOfTiles(int64_t matrices, int64_t rows, int64_t columns, int max_rows = TileProduct<T>::kMaxRows) {
  using Product = TileProduct<T>;
  constexpr int64_t kTiles = 120;  // for the multiprocessors of a large GPU
  int tile = std::min(Product::RowsFor(rows), max_rows);
  for (; tile > Product::kMinRows; tile /= 2) {
    const int64_t down = BlocksFor(rows, tile), with_half = BlocksFor(rows, tile / 2);
    const bool fills =
        down * BlocksFor(columns, Product::kColumns) >= BlocksFor(kTiles, std::max<int64_t>(matrices, 1));
    if (fills && 2 * down * 4 <= with_half * 5) break;
  }
  return tile;
}

/// Computes `matrices` matrices of rows x columns: body(block, product, tile) adds to the product and stores it. Tiles
/// of neighbouring rows run concurrently. The body may take `shared_bytes` of shared memory in addition to the
/// product's. Tiles have at most `max_rows` rows.
///
///   ForTiles<T>(cuda, 1, rows, columns, 0, [=] POLYOP_DEVICE(Block&, TileProduct<T>& product, const Tile& tile) {
///     for (…) product.template Add<…>(…);
///     product.Store([&](int row, int column, float sum) { if (row < tile.rows && column < tile.columns) … });
///   });
template <class T, class Body>
Status ForTiles(const CudaContext& cuda, int64_t matrices, int64_t rows, int64_t columns, int64_t shared_bytes,
                const Body& body, int max_rows = TileProduct<T>::kMaxRows) {
  using Product = TileProduct<T>;
  const int tile_rows = RowsOfTiles<T>(matrices, rows, columns, max_rows);
  const int64_t down = BlocksFor(rows, tile_rows), across = BlocksFor(columns, Product::kColumns);
  const Divider by_down(down), by_across(across);
  return ForBlocks(cuda, matrices * down * across, Product::kThreads, Product::SharedBytes(tile_rows) + shared_bytes,
                   [=] POLYOP_DEVICE(Block& block) {
                     Product product(block, tile_rows);
                     Tile tile;
                     tile.matrix = by_across.Split(by_down.Split(block.index, &tile.row), &tile.column);
                     tile.row *= tile_rows;
                     tile.column *= Product::kColumns;
                     tile.rows = rows - tile.row < tile_rows ? rows - tile.row : tile_rows;
                     const int64_t rest = columns - tile.column;
                     tile.columns = rest < Product::kColumns ? rest : Product::kColumns;
                     body(block, product, tile);
                   });
}

}  // namespace polyop
