// SPDX-License-Identifier: Apache-2.0
// Compiled as C++, where kernels run on the CPU (kernels/cuda/cuda.h).
#include "kernels/cuda/tile_product.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/cuda/transpose.h"

namespace polyop {
namespace {

// Small integers, whose sums of products are exact.
float Left(int64_t row, int64_t k) { return static_cast<float>((row * 5 + k * 3) % 7 - 3); }
float Right(int64_t k, int64_t column) { return static_cast<float>((k * 2 + column * 11) % 9 - 4); }

float SumOfProducts(int64_t row, int64_t column, int64_t begin, int64_t end) {
  float sum = 0;
  for (int64_t k = begin; k < end; ++k) sum += Left(row, k) * Right(k, column);
  return sum;
}

template <class T>
class TileProductTest : public ::testing::Test {
 protected:
  ~TileProductTest() override { cuda_emulation::reversed = false; }

  const CudaContext cuda_{nullptr, nullptr, 0};
};
using Types = ::testing::Types<float, Half, BFloat16>;
TYPED_TEST_SUITE(TileProductTest, Types);

// Adds `steps` products in each of the two orders after sums that it clears.
template <class T>
std::vector<float> Multiply(const CudaContext& cuda, int rows, int steps, bool clear) {
  using Product = TileProduct<T>;
  using Order = typename Product::Order;
  std::vector<float> sums(static_cast<size_t>(rows) * Product::kColumns, -1);
  float* const to = sums.data();
  const Status status = ForBlocks(cuda, 1, Product::kThreads, Product::SharedBytes(rows), [=](Block& block) {
    Product product(block, rows);
    for (int round = 0; round < (clear ? 2 : 1); ++round) {
      if (round > 0) product.Clear();
      for (int step = 0; step < steps; ++step) {
        const int first = step * Product::kDepth;
        const auto a = [=](int k, int row) { return Left(row, first + k); };
        const auto b = [=](int k, int column) { return Right(first + k, column); };
        if (step % 2 == 0) {
          product.template Add<Order::kAlong, Order::kDeep>(a, b);
        } else {
          product.template Add<Order::kDeep, Order::kAlong>(a, b);
        }
      }
      product.Store([&](int row, int column, float sum) { to[row * Product::kColumns + column] = sum; });
    }
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return sums;
}

TYPED_TEST(TileProductTest, AddsProductsOfEveryHeight) {
  using Product = TileProduct<TypeParam>;
  for (const int rows : {64, 128, 256}) {
    for (const int steps : {0, 1, 4}) {
      for (const bool reversed : {false, true}) {
        for (const bool clear : {false, true}) {
          SCOPED_TRACE(::testing::Message() << rows << " rows, " << steps << " steps, reversed " << reversed);
          cuda_emulation::reversed = reversed;
          const std::vector<float> got = Multiply<TypeParam>(this->cuda_, rows, steps, clear);
          for (int row = 0; row < rows; ++row) {
            for (int column = 0; column < Product::kColumns; ++column) {
              ASSERT_EQ(got[static_cast<size_t>(row * Product::kColumns + column)],
                        SumOfProducts(row, column, 0, steps * Product::kDepth))
                  << row << ", " << column;
            }
          }
        }
      }
    }
  }
}

TYPED_TEST(TileProductTest, TilesCoverMatricesOfEverySize) {
  using Product = TileProduct<TypeParam>;
  for (const int64_t rows : {1, 200, 300}) {
    for (const int64_t columns : {1, 70}) {
      constexpr int64_t kMatrices = 3, kDepth = 20;
      std::vector<float> sums(static_cast<size_t>(kMatrices * rows * columns), -1);
      float* const to = sums.data();
      const auto multiply = [=](Block&, Product& product, const Tile& tile) {
        for (int64_t first = 0; first < kDepth; first += Product::kDepth) {
          product.template Add<Product::Order::kDeep, Product::Order::kDeep>(
              [&](int k, int row) { return first + k < kDepth ? Left(tile.row + row, first + k) : 0.0f; },
              [&](int k, int column) { return first + k < kDepth ? Right(first + k, tile.column + column) : 0.0f; });
        }
        product.Store([&](int row, int column, float sum) {
          if (row >= tile.rows || column >= tile.columns) return;
          to[(tile.matrix * rows + tile.row + row) * columns + tile.column + column] =
              sum + static_cast<float>(tile.matrix);
        });
      };
      const Status status = ForTiles<TypeParam>(this->cuda_, kMatrices, rows, columns, 0, multiply);
      ASSERT_TRUE(status.ok()) << status.message();
      for (size_t i = 0; i < sums.size(); ++i) {
        const int64_t at = static_cast<int64_t>(i), column = at % columns, row = at / columns % rows;
        ASSERT_EQ(sums[i], SumOfProducts(row, column, 0, kDepth) + static_cast<float>(at / columns / rows)) << i;
      }
    }
  }
}

TEST(RowsOfTiles, FillsTheGpuAndWastesLittle) {
  EXPECT_EQ(RowsOfTiles<float>(8, 900, 900), 256);
  EXPECT_EQ(RowsOfTiles<float>(8, 900, 900, 128), 128);
  EXPECT_EQ(RowsOfTiles<float>(8, 900, 64), 64);    // few tiles
  EXPECT_EQ(RowsOfTiles<float>(90, 300, 64), 128);  // 512 rows for 300
  EXPECT_EQ(RowsOfTiles<float>(1000, 100, 64), 128);
  EXPECT_EQ(RowsOfTiles<float>(1000, 1, 64), 64);
}

TEST(Transpose, WritesMatricesApart) {
  const CudaContext cuda(nullptr, nullptr, 0);
  constexpr int64_t kMatrices = 2, kRows = 35, kColumns = 66, kApart = kRows * kColumns + 3;
  std::vector<float> from(kMatrices * kRows * kColumns);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i % 997);
  std::vector<Half> to(kMatrices * kApart, FromFloat<Half>(-1));
  const Status status = Transpose(cuda, kMatrices, kRows, kColumns, from.data(), to.data(), kApart);
  ASSERT_TRUE(status.ok()) << status.message();
  for (int64_t i = 0; i < kMatrices * kApart; ++i) {
    const int64_t matrix = i / kApart, at = i % kApart, column = at / kRows, row = at % kRows;
    const float expected =
        at < kRows * kColumns ? from[static_cast<size_t>((matrix * kRows + row) * kColumns + column)] : -1;
    ASSERT_EQ(ToFloat(to[static_cast<size_t>(i)]), expected) << i;
  }
}

}  // namespace
}  // namespace polyop
