// SPDX-License-Identifier: Apache-2.0
// Compiled as C++, where kernels run on the CPU (kernels/cuda/cuda.h).
#include "kernels/cuda/copied_product.h"

#include <gtest/gtest.h>

#include <vector>

namespace polyop {
namespace {

// Small integers, whose sums of products are exact.
float LeftAt(int64_t row, int64_t k) { return static_cast<float>((row * 5 + k * 3) % 7 - 3); }
float RightAt(int64_t k, int64_t column) { return static_cast<float>((k * 2 + column * 11) % 9 - 4); }

template <class T>
std::vector<T> Matrix(int64_t rows, int64_t columns, float (*at)(int64_t, int64_t), bool transposed) {
  std::vector<T> values(static_cast<size_t>(rows * columns));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      values[static_cast<size_t>(transposed ? c * rows + r : r * columns + c)] = FromFloat<T>(at(r, c));
    }
  }
  return values;
}

// Multiplies `steps` steps, of which every third is skipped, and pieces of the last 8 of its depth do not exist.
template <class T, int kRows, bool kLeftByDepth, bool kRightByDepth>
void ExpectProducts(int steps, bool reversed) {
  using Product = CopiedProduct<T, kRows, kLeftByDepth, kRightByDepth>;
  const int64_t depth = steps * Product::kDepth, held = depth - Product::kPiece;
  const std::vector<T> left = Matrix<T>(kRows, depth, LeftAt, kLeftByDepth);
  const std::vector<T> right = Matrix<T>(depth, Product::kColumns, RightAt, !kRightByDepth);
  std::vector<float> sums(static_cast<size_t>(kRows * Product::kColumns), -1);
  const T *const a = left.data(), *const b = right.data();
  float* const to = sums.data();
  cuda_emulation::reversed = reversed;
  const CudaContext cuda{nullptr, nullptr, 0};
  const Status status = ForBlocks(cuda, 1, Product::kThreads, Product::kSharedBytes, [=](Block& block) {
    Product product(block);
    product.Add(
        [=](int step) {
          do {
            ++step;
          } while (step % 3 == 1);
          return step < steps ? step : -1;
        },
        [=](int step, int row, int k) {
          const int64_t at = int64_t{step} * Product::kDepth + k;
          return Piece<T>{a + (kLeftByDepth ? at * kRows + row : row * depth + at), at < held};
        },
        [=](int step, int column, int k) {
          const int64_t at = int64_t{step} * Product::kDepth + k;
          return Piece<T>{b + (kRightByDepth ? at * Product::kColumns + column : column * depth + at), true};
        });
    product.Store([&](int row, int column, float sum) { to[row * Product::kColumns + column] = sum; });
  });
  cuda_emulation::reversed = false;
  ASSERT_TRUE(status.ok()) << status.message();
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t column = 0; column < Product::kColumns; ++column) {
      float want = 0;
      for (int64_t k = 0; k < held; ++k) {
        if (k / Product::kDepth % 3 != 1) want += LeftAt(row, k) * RightAt(k, column);
      }
      ASSERT_EQ(sums[static_cast<size_t>(row * Product::kColumns + column)], want) << row << ", " << column;
    }
  }
}

template <class T>
class CopiedProductTest : public ::testing::Test {};
using Types = ::testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(CopiedProductTest, Types);

TYPED_TEST(CopiedProductTest, AddsProductsOfEveryLayout) {
  for (const bool reversed : {false, true}) {
    for (const int steps : {1, 2, 6}) {
      SCOPED_TRACE(::testing::Message() << steps << " steps, reversed " << reversed);
      ExpectProducts<TypeParam, 128, false, false>(steps, reversed);
      ExpectProducts<TypeParam, 128, false, true>(steps, reversed);
      ExpectProducts<TypeParam, 64, true, false>(steps, reversed);
      ExpectProducts<TypeParam, 64, true, true>(steps, reversed);
    }
  }
}

TEST(CopiesAhead, CopiesWhenTheThreadWaits) {
  alignas(16) const int32_t from[4] = {1, 2, 3, 4};
  alignas(16) int32_t to[8] = {9, 9, 9, 9, 9, 9, 9, 9};
  CopiesAhead copies;
  copies.Start(to, from, true);
  copies.Start(to + 4, from, false);
  EXPECT_EQ(to[0], 9);
  copies.Wait();
  EXPECT_EQ(std::vector<int32_t>(to, to + 8), (std::vector<int32_t>{1, 2, 3, 4, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace polyop
