// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cuda/cuda.h"
#include "ops/linalg/block_elimination_cuda.h"
#include "ops/linalg/matrix_solve/solve_matrix.h"

namespace polyop {
namespace {

// Each block solves the equations of one matrix, in shared memory if they fit.
template <class T>
Status SolveInBlocks(const CudaContext& cuda, const EquationsToSolve<T>& equations) {
  using Method = MatrixSolve::Method;
  const int64_t size = equations.size, columns = equations.columns, stride = linalg::SharedStride(size);
  const int64_t elements = size * (stride + columns), rows_size = equations.RowsSize();
  const bool in_shared = elements <= linalg::kMaxSharedElements;
  const int64_t at_once = std::min(equations.count, linalg::kMaxBlocksAtOnce);
  double* const scratch = in_shared ? nullptr : cuda.Allocate<double>(at_once * elements);
  int32_t* const all_rows = cuda.Allocate<int32_t>(at_once * rows_size);
  const int64_t bytes = (in_shared ? elements * 8 : 0) + 32;
  for (int64_t first = 0; first < equations.count; first += at_once) {
    POLYOP_RETURN_IF_ERROR(ForBlocks<linalg::kMaxBlockThreads>(
        cuda, std::min(at_once, equations.count - first), linalg::BlockThreads(size * (size + columns)), bytes,
        [=] POLYOP_DEVICE(Block& block) {
          const int64_t n = first + block.index;
          int64_t* const pivot_row = block.Shared<int64_t>(1);
          double* const a =
              in_shared ? block.Shared<double>(static_cast<int>(elements)) : scratch + block.index * elements;
          double* const b = a + size * stride;
          const Method method = equations.method;
          const bool general = method == Method::kGeneral, transpose = equations.transpose;
          linalg::ForElements(block, 0, size, 0, size, [&](int64_t i, int64_t j) {
            a[general && transpose ? j * stride + i : i * stride + j] =
                static_cast<double>(equations.from[(n * size + i) * size + j]);
          });
          linalg::ForElements(block, 0, size, 0, columns, [&](int64_t i, int64_t c) {
            b[i * columns + c] = static_cast<double>(equations.right[(n * size + i) * columns + c]);
          });
          const auto solve = [&](bool upper, bool unit, bool transposed) {
            linalg::SolveTriangleInBlock(
                block, [&](int64_t i, int64_t k) { return transposed ? a[k * stride + i] : a[i * stride + k]; },
                upper == transposed, unit, size, b, columns);
          };
          int32_t* const own_rows = all_rows + block.index * rows_size;
          const int32_t* exchanged = general ? own_rows : equations.pivots + n * equations.pivot_count;
          const int64_t exchanges = general ? size : equations.pivot_count;
          int32_t info = 0;
          if (general) {
            info = linalg::FactorLuInBlock(block, a, size, size, stride, own_rows, pivot_row);
          }
          if (method == Method::kLower || method == Method::kUpper) {
            solve(method == Method::kUpper, equations.unit, transpose);
          } else if (method == Method::kCholesky) {
            solve(false, false, false);
            solve(false, false, true);
          } else if (info == 0 && transpose && !general) {
            solve(true, false, true);
            solve(false, true, true);
            linalg::ExchangeRowsInBlock(block, exchanged, exchanges, true, b, size, columns);
          } else if (info == 0) {
            linalg::ExchangeRowsInBlock(block, exchanged, exchanges, false, b, size, columns);
            solve(false, true, false);
            solve(true, false, false);
          }
          linalg::ForElements(block, 0, size, 0, columns, [&](int64_t i, int64_t c) {
            equations.to[(n * size + i) * columns + c] = info != 0 ? NAN : static_cast<T>(b[i * columns + c]);
            if (i == 0 && c == 0) equations.info[n] = info;
          });
        }));
  }
  return Status::Ok();
}

// Each thread solves the equations of one matrix in scratch memory.
template <class T>
Status SolveInThreads(const CudaContext& cuda, const EquationsToSolve<T>& equations) {
  const int64_t size = equations.WorkSize(), rows = equations.RowsSize();
  const int64_t at_once = std::min(equations.count, linalg::kMaxThreadsAtOnce);
  double* const work = cuda.Allocate<double>(at_once * size);
  int32_t* const exchanged = cuda.Allocate<int32_t>(at_once * rows);
  for (int64_t first = 0; first < equations.count; first += at_once) {
    POLYOP_RETURN_IF_ERROR(ForEach(cuda, std::min(at_once, equations.count - first), [=] POLYOP_DEVICE(int64_t i) {
      equations.Solve(first + i, work + i * size, exchanged + i * rows);
    }));
  }
  return Status::Ok();
}

template <class T>
Status MatrixSolveCuda(const MatrixSolve& op, const CudaContext& cuda, Tensor<const T, kAnyRank> a,
                       Tensor<const T, kAnyRank> b, std::optional<Tensor<const int32_t, kAnyRank>> pivots,
                       Tensor<T, kAnyRank> x, Tensor<int32_t, kAnyRank> info) {
  const EquationsToSolve<T> equations(op, a, b, pivots, x, info);
  const bool has_blocks = op.method != MatrixSolve::Method::kLdl && equations.columns > 0;
  return has_blocks && equations.size > linalg::kMaxSizeOfThread ? SolveInBlocks(cuda, equations)
                                                                 : SolveInThreads(cuda, equations);
}

POLYOP_CUDA_KERNELS(MatrixSolve, MatrixSolveCuda, float, double);

}  // namespace
}  // namespace polyop
