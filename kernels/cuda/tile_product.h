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

  /// Returns the rows of a tile for a matrix with `rows` rows.
  static int RowsFor(int64_t rows) {
    return static_cast<int>(std::clamp<int64_t>(BlocksFor(rows, kSide) * kSide, kSide, kMaxRows));
  }
  /// Returns the number of threads: one warp per square.
  static constexpr int ThreadsFor(int rows) { return rows / kSide * (kColumns / kSide) * 32; }
  static constexpr int64_t SharedBytes(int rows) {
    const int64_t factors = kDepth * (rows + kPad + kColumns + kPad) * static_cast<int64_t>(sizeof(T));
    const int64_t sums = ThreadsFor(rows) / 32 * kSide * (kSide / 2) * static_cast<int64_t>(sizeof(float));
    return factors > sums ? factors : sums;
  }

  /// Must be constructed before the block takes other shared memory, because tensor cores need alignment to 32 bytes.
  POLYOP_DEVICE TileProduct(Block& block, int rows)
      : block_(block), rows_(rows), sums_(block), shared_(block.Shared<char>(static_cast<int>(SharedBytes(rows)))) {
    Clear();
  }

  /// Sets all sums to 0.
  POLYOP_DEVICE void Clear() {
    block_.ForWarps([&](int warp) { sums_[warp].Clear(); });
  }

  /// The order in which neighbouring threads request elements: of the same depth (kAlong) or of ascending depth
  /// (kDeep).
  enum class Order { kAlong, kDeep };

  /// Adds the product of kDepth columns of the left factor and kDepth rows of the right one. a(k, row) and b(k, column)
  /// return elements as float, or 0 outside of the factors.
  template <Order kOrderA, Order kOrderB, class A, class B>
  POLYOP_DEVICE void Add(const A& a, const B& b) {
    T* const left = reinterpret_cast<T*>(shared_);  // [kDepth][rows + kPad]
    T* const right = left + kDepth * LeftStep();    // [kDepth][kColumns + kPad]
    block_.ForThreads([&](int t) {
      Fill<kOrderB>(t, kColumns, kColumns + kPad, b, right);
      Fill<kOrderA>(t, rows_, LeftStep(), a, left);
    });
    block_.ForWarps([&](int warp) {
      sums_[warp].Add(left + Row(warp), LeftStep(), right + Column(warp), kColumns + kPad, kDepth);
    });
  }

  /// Calls store(row, column, sum) for every sum; neighbouring threads have neighbouring columns.
  template <class F>
  POLYOP_DEVICE void Store(const F& store) {
    StoreHalf<0>(store);
    StoreHalf<1>(store);
  }

 private:
  static constexpr int kSide = 32;  // side of a warp's square
  static constexpr int kMaxRows = 128;
  static constexpr int kPad = 8;  // so that the rows of a factor start in different banks

  // Squares are adjacent in pairs.
  POLYOP_HD static int Row(int warp) { return warp / (kColumns / kSide) * kSide; }
  POLYOP_HD static int Column(int warp) { return warp % (kColumns / kSide) * kSide; }
  POLYOP_HD int LeftStep() const { return rows_ + kPad; }

  // Requires: the number of threads is a multiple of `width` and of kDepth.
  template <Order kOrder, class F>
  POLYOP_DEVICE void Fill(int t, int width, int step, const F& element, T* to) const {
    const int threads = block_.threads();
    if constexpr (kOrder == Order::kAlong) {
      const int along = t % width, strips = threads / width;
      for (int k = t / width; k < kDepth; k += strips) to[k * step + along] = FromFloat<T>(element(k, along));
    } else {
      const int k = t % kDepth;
      for (int along = t / kDepth; along < width; along += threads / kDepth) {
        to[k * step + along] = FromFloat<T>(element(k, along));
      }
    }
  }

  template <int kHalf, class F>
  POLYOP_DEVICE void StoreHalf(const F& store) {
    constexpr int kHeight = kSide / 2;
    float* const staged = reinterpret_cast<float*>(shared_);  // [warps][kHeight][kSide]
    block_.ForWarps([&](int warp) { sums_[warp].template Store<kHalf>(staged + warp * kHeight * kSide); });
    block_.ForThreads([&](int t) {
      const int warp = t / 32, lane = t % 32;
      for (int i = 0; i < kHeight; ++i) {
        store(Row(warp) + kHalf * kHeight + i, Column(warp) + lane, staged[(warp * kHeight + i) * kSide + lane]);
      }
    });
  }

  Block& block_;
  const int rows_;
  Block::WarpLocal<WarpSums<T>> sums_;
  char* const shared_;
};

/// The matrix of a tile, its first row and column, and the numbers of rows and columns to compute.
struct Tile {
  int64_t matrix, row, column, rows, columns;
};

/// Computes `matrices` matrices of rows x columns: body(block, product, tile) adds to the product and stores it. Tiles
/// of neighbouring rows run concurrently. The body may take `shared_bytes` of shared memory in addition to the
/// product's.
///
///   ForTiles<T>(cuda, 1, rows, columns, 0, [=] POLYOP_DEVICE(Block&, TileProduct<T>& product, const Tile& tile) {
///     for (…) product.template Add<…>(…);
///     product.Store([&](int row, int column, float sum) { if (row < tile.rows && column < tile.columns) … });
///   });
template <class T, class Body>
Status ForTiles(const CudaContext& cuda, int64_t matrices, int64_t rows, int64_t columns, int64_t shared_bytes,
                const Body& body) {
  using Product = TileProduct<T>;
  const int max_rows = Product::RowsFor(rows);
  const int64_t down = BlocksFor(rows, max_rows), across = BlocksFor(columns, Product::kColumns);
  const Divider by_down(down), by_across(across);
  return ForBlocks(cuda, matrices * down * across, Product::ThreadsFor(max_rows),
                   Product::SharedBytes(max_rows) + shared_bytes, [=] POLYOP_DEVICE(Block& block) {
                     Product product(block, max_rows);
                     Tile tile;
                     tile.matrix = by_across.Split(by_down.Split(block.index, &tile.row), &tile.column);
                     tile.row *= max_rows;
                     tile.column *= Product::kColumns;
                     tile.rows = rows - tile.row < max_rows ? rows - tile.row : max_rows;
                     const int64_t rest = columns - tile.column;
                     tile.columns = rest < Product::kColumns ? rest : Product::kColumns;
                     body(block, product, tile);
                   });
}

}  // namespace polyop
