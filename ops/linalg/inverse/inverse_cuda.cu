// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cuda/cuda.h"
#include "ops/linalg/block_elimination_cuda.h"
#include "ops/linalg/inverse/inverse.h"
#include "ops/linalg/inverse/inverse_rule.h"

namespace polyop {
namespace {

// Each thread block inverts one matrix, in shared memory if it fits, by Gauss-Jordan elimination in place.
template <class T>
Status InverseCuda(const Inverse&, const CudaContext& cuda, Tensor<const T, kAnyRank> input,
                   Tensor<T, kAnyRank> output) {
  const int64_t size = input.dim(input.rank() - 1), count = size == 0 ? 0 : input.size() / (size * size),
                stride = linalg::SharedStride(size), per_matrix = (stride + 3) * size;
  const bool in_shared = per_matrix + size <= linalg::kMaxSharedElements;
  const int64_t at_once = in_shared ? count : std::min(count, linalg::kMaxBlocksAtOnce);
  double* const reals = in_shared ? nullptr : cuda.Allocate<double>(at_once * per_matrix);
  int64_t* const all_rows = in_shared ? nullptr : cuda.Allocate<int64_t>(at_once * size);
  const int64_t bytes = (in_shared ? (per_matrix + size) * 8 + 16 : 0) + 32;
  const T* const from = input.data();
  T* const to = output.data();
  for (int64_t begin = 0; begin < count; begin += at_once) {
    POLYOP_RETURN_IF_ERROR(ForBlocks<linalg::kMaxBlockThreads>(
        cuda, std::min(at_once, count - begin), linalg::BlockThreads(size * size), bytes,
        [=] POLYOP_DEVICE(Block& block) {
          const int threads = block.threads();
          const int64_t first = (begin + block.index) * size * size;
          int64_t* const pivot_row = block.Shared<int64_t>(1);
          double* const matrix =
              in_shared ? block.Shared<double>(static_cast<int>(per_matrix)) : reals + block.index * per_matrix;
          double *const row_scale = matrix + size * stride, *const column_scale = row_scale + size,
                        *const factors = column_scale + size;
          // rows[k] is the row that was exchanged with row k.
          int64_t* const rows =
              in_shared ? block.Shared<int64_t>(static_cast<int>(size)) : all_rows + block.index * size;
          block.ForWarps([&](int warp) {
            for (int64_t i = warp; i < size; i += threads / kWarpLanes) {
              Lanes<double> largest;
              ForLanes([&](int lane) {
                largest[lane] = 0;
                for (int64_t j = lane; j < size; j += kWarpLanes) {
                  largest[lane] = LargerMagnitude(largest[lane], ToFloat(from[first + i * size + j]));
                }
              });
              const double scale =
                  InverseScale(largest.Reduce([](double a, double b) { return a > b || a != a ? a : b; }));
              ForLanes([&](int lane) {
                if (lane == 0) row_scale[i] = scale;
                for (int64_t j = lane; j < size; j += kWarpLanes) {
                  matrix[i * stride + j] = ToFloat(from[first + i * size + j]) * scale;
                }
              });
            }
          });
          block.ForThreads([&](int t) {
            for (int64_t j = t; j < size; j += threads) {
              double largest = 0;
              for (int64_t i = 0; i < size; ++i) largest = LargerMagnitude(largest, matrix[i * stride + j]);
              column_scale[j] = InverseScale(largest);
              for (int64_t i = 0; i < size; ++i) matrix[i * stride + j] *= column_scale[j];
            }
          });
          bool inverted = true;
          for (int64_t k = 0; k < size && inverted; ++k) {
            linalg::FindPivot(block, matrix, size, stride, k, pivot_row);
            const int64_t best = *pivot_row;
            const double pivot = matrix[best * stride + k];
            inverted = IsPivot(pivot, size);
            block.ForThreads([&](int) {});  // barrier: all threads have read the pivot
            block.ForThreads([&](int t) {
              if (t == 0) rows[k] = best;
              for (int64_t j = t; j < size; j += threads) {
                const double chosen = matrix[best * stride + j];
                matrix[best * stride + j] = matrix[k * stride + j];
                matrix[k * stride + j] = (j == k ? 1 : chosen) / pivot;
              }
            });
            block.ForThreads([&](int t) {
              for (int64_t i = t; i < size; i += threads) {
                if (i == k) continue;
                factors[i] = matrix[i * stride + k];
                matrix[i * stride + k] = 0;
              }
            });
            linalg::ForElements(block, 0, size, 0, size, [&](int64_t i, int64_t j) {
              if (i != k) matrix[i * stride + j] -= factors[i] * matrix[k * stride + j];
            });
          }
          // Exchanges columns in the reverse order of rows: factors receives which one each column is.
          block.ForThreads([&](int t) {
            if (t != 0 || !inverted) return;
            for (int64_t j = 0; j < size; ++j) factors[j] = static_cast<double>(j);
            for (int64_t k = size; k-- > 0;) {
              const double other = factors[rows[k]];
              factors[rows[k]] = factors[k];
              factors[k] = other;
            }
          });
          linalg::ForElements(block, 0, size, 0, size, [&](int64_t i, int64_t j) {
            const double value =
                inverted ? matrix[i * stride + static_cast<int64_t>(factors[j])] * column_scale[i] * row_scale[j] : NAN;
            to[first + i * size + j] = FromFloat<T>(static_cast<float>(value));
          });
        }));
  }
  return Status::Ok();
}

POLYOP_CUDA_KERNELS(Inverse, InverseCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
